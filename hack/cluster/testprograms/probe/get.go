package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// serviceAccount is where a pod finds its token and the authority of the API server.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// getting is what the verb get asks for.
type getting struct {
	url     string
	ca      string // file; empty: the system's
	token   string // file; empty: none
	timeout time.Duration
	limit   int64 // bytes of the body that are printed
}

func getCommand() *cobra.Command {
	var g getting
	cmd := &cobra.Command{
		Use:   "get URL",
		Short: "Ask by HTTP or HTTPS; a path alone asks the API server as this pod's service account",
		Example: `  probe get http://10.244.1.5:8080/
  probe get /api/v1/namespaces/default/pods`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g.url = args[0]
			if strings.HasPrefix(g.url, "/") {
				if err := g.asServiceAccount(serviceAccount, os.Getenv); err != nil {
					return err
				}
			}
			return g.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&g.ca, "ca", "", "file with the certificates that the server's must lead to")
	cmd.Flags().StringVar(&g.token, "token", "", "file with a bearer token")
	cmd.Flags().DurationVar(&g.timeout, "timeout", time.Minute, "when to give up")
	cmd.Flags().Int64Var(&g.limit, "limit", 4096, "bytes of the answer to print")
	return cmd
}

// asServiceAccount completes a path to a request of the API server.
func (g *getting) asServiceAccount(dir string, environment func(string) string) error {
	host, port := environment("KUBERNETES_SERVICE_HOST"), environment("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return fmt.Errorf("%s without a host: KUBERNETES_SERVICE_HOST and _PORT are not both set, so this is not a pod", g.url)
	}
	g.url = "https://" + net.JoinHostPort(host, port) + g.url
	g.ca, g.token = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	return nil
}

// run prints the status, the time it took and the beginning of the answer. A status of 400 or more is an error.
func (g *getting) run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url, nil)
	if err != nil {
		return err
	}
	client, err := g.client(request)
	if err != nil {
		return err
	}
	start := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, g.limit))
	fmt.Fprintf(out, "%s %s %s\n", response.Status, time.Since(start).Round(time.Microsecond), body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s", g.url, response.Status)
	}
	return err
}

// client is one that trusts what it was told to; the request gets the token.
func (g *getting) client(request *http.Request) (*http.Client, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if g.ca != "" {
		pem, err := os.ReadFile(g.ca)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New(g.ca + ": no certificate in it")
		}
	}
	if g.token != "" {
		token, err := os.ReadFile(g.token)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return &http.Client{Transport: transport}, nil
}
