package main

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"railhead/internal/agent"
	"railhead/internal/counters"
	"railhead/internal/exporter"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// startLocal is an agent of this node without an endpoint: it reads the devices
// each time it is asked, and pods show by their UID.
func startLocal(ctx context.Context) (func(context.Context) ([]byte, error), error) {
	a, err := agent.New(agent.Config{
		Node:     node.Running(sysfs.New("/")),
		Exporter: exporter.Config{Intervals: exporter.DefaultIntervals(), Version: version()},
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	changed, ended := a.Watcher().Changed(), make(chan error, 1)
	go func() { ended <- a.Watch(ctx) }()
	select {
	case err := <-ended:
		return nil, err
	case <-changed: // the first inventory
	}
	return func(ctx context.Context) ([]byte, error) {
		a.Exporter().Sample(ctx, time.Now(), counters.Traffic, counters.Errors, counters.Slow)
		var text bytes.Buffer
		err := a.Exporter().WriteText(&text)
		return text.Bytes(), err
	}, nil
}
