package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer HTTP requests with our host's name and the asker's address",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), cmd.OutOrStdout(), address) },
	}
	cmd.Flags().StringVar(&address, "http", ":8080", "address to serve")
	return cmd
}

// serve serves until the context ends, which is no error, and prints the address once it listens.
func serve(ctx context.Context, out io.Writer, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http %s\n", l.Addr())
	return serveHTTP(ctx, &http.Server{Handler: http.HandlerFunc(introduce)}, l)
}

// introduce tells who answers and who asked.
func introduce(w http.ResponseWriter, r *http.Request) {
	name, err := os.Hostname()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "%s answers %s %s of %s\n", name, r.Method, r.URL.Path, r.RemoteAddr)
}

// serveHTTP serves, encrypted where the server has a certificate, until the context ends.
func serveHTTP(ctx context.Context, server *http.Server, l net.Listener) error {
	server.ReadHeaderTimeout = 10 * time.Second
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
