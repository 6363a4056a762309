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
	"golang.org/x/sync/errgroup"
)

// serving says on which addresses; an empty one is not served.
type serving struct{ http, tcp, udp string }

func serveCommand() *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer HTTP requests with our host's name and the asker's address, and echo TCP and UDP",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&s.http, "http", ":8080", "address for HTTP; empty for none")
	cmd.Flags().StringVar(&s.tcp, "tcp", ":7000", "address of the TCP echo; empty for none")
	cmd.Flags().StringVar(&s.udp, "udp", ":7000", "address of the UDP echo; empty for none")
	return cmd
}

// run serves until the context ends, which is no error, and prints each address once it listens.
func (s serving) run(ctx context.Context, out io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	var listen net.ListenConfig
	if s.http != "" {
		l, err := listen.Listen(ctx, "tcp", s.http)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "http %s\n", l.Addr())
		group.Go(func() error { return serveHTTP(ctx, &http.Server{Handler: http.HandlerFunc(introduce)}, l) })
	}
	if s.tcp != "" {
		l, err := listen.Listen(ctx, "tcp", s.tcp)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "tcp %s\n", l.Addr())
		group.Go(func() error { return echoStreams(ctx, l) })
	}
	if s.udp != "" {
		c, err := listen.ListenPacket(ctx, "udp", s.udp)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "udp %s\n", c.LocalAddr())
		group.Go(func() error { return echoPackets(ctx, c) })
	}
	return group.Wait()
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

// echoStreams sends back what comes in on every connection.
func echoStreams(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			return unlessClosed(err)
		}
		go func() {
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			_, _ = io.Copy(conn, conn) // how a client leaves is its own affair
		}()
	}
}

// echoPackets sends back every packet.
func echoPackets(ctx context.Context, c net.PacketConn) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	packet := make([]byte, 1<<16)
	for {
		n, from, err := c.ReadFrom(packet)
		if err != nil {
			return unlessClosed(err)
		}
		_, _ = c.WriteTo(packet[:n], from) // a lost packet is what UDP is for
	}
}

// unlessClosed is the error, unless we closed the socket ourselves.
func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
