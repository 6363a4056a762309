package controller

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fakeLock is a Lease whose writes can fail.
type fakeLock struct {
	resourcelock.Interface

	err  error
	slow time.Duration
}

func (l *fakeLock) Identity() string { return "me" }

func (l *fakeLock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func (l *fakeLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	<-time.After(l.slow)
	return l.err
}

// passes says whether a request reaches the API server.
func passes(t *testing.T, f *fence, method string) bool {
	t.Helper()
	reached := false
	transport := f.around(roundTrip(func(*http.Request) (*http.Response, error) {
		reached = true
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	body := &closed{Reader: strings.NewReader("{}")}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://api/", body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if reached != (err == nil) || !reached && (!errors.Is(err, errNotLeader) || !body.closed) {
		t.Errorf("%s: reached %t, error %v, body closed %t", method, reached, err, body.closed)
	}
	return reached
}

// closed is a body that knows whether it was closed, as a transport must.
type closed struct {
	io.Reader

	closed bool
}

func (c *closed) Close() error {
	c.closed = true
	return nil
}

// TestFence wants writes to pass while the lease lasts, counted from when its
// renewal was asked for, and reads always.
func TestFence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFence(true, 15*time.Second)
		api := &fakeLock{}
		lock := fencedLock{api, f}
		mine, nobody := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
		steps := []struct {
			name string
			do   func()
			want bool
		}{
			{"before the election", func() {}, false},
			{"elected", func() { _ = lock.Create(t.Context(), mine) }, true},
			{"14 s later", func() { <-time.After(14 * time.Second) }, true},
			{"15 s later", func() { <-time.After(time.Second) }, false},
			{"a renewal that fails", func() { api.err = errors.New("away"); _ = lock.Update(t.Context(), mine) }, false},
			{"one that takes 10 s", func() { api.err, api.slow = nil, 10*time.Second; _ = lock.Update(t.Context(), mine) }, true},
			{"5 s after that", func() { <-time.After(5 * time.Second) }, false},
			{"renewed", func() { api.slow = 0; _ = lock.Update(t.Context(), mine) }, true},
			{"paused for a minute", func() { <-time.After(time.Minute) }, false},
			{"renewed again", func() { _ = lock.Update(t.Context(), mine) }, true},
			{"given back", func() { _ = lock.Update(t.Context(), nobody) }, false},
		}
		for _, step := range steps {
			step.do()
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
				if got := passes(t, f, method); got != step.want {
					t.Errorf("%s: %s passes: %t, want %t", step.name, method, got, step.want)
				}
			}
			if !passes(t, f, http.MethodGet) {
				t.Errorf("%s: a read does not pass", step.name)
			}
		}
	})
}

// TestFenceClocks wants no write once either clock says that the lease is over:
// one stands still while the machine is suspended, the other may be set.
func TestFenceClocks(t *testing.T) {
	t.Parallel()
	const lasts = 15 * time.Second
	for _, tt := range []struct {
		name      string
		ran, wall time.Duration // since the renewal
		want      bool
	}{
		{"both early", 14 * time.Second, 14 * time.Second, true},
		{"suspended for a minute", time.Second, time.Minute, false},
		{"set back by an hour, early", 14 * time.Second, -time.Hour, true},
		{"set back by an hour, late", lasts, -time.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, now := newFence(true, lasts), moment{ran: time.Hour, wall: time.Unix(1e9, 0)}
			f.now = func() moment { return now }
			lock := fencedLock{&fakeLock{}, f}
			if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
				t.Fatal(err)
			}
			now = moment{ran: now.ran + tt.ran, wall: now.wall.Add(tt.wall)}
			if got := passes(t, f, http.MethodPut); got != tt.want {
				t.Errorf("a write passes: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestFenceGivenBackFails wants no write after a lease that could not even be
// given back.
func TestFenceGivenBackFails(t *testing.T) {
	t.Parallel()
	f := newFence(true, time.Hour)
	api := &fakeLock{}
	lock := fencedLock{api, f}
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
		t.Fatal(err)
	}
	api.err = errors.New("away")
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil || f.open() {
		t.Errorf("error %v, and the fence is open: %t", err, f.open())
	}
}

// TestNoFence wants everything to pass where there is no election.
func TestNoFence(t *testing.T) {
	t.Parallel()
	if !passes(t, newFence(false, time.Second), http.MethodPut) {
		t.Error("a write does not pass")
	}
}
