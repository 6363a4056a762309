package cniserver

import (
	"context"
	"fmt"
	"sync"

	"railhead/internal/cnicall"
)

// sandboxes lets one call at a time work on a sandbox.
type sandboxes struct {
	mu   sync.Mutex
	byID map[string]*sandbox
}

type sandbox struct {
	free   chan struct{} // has a word while nobody works on it
	users  int           // who work or wait
	cancel context.CancelCauseFunc
}

func newSandboxes() *sandboxes { return &sandboxes{byID: map[string]*sandbox{}} }

// lock waits until nobody works on a sandbox, and keeps others waiting until
// unlock.
func (l *sandboxes) lock(ctx context.Context, id string) (unlock func(), err error) {
	s := l.enter(id)
	select {
	case <-s.free:
		return l.unlocker(id, s), nil
	default:
	}
	select {
	case <-s.free:
		return l.unlocker(id, s), nil
	case <-ctx.Done():
		l.leave(id, s)
		return nil, context.Cause(ctx)
	}
}

// tryLock is lock where nobody works on it or waits to.
func (l *sandboxes) tryLock(id string) (unlock func(), ok bool) {
	s := l.enter(id)
	select {
	case <-s.free:
		return l.unlocker(id, s), true
	default:
		l.leave(id, s)
		return nil, false
	}
}

// interruptible lets an interrupt end what the holder of the lock does.
func (l *sandboxes) interruptible(id string, cancel context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.byID[id]; s != nil {
		s.cancel = cancel
	}
}

// interrupt ends what is being done for a sandbox, where that can be. It does
// not wait.
func (l *sandboxes) interrupt(id string, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.byID[id]; s != nil && s.cancel != nil {
		s.cancel(cause)
	}
}

func (l *sandboxes) enter(id string) *sandbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[id]
	if s == nil {
		s = &sandbox{free: make(chan struct{}, 1)}
		s.free <- struct{}{}
		l.byID[id] = s
	}
	s.users++
	return s
}

func (l *sandboxes) leave(id string, s *sandbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.byID, id)
	}
}

// unlocker ends the work of one. It may be called once.
func (l *sandboxes) unlocker(id string, s *sandbox) func() {
	return func() {
		l.mu.Lock()
		s.cancel = nil
		l.mu.Unlock()
		s.free <- struct{}{}
		l.leave(id, s)
	}
}

// lock lets a call be alone with what has an ID, of a sandbox or within one.
func (s *Server) lock(ctx context.Context, id string) (unlock func(), err error) {
	if unlock, err = s.sandboxes.lock(ctx, id); err != nil {
		return nil, coded(cnicall.CodeTryAgain, fmt.Errorf("another call for sandbox %s is still under way: %w", sandboxOf(id), err))
	}
	return unlock, nil
}
