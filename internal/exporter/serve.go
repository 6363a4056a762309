package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"
)

// A client has headerPatience to say what it wants and writePatience to take
// it, so that clients which hang hold no memory; a connection that is kept open
// ends after idlePatience. At the end, scrapes that are under way have
// shutdownPatience.
const (
	headerPatience   = 5 * time.Second
	writePatience    = 30 * time.Second
	idlePatience     = 3 * time.Minute
	shutdownPatience = 5 * time.Second
)

// Serve answers on all addresses (host:port, [::]:port) until ctx ends, and
// lets the scrapes under way end then. The web configuration file, which may
// ask for TLS and passwords, is that of all Prometheus exporters; an empty name
// means neither. It is read again at every connection.
//
// It returns nil when ctx has ended, and else why it cannot serve: an address
// that is in use or the like, or a configuration that cannot be read.
func Serve(ctx context.Context, addresses []string, webConfigFile string, handler http.Handler, logger *slog.Logger) error {
	if err := web.Validate(webConfigFile); err != nil {
		return fmt.Errorf("web configuration %s: %w", webConfigFile, err)
	}
	listeners, err := listen(ctx, addresses)
	if err != nil {
		return err
	}
	return serve(ctx, listeners, webConfigFile, handler, logger)
}

func listen(ctx context.Context, addresses []string) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, address := range addresses {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			for _, l := range listeners {
				_ = l.Close()
			}
			return nil, fmt.Errorf("metrics address %s: %w", address, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func serve(ctx context.Context, listeners []net.Listener, webConfigFile string, handler http.Handler, logger *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerPatience,
		ReadTimeout:       headerPatience,
		WriteTimeout:      writePatience,
		IdleTimeout:       idlePatience,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // of clients, which anybody can be
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := web.ServeMultiple(listeners, server, &web.FlagConfig{WebConfigFile: &webConfigFile}, logger)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
	group.Go(func() error {
		<-running.Done()
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
		defer cancel()
		return server.Shutdown(patience)
	})
	return group.Wait()
}
