package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// bodyLimit is how much of an answer is printed, in bytes.
const bodyLimit = 4096

func getCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "get URL",
		Short:   "Ask by HTTP",
		Example: `  probe get http://10.244.1.5:8080/`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return get(ctx, cmd.OutOrStdout(), args[0])
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "when to give up")
	return cmd
}

// get prints the status, the time it took and the beginning of the answer. A status of 400 or more is an error.
func get(ctx context.Context, out io.Writer, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	start := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	fmt.Fprintf(out, "%s %s %s\n", response.Status, time.Since(start).Round(time.Microsecond), body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return err
}
