package address

import (
	"context"
	"sync"
	"time"
)

// change is what changed since the last round.
type change int

const (
	somethingChanged change = iota
	poolsChanged            // pools, what is reserved, or the nodes that pools are for
)

// signal has rounds run when something changes. It is safe for concurrent use.
type signal struct {
	woken chan struct{} // has a token if a round is wanted

	mu      sync.Mutex
	changes map[change]struct{}
	later   *time.Timer // of a round that is wanted soon
}

func newSignal() *signal {
	return &signal{woken: make(chan struct{}, 1), changes: map[change]struct{}{}}
}

// set wants a round.
func (s *signal) set(what change) {
	s.mu.Lock()
	s.changes[what] = struct{}{}
	s.mu.Unlock()
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// soon wants a round within a time, for what comes often and seldom matters.
func (s *signal) soon(within time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.later == nil {
		s.later = time.AfterFunc(within, func() {
			s.mu.Lock()
			s.later = nil
			s.mu.Unlock()
			s.set(somethingChanged)
		})
	}
}

// took says whether something changed, and forgets it.
func (s *signal) took(what change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.changes[what]
	delete(s.changes, what)
	return ok
}

// wait returns when a round is wanted, when a time is over, or when ctx ends.
func (s *signal) wait(ctx context.Context, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.woken:
	case <-timer.C:
	}
	return nil
}
