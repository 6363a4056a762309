package controller

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// errNotLeader refuses a write of a replica whose lease has run out, or that
// never had one.
var errNotLeader = errors.New("this replica does not hold the lease: it writes nothing")

// fence lets a leader's writes through for as long as its lease lasts. A leader
// that was paused goes on where it stood, before it can know that another one
// leads: its writes end here, and what was already on its way, in a conflict of
// resource versions.
type fence struct {
	off   bool
	lasts time.Duration
	now   func() moment

	mu      sync.Mutex
	leads   bool
	renewed moment // when the last renewal that succeeded was asked for
}

func newFence(on bool, lasts time.Duration) *fence {
	began := time.Now()
	return &fence{off: !on, lasts: lasts, now: func() moment {
		now := time.Now()
		return moment{ran: now.Sub(began), wall: now.Round(0)}
	}}
}

// moment is one by both clocks of a machine: the one that nobody can set stands
// still while the machine is suspended, and the other one does not.
type moment struct {
	ran  time.Duration // by the monotonic clock
	wall time.Time     // by the wall clock alone
}

// since is the longer of what both clocks say has passed.
func (m moment) since(earlier moment) time.Duration {
	return max(m.ran-earlier.ran, m.wall.Sub(earlier.wall))
}

func (f *fence) open() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.off || f.leads && f.now().since(f.renewed) < f.lasts
}

func (f *fence) renew(asked moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leads, f.renewed = true, asked
}

func (f *fence) shut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leads = false
}

// around is a transport that reads always, and writes only as the leader.
func (f *fence) around(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet || f.open() {
			return next.RoundTrip(r)
		}
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errNotLeader
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fencedLock opens the fence when the lease is taken or renewed, and shuts it
// before the lease is given back.
type fencedLock struct {
	resourcelock.Interface
	fence *fence
}

// Create implements resourcelock.Interface.
func (l fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l fencedLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	asked := l.fence.now()
	mine := record.HolderIdentity == l.Identity()
	if !mine {
		l.fence.shut()
	}
	err := do(ctx, record)
	if err == nil && mine {
		l.fence.renew(asked)
	}
	return err
}
