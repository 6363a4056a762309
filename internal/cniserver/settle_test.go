package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/kerneltest"
)

// stubborn are addresses that nobody can give back until they are let.
type stubborn struct {
	*fakeAddresses

	mu    sync.Mutex
	left  int           // how often Release is refused
	asked chan struct{} // a word for each time; nil: nobody counts
}

var errStubborn = errors.New("the journal of addresses is busy")

func (a *stubborn) Release(ctx context.Context, key holder.Key, sequence uint64, quarantine map[netip.Addr]string) error {
	a.mu.Lock()
	refused := a.left > 0
	if refused {
		a.left--
	}
	a.mu.Unlock()
	if a.asked != nil {
		a.asked <- struct{}{}
	}
	if refused {
		return errStubborn
	}
	return a.fakeAddresses.Release(ctx, key, sequence, quarantine)
}

// TestPutRightAgain starts an agent on what was half attached and cannot be taken away:
// it is tried again until it can, and told of once, and once that it is right.
func TestPutRightAgain(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		w.ok(s, cnicall.Add)
		refuses := &stubborn{fakeAddresses: w.addresses, left: 2}
		w.extend = func(c *Config) { c.Addresses = refuses }
		w.again(func(a record.Attachment) record.Attachment { a.State, a.Answer = record.Attaching, nil; return a })
		const half = "ai/train box1: it was half attached when the agent ended"
		if diff := cmp.Diff([]string{half + ": " + errStubborn.Error(), half}, w.found()); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		if n := testutil.ToFloat64(w.server.metrics.repairs); n != 1 {
			t.Errorf("%v repairs are counted, want one", n)
		}
		w.awaitUp()
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
	})
}

// TestUntilDone tries again ever less often, until it is done or nobody wants it.
func TestUntilDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []int // seconds
		untilDone(t.Context(), func() error {
			if at = append(at, int(time.Since(began)/time.Second)); len(at) < 9 {
				return errStubborn
			}
			return nil
		})
		if diff := cmp.Diff([]int{0, 1, 3, 7, 15, 31, 63, 123, 183}, at); diff != "" {
			t.Errorf("seconds at which it was tried (-want +got):\n%s", diff)
		}
		began = time.Now()
		ended, end := context.WithCancel(t.Context())
		untilDone(ended, func() error {
			end()
			return errStubborn
		})
		if took := time.Since(began); took != 0 {
			t.Errorf("it went on for %s, want none", took)
		}
	})
}

// TestPutRightNever leaves what a later release attached to that one.
func TestPutRightNever(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.stop()
		lines, _, _, err := journal.Open[any](w.disk, record.File)
		if err == nil {
			_, err = lines.Append(json.RawMessage(`{"v":2,"id":"box1","put":{"namespace":"ai","name":"train","at":"2020-01-01T00:00:00Z"}}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		if found := w.found(); len(found) != 1 || !strings.HasPrefix(found[0], "ai/train box1: its record is of a later release (2): ") {
			t.Errorf("found %q", found)
		}
		if all := w.server.config.Records.All(); len(all) != 1 || all[0].Newer != 2 {
			t.Errorf("records %+v, want that of the later release", all)
		}
	})
}

// TestPutRightLater has what cannot be put right wait for the next run: nobody else waits
// for it, and the metric says how much there is.
func TestPutRightLater(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		one, two := w.sandbox("box1", "plain"), w.sandbox("box2", "train")
		w.ok(one, cnicall.Add)
		w.ok(two, cnicall.Add)
		refuses := &stubborn{fakeAddresses: w.addresses, left: 1 << 30, asked: make(chan struct{}, 1000)}
		w.extend = func(c *Config) { c.Addresses = refuses }
		w.again(func(a record.Attachment) record.Attachment {
			if a.ContainerID == "box2" {
				a.State = record.Detaching
			}
			return a
		})
		<-refuses.asked
		w.ok(one, cnicall.Check)
		if n := testutil.ToFloat64(w.server.metrics.unsettled); n < 1 {
			t.Errorf("%v sandboxes are unsettled, want box2", n)
		}
		if got := w.missing(); got != "" {
			t.Errorf("missing %q: other pods need not wait", got)
		}
		w.stop() // nobody waits until it is right
		refuses.mu.Lock()
		refuses.left = 1
		refuses.mu.Unlock()
		w.start()
		w.rest()
		if n := testutil.ToFloat64(w.server.metrics.unsettled); n != 0 {
			t.Errorf("%v sandboxes are unsettled, want none", n)
		}
		w.ok(one, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestNotYetUp asks an agent for a pod before it has taken up its records.
func TestNotYetUp(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "plain")
		w.stop()
		server, err := New(w.server.config)
		if err != nil {
			t.Fatal(err)
		}
		w.server = server // which does not run
		if got := w.missing(); !strings.Contains(got, "the agent: it has not taken up the records") {
			t.Errorf("missing %q", got)
		}
		ended, end := context.WithCancelCause(t.Context())
		end(syscall.ECANCELED)
		answer := server.Handle(ended, s.request(cnicall.Add))
		if answer.Error == nil || answer.Error.Code != cnicall.CodeTryAgain || !strings.Contains(answer.Error.Msg, "has not taken up the records of its last run yet: "+syscall.ECANCELED.Error()) {
			t.Errorf("ADD: %v", answer.Error)
		}
	})
}
