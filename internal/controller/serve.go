package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	// drainTimeout bounds how long requests are waited for at the end: less than
	// the five seconds that Run has.
	drainTimeout = 2 * time.Second
)

func listen(ctx context.Context, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// listenAndServe answers requests at an address until ctx ends. Without an
// address it returns at once.
func listenAndServe(ctx context.Context, address string, handler http.Handler) error {
	if address == "" {
		return nil
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	return serve(ctx, listener, handler)
}

// serve answers requests until ctx ends, and closes the listener.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		shut(ctx, server)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	<-ended // Serve returns before the last request has its answer
	return ctx.Err()
}

// shut waits for requests that are being answered, but not for long. That ctx
// has ended is why.
func shut(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
