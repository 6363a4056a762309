package address

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestBlocked wants the error of a pod that waited in vain to say that the
// controller cannot be asked, and why, and that of one that gave up to say so.
func TestBlocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(0, 9))
		r := f.ready(t)
		r.assign(t, f.pod("a", "rail0"))
		time.Sleep(10 * time.Second)
		f.api.Leave()
		err := r.refused(t, f.pod("b", "rail0"))
		for _, want := range []string{"pool rail0", "the controller cannot be asked", "AddressLease n1 cannot be written", "connection refused"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want %q in it", err, want)
			}
		}
		if err := r.Ready(); err != nil {
			t.Errorf("the node serves from what it has, and says %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := r.Assign(ctx, f.pod("c", "rail0")); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
		f.api.ComeBack()
		time.Sleep(time.Minute)
		r.assign(t, f.pod("d", "rail0"))
	})
}

// TestBackSoon wants a pod to be served within moments after the API server is
// back, however long that was away.
func TestBackSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(0, 9))
		r := f.ready(t)
		r.assign(t, f.pod("a", "rail0"))
		f.api.Refuse("update "+leasesPath+"/n1", http.StatusServiceUnavailable)
		for range 10 { // 20 seconds each
			if err := r.refused(t, f.pod("b", "rail0")); !strings.Contains(err.Error(), "AddressLease n1 cannot be written") {
				t.Errorf("error %v, want the lease that cannot be written", err)
			}
		}
		f.api.Refuse("update "+leasesPath+"/n1", 0)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := r.Assign(ctx, f.pod("c", "rail0")); err != nil {
			t.Errorf("it was not served: %v", err)
		}
	})
}

// TestBackSoonAfterOutage wants the same where nothing was heard for minutes.
func TestBackSoonAfterOutage(t *testing.T) {
	t.Parallel()
	for range 5 { // pauses are random
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(newController(0, 9))
			r := f.ready(t)
			r.assign(t, f.pod("a", "rail0"))
			f.api.Leave()
			time.Sleep(5 * time.Minute)
			f.api.ComeBack()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if _, err := r.Assign(ctx, f.pod("b", "rail0")); err != nil {
				t.Errorf("it was not served: %v", err)
			}
		})
	}
}

// TestWatch wants what becomes of the lease to be heard at once, and soon after a
// watch that was broken off, that expired, or that was refused.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*fixture){
		"whole":   func(*fixture) {},
		"ended":   func(f *fixture) { f.api.Leave(); f.api.ComeBack() },
		"expired": func(f *fixture) { f.api.Fail(http.StatusGone) },
		"failed":  func(f *fixture) { f.api.Fail(http.StatusInternalServerError) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newController(0, 9)
				f := newFixture(c)
				r := f.ready(t)
				r.assign(t, f.pod("a", "rail0"))
				time.Sleep(10 * time.Second)
				f.api.Change(func() { c.isPaused = true })
				time.AfterFunc(time.Second, func() { breaks(f) })
				time.AfterFunc(1500*time.Millisecond, func() { // long after the node asked
					f.api.Change(func() { c.isPaused = false })
					f.api.Edit(leasesPath+"/n1", c.answer)
				})
				began := time.Now()
				r.assign(t, f.pod("b", "rail0"))
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
