// Command probe is what tests of a local cluster run in pods: it asks an HTTP
// server, is one, and is an admission webhook.
//
// This package is frozen: agnhost of Kubernetes' own tests was tried. It builds
// with the other programs and does all of this, but is a program of 64 MB, which
// every node would import, in the place of 250 lines.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "probe: %v\n", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "probe",
		Short:         "Ask servers, or be one, in tests of a cluster",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(getCommand(), serveCommand(), webhookCommand())
	return cmd
}
