package certificates

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// repeat calls f at once and then every interval until ctx ends; after an error
// sooner, and ever later while errors go on.
func repeat(ctx context.Context, interval time.Duration, log *slog.Logger, what string, f func(context.Context) error) {
	first := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: interval}
	backoff := first
	for {
		pause := interval
		if err := f(ctx); err == nil {
			backoff = first
		} else if ctx.Err() == nil {
			pause = backoff.Step()
			log.Error("trying again", "what", what, "err", err, "in", pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
