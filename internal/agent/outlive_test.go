package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestOutlive has something run until its context has ended and others are done.
func TestOutlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		done, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- outlive(func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, done)(ctx)
		}()
		synctest.Wait()
		why := errors.New("the agent ends")
		cancel(why)
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("it ended before the others: %v", err)
		default:
		}
		close(done)
		if err := <-ended; !errors.Is(err, why) {
			t.Errorf("it ended with %v, want %v", err, why)
		}
		if err := outlive(func(context.Context) error { return why }, make(chan struct{}))(t.Context()); !errors.Is(err, why) {
			t.Errorf("what fails by itself: %v, want %v", err, why)
		}
	})
}
