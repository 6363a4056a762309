package cniserver

import (
	"context"
	"errors"
	"testing"
)

func TestSandboxes(t *testing.T) {
	t.Parallel()
	l := newSandboxes()
	unlock, err := l.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, free := l.tryLock("a"); free {
		t.Error("a is locked twice")
	}
	other, free := l.tryLock("b")
	if !free {
		t.Error("b is locked with a")
	}
	other()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.lock(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("lock of a without time: %v", err)
	}

	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	l.interrupt("a", errInterrupted)
	if ctx.Err() != nil {
		t.Error("what cannot be interrupted was")
	}
	l.interruptible("a", stop)
	l.interrupt("a", errInterrupted)
	if !errors.Is(context.Cause(ctx), errInterrupted) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	waited := make(chan func())
	go func() {
		unlock, err := l.lock(context.Background(), "a")
		if err != nil {
			t.Error(err)
		}
		waited <- unlock
	}()
	unlock()
	(<-waited)()
	if len(l.byID) > 0 {
		t.Errorf("%d sandboxes are remembered, want none", len(l.byID))
	}
}

func TestWorks(t *testing.T) {
	t.Parallel()
	var w works
	w.wait() // for nothing
	begun, end := make(chan struct{}), make(chan struct{})
	w.run(func() {
		close(begun)
		<-end
	})
	<-begun
	waited := make(chan struct{})
	go func() {
		w.wait()
		close(waited)
	}()
	select {
	case <-waited:
		t.Error("it does not wait")
	default:
	}
	close(end)
	<-waited
}
