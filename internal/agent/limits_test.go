package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"railhead/internal/cnicall"
)

// TestCallsWithinCalls starts many pods at once, each of which waits for a call that
// its own makes.
func TestCallsWithinCalls(t *testing.T) {
	t.Parallel()
	const pods = 200
	socket := filepath.Join(t.TempDir(), "cni.sock")
	listener, err := cnicall.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	all, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var came atomic.Int32
	complete := make(chan struct{})
	handler := func(ctx context.Context, request cnicall.Request) cnicall.Answer {
		if request.Plugin == "spiderpool" {
			return cnicall.Answer{Output: json.RawMessage(`{}`)}
		}
		if came.Add(1) == pods {
			close(complete)
		}
		select {
		case <-complete:
		case <-ctx.Done():
		}
		request.Plugin = "spiderpool"
		answer, err := cnicall.Call(ctx, socket, request)
		if err != nil {
			return cnicall.Answer{Error: &cnicall.Error{Code: cnicall.CodeInternal, Msg: err.Error()}}
		}
		return answer
	}
	serving, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	r := &networking{log: slog.New(slog.DiscardHandler)}
	go func() { ended <- cnicall.Serve(serving, listener, handler, r.limits()) }()
	answers := make(chan error, pods)
	for range pods {
		go func() {
			answer, err := cnicall.Call(all, socket, cnicall.Request{Command: cnicall.Add, Plugin: "railhead-cni"})
			if err == nil && answer.Error != nil {
				err = answer.Error
			}
			answers <- err
		}()
	}
	for range pods {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
