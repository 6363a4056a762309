package address

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
)

// TestRestart wants an agent that was killed to know what pods have, to publish
// what it had not, and to delete what it should have.
func TestRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(4, 20))
		r := f.ready(t)
		gone := r.assign(t, f.pod("gone", "rail0"))
		time.Sleep(10 * time.Second)
		f.api.Refuse("create "+endpointsPath, http.StatusServiceUnavailable)
		f.api.Refuse("delete "+endpointOf("gone"), http.StatusServiceUnavailable)
		a := r.assign(t, f.pod("a", "rail0"))
		if err := r.Release(t.Context(), gone.Key, gone.Sequence, nil); err != nil {
			t.Fatal(err)
		}
		before := r.Assignments()
		r.kill()
		f.api.Refuse("create "+endpointsPath, 0)
		f.api.Refuse("delete "+endpointOf("gone"), 0)

		r = f.ready(t)
		if diff := cmp.Diff(before, r.Assignments(), cmp.Transformer("text", func(a holder.Assigned) string { return a.Pool + a.Prefix.String() })); diff != "" {
			t.Errorf("assignments (-before +after):\n%s", diff)
		}
		time.Sleep(10 * time.Second)
		if f.api.Get(endpointOf("a")) == nil || f.api.Get(endpointOf("gone")) != nil {
			t.Errorf("endpoint of the pod: %v; of the one that is gone: %v", f.api.Get(endpointOf("a")), f.api.Get(endpointOf("gone")))
		}
		if again := r.assign(t, f.pod("a", "rail0")); again.Sequence != a.Sequence {
			t.Errorf("the same sandbox got sequence %d, and %d before", again.Sequence, a.Sequence)
		}
		if other := r.assign(t, f.pod("b", "rail0")); other.Addresses[0].Prefix == a.Addresses[0].Prefix {
			t.Errorf("two pods have %s", other.Addresses[0].Prefix)
		}
	})
}

// TestAPIAway wants an agent that starts while the API server is away to serve
// from what the node has where its journal is of this boot, and to say why not
// where it is not.
func TestAPIAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(*fixture)
		want   []string // of the error; nil: it serves
	}{
		"intact":       {func(*fixture) {}, nil},
		"another boot": {func(f *fixture) { f.boot = "boot-2" }, []string{"node n1", "connection refused"}},
		"lost":         {func(f *fixture) { f.disk.lose() }, []string{"node n1", "connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(newController(4, 20))
				r := f.ready(t)
				r.assign(t, f.pod("a", "rail0"))
				time.Sleep(10 * time.Second)
				r.kill()
				f.api.Leave()
				test.before(f)
				r = f.start(t)
				if test.want == nil {
					began := time.Now()
					r.assign(t, f.pod("b", "rail0"))
					if took := time.Since(began); took > time.Second {
						t.Errorf("it took %v", took)
					}
					return
				}
				ready, err := r.Ready(), r.refused(t, f.pod("b", "rail0"))
				for _, want := range test.want {
					if ready == nil || !strings.Contains(ready.Error(), want) || !strings.Contains(err.Error(), want) {
						t.Errorf("not ready because of %q, refused with %q, want %q in both", ready, err, want)
					}
				}
				f.api.ComeBack()
				time.Sleep(time.Minute)
				r.assign(t, f.pod("b", "rail0"))
			})
		})
	}
}

// TestLostJournal wants what pods have to stay theirs where the journal is
// lost: by their endpoints, and what has no endpoint by what is in use.
func TestLostJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(2, 6))
		r := f.ready(t)
		told := r.assign(t, f.pod("told", "rail0"))
		left := r.assign(t, f.pod("left", "rail0"))
		time.Sleep(10 * time.Second)
		f.api.Refuse("create "+endpointsPath, http.StatusServiceUnavailable)
		untold := r.assign(t, f.pod("untold", "rail0"))
		f.use(told)
		f.use(untold)
		r.kill()
		f.disk.lose()
		f.api.Refuse("create "+endpointsPath, 0)

		r = f.ready(t)
		known := r.Assignments()
		if len(known) != 1 || known[0].Key != told.Key || addressesOf(&known[0]) != addressesOf(&told) {
			t.Errorf("known are %+v, want that of pod told", known)
		}
		free := map[string]bool{}
		for _, name := range []string{"b", "c", "d", "e"} {
			a := r.assign(t, f.pod(name, "rail0"))
			free[a.Addresses[0].Prefix.String()] = true
		}
		if free[told.Addresses[0].Prefix.String()] || free[untold.Addresses[0].Prefix.String()] || len(free) != 4 {
			t.Errorf("new pods got %v, though %s and %s are in use", free, addressesOf(&told), addressesOf(&untold))
		}
		if !free[left.Addresses[0].Prefix.String()] {
			t.Errorf("nobody got %s, which nobody has", addressesOf(&left))
		}
		if err := r.Release(t.Context(), told.Key, 0, nil); err != nil || len(r.Assignments()) != 4 {
			t.Errorf("error %v, and %d pods have addresses after the release of one, want 4", err, len(r.Assignments()))
		}
	})
}

// TestLostJournalUnseen wants a pod to keep its addresses over a lost journal
// that no namespace shows and that has a process, such as a virtual machine, and
// nothing to be given before it is known which pods have one.
func TestLostJournalUnseen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(2, 2))
		r := f.ready(t)
		a := r.assign(t, f.pod("a", "rail0"))
		time.Sleep(10 * time.Second)
		r.kill()
		f.disk.lose()
		f.run(holder.Assignment{})
		r = f.start(t)
		if err := r.refused(t, f.pod("b", "rail0")); !errors.Is(err, holder.ErrNotReady) {
			t.Errorf("error %v, want %v", err, holder.ErrNotReady)
		}
		f.mu.Lock()
		f.ask = nil
		f.mu.Unlock()
		f.run(a)
		time.Sleep(time.Minute)
		if b := r.assign(t, f.pod("b", "rail0")); addressesOf(&b) == addressesOf(&a) {
			t.Errorf("two pods have %s", addressesOf(&b))
		}
	})
}

// TestBlind wants an agent without a journal to give nothing while it cannot
// look into the namespaces of pods, and one with it to serve.
func TestBlind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(2, 6))
		f.look = syscall.EPERM
		r := f.start(t)
		if err := r.refused(t, f.pod("a", "rail0")); !errors.Is(err, holder.ErrNotReady) || !errors.Is(err, syscall.EPERM) {
			t.Errorf("error %v, want %v and %v", err, holder.ErrNotReady, syscall.EPERM)
		}
		if err := r.Ready(); !errors.Is(err, syscall.EPERM) {
			t.Errorf("it is not ready because of %v, want %v", err, syscall.EPERM)
		}
		f.mu.Lock()
		f.look = nil
		f.mu.Unlock()
		time.Sleep(time.Minute)
		f.api.Refuse("create "+endpointsPath, http.StatusServiceUnavailable)
		r.assign(t, f.pod("a", "rail0"))
		r.kill()
		f.look = syscall.EPERM
		f.api.Refuse("create "+endpointsPath, 0)
		f.start(t).assign(t, f.pod("b", "rail0"))
		time.Sleep(time.Minute)
		if f.api.Get(endpointOf("a")) == nil {
			t.Error("what was not published before the restart is not")
		}
	})
}

// TestReleaseBeforeOpen wants a release not to wait for good for an agent that
// cannot read its journal, and to say why that is.
func TestReleaseBeforeOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(2, 6))
		f.api.Leave()
		r := f.start(t)
		began := time.Now()
		err := r.Release(context.Background(), holder.Key{PodUID: "uid-a"}, 0, nil)
		if err == nil || !strings.Contains(err.Error(), "connection refused") || time.Since(began) > waitMost {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
	})
}

// TestNodeReplaced wants the agent to end where the node's object is another one.
func TestNodeReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(2, 6))
		r := f.ready(t)
		f.api.Set(nodesPath+"/n1", object{"metadata": object{"name": "n1", "uid": "another"}})
		time.Sleep(2 * collectEvery)
		select {
		case <-r.ended:
		default:
			t.Fatal("the agent goes on")
		}
		if !errors.Is(r.err, errReplaced) {
			t.Errorf("error %v, want %v", r.err, errReplaced)
		}
	})
}

// TestOneAgent wants a second agent not to open the journal of one that runs,
// and to go on where that ended.
func TestOneAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(2, 6))
		f.dir = filepath.Join(t.TempDir(), "addresses")
		first := f.ready(t)
		a := first.assign(t, f.pod("a", "rail0"))
		second := f.start(t)
		time.Sleep(time.Minute)
		if err := second.Ready(); !errors.Is(err, journal.ErrHeld) {
			t.Errorf("the second agent is not ready because of %v, want %v", err, journal.ErrHeld)
		}
		first.kill()
		if err := first.Release(t.Context(), a.Key, 0, nil); !errors.Is(err, errEnded) {
			t.Errorf("error %v of an agent that has ended, want %v", err, errEnded)
		}
		if err := first.refused(t, f.pod("b", "rail0")); !errors.Is(err, errEnded) {
			t.Errorf("error %v of an agent that has ended, want %v", err, errEnded)
		}
		time.Sleep(2 * time.Second)
		if again := second.assign(t, f.pod("a", "rail0")); again.Sequence != a.Sequence {
			t.Errorf("the pod got sequence %d, and had %d", again.Sequence, a.Sequence)
		}
	})
}

// TestEnd wants who waits for anything of an agent that ends to be told at once.
func TestEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(*fixture)
		wait   func(context.Context, *fixture, *running) error
	}{
		"for the journal": {func(f *fixture) { f.api.Leave() }, func(ctx context.Context, _ *fixture, r *running) error {
			return r.Release(ctx, holder.Key{PodUID: "uid-a"}, 0, nil)
		}},
		"until it is ready": {func(f *fixture) { f.look = syscall.EPERM }, func(ctx context.Context, _ *fixture, r *running) error {
			return r.AwaitReady(ctx)
		}},
		"for addresses": {func(*fixture) {}, func(ctx context.Context, f *fixture, r *running) error {
			_, err := r.Assign(ctx, f.pod("a", "rail1"))
			return err
		}},
		"for the publication": {func(f *fixture) {
			f.api.Refuse("create "+endpointsPath, http.StatusServiceUnavailable)
		}, func(ctx context.Context, f *fixture, r *running) error {
			request := f.pod("web-0", "rail0")
			request.Identity = web0
			_, err := r.Assign(ctx, request)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(newController(2, 6, 0))
				test.before(f)
				r := f.start(t)
				answer := make(chan error, 1)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				go func() { answer <- test.wait(ctx, f, r) }()
				time.Sleep(3 * time.Second)
				r.kill()
				synctest.Wait()
				select {
				case err := <-answer:
					if !errors.Is(err, errEnded) {
						t.Errorf("error %v, want %v", err, errEnded)
					}
				default:
					t.Error("it waits though the agent has ended")
					cancel()
					<-answer
				}
				if err := r.Ready(); !errors.Is(err, errEnded) {
					t.Errorf("it is not ready because of %v, want %v", err, errEnded)
				}
			})
		})
	}
}

// TestLease wants the lease to be made again where somebody deleted it, and an
// address that is wanted back to be given back.
func TestLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newController(4, 9)
		f := newFixture(c)
		r := f.ready(t)
		r.assign(t, f.pod("a", "rail0"))
		time.Sleep(10 * time.Second)
		f.api.Edit(leasesPath+"/n1", func(o object) {
			o["status"].(object)["pools"].([]any)[0].(object)["recall"] = 2
		})
		time.Sleep(10 * time.Millisecond) // less than a batch takes
		f.api.Change(func() {
			if c.returned != 2 {
				t.Errorf("the node gave back %d addresses, want 2", c.returned)
			}
		})
		f.api.Delete(leasesPath + "/n1")
		time.Sleep(time.Minute)
		if f.api.Get(leasesPath+"/n1") == nil {
			t.Error("the lease was not made again")
		}
	})
}

// TestNoCRDs wants an agent in a cluster without our kinds to wait for them
// quietly, and to begin once they are there.
func TestNoCRDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(4, 9))
		f.api.Missing = []string{leasesPath}
		r := f.start(t)
		time.Sleep(time.Hour)
		if asked := f.api.Count("list "+leasesPath) + f.api.Count("watch "+leasesPath); asked > 200 {
			t.Errorf("%d questions in an hour", asked)
		}
		f.api.Change(func() { f.api.Missing = nil })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := r.AwaitReady(ctx); err != nil {
			t.Error(err)
		}
	})
}
