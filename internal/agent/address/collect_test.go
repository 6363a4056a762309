package address

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"railhead/internal/ipam/holder"
	"railhead/internal/kubetest"
)

// TestCollect wants what a pod left behind to come back once that is sure, in two
// looks some minutes apart, and never before or on half a word.
func TestCollect(t *testing.T) {
	t.Parallel()
	path := podsPath + "/a"
	phase := func(phase string) func(*fixture, holder.Assignment) {
		return func(f *fixture, _ holder.Assignment) {
			f.api.Edit(path, func(o object) { o["status"] = object{"phase": phase} })
		}
	}
	for name, test := range map[string]struct {
		happens func(f *fixture, a holder.Assignment)
		stays   bool
	}{
		"nothing":   {func(*fixture, holder.Assignment) {}, true},
		"deleted":   {func(f *fixture, _ holder.Assignment) { f.api.Delete(path) }, false},
		"succeeded": {phase("Succeeded"), false},
		"failed":    {phase("Failed"), false},
		"pending":   {phase("Pending"), true},
		"unknown":   {phase("Unknown"), true},
		"another of its name": {func(f *fixture, _ holder.Assignment) {
			f.api.Edit(path, func(o object) { kubetest.Meta(o)["uid"] = "uid-2" })
		}, false},
		"a static pod": {func(f *fixture, _ holder.Assignment) {
			f.api.Edit(path, func(o object) {
				kubetest.Meta(o)["uid"] = "uid-mirror"
				kubetest.Meta(o)["annotations"] = object{mirror: "uid-a"}
			})
		}, true},
		"deleted, its namespace is there": {func(f *fixture, a holder.Assignment) {
			f.api.Delete(path)
			f.use(a)
		}, true},
		"deleted, a process of it is there": {func(f *fixture, a holder.Assignment) {
			f.api.Delete(path)
			f.run(a)
		}, true},
		"processes cannot be looked at": {func(f *fixture, _ holder.Assignment) {
			f.api.Delete(path)
			f.run(holder.Assignment{})
		}, true},
		"the API server is away": {func(f *fixture, _ holder.Assignment) {
			f.api.Delete(path)
			f.api.Leave()
		}, true},
		"the pod alone cannot be read": {func(f *fixture, _ holder.Assignment) {
			f.api.Delete(path)
			f.api.Refuse(podsPath, http.StatusServiceUnavailable)
		}, true},
		"namespaces cannot be looked into": {func(f *fixture, _ holder.Assignment) {
			f.api.Delete(path)
			f.mu.Lock()
			f.look = errTest
			f.mu.Unlock()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(newController(4, 9, 9))
				r := f.ready(t)
				a := r.assign(t, f.pod("a", "rail0", "rail1"))
				other := r.assign(t, f.pod("b", "rail0", "rail1"))
				time.Sleep(10 * time.Second)
				test.happens(f, a)
				time.Sleep(collectAfter)
				if left := r.Assignments(); len(left) != 2 {
					t.Errorf("left are %+v before the time, want both", left)
				}
				time.Sleep(2 * collectEvery)
				left := r.Assignments()
				if !test.stays {
					if len(left) != 1 || left[0].Key != other.Key {
						t.Errorf("left are %+v, want those of pod b alone", left)
					}
					return
				}
				if len(left) != 2 {
					t.Errorf("left are %+v, want both", left)
				}
			})
		})
	}
}

// TestCollectOneBad wants a pod that cannot be asked about to keep its addresses,
// and none of those of the others.
func TestCollectOneBad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(4, 9, 9))
		r := f.ready(t)
		for _, name := range []string{"a", "b", "c"} {
			request := f.pod(name, "rail0")
			if name == "b" {
				request.Pod.Namespace = "secret"
			}
			r.assign(t, request)
			f.api.Delete(podsPath + "/" + name)
		}
		f.api.Refuse("/api/v1/namespaces/secret/pods", http.StatusServiceUnavailable)
		time.Sleep(collectAfter + 2*collectEvery)
		if left := r.Assignments(); len(left) != 1 || left[0].Pod.Name != "b" {
			t.Errorf("left are %+v, want that of pod b alone", left)
		}
	})
}

// TestCollectTwice wants a pod that was only overlooked once to keep its
// addresses, and one that is gone to be looked at for long enough.
func TestCollectTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(4, 9))
		r := f.ready(t)
		a := r.assign(t, f.pod("a", "rail0"))
		c, all := collector{service: r.Service, gone: map[holder.Key]time.Time{}}, r.Assignments()
		look := func(want int) {
			t.Helper()
			if list, err := c.candidates(t.Context(), all); err != nil || len(list) != want {
				t.Errorf("candidates %+v, error %v, want %d", list, err, want)
			}
		}
		pod := f.api.Get(podsPath + "/a")
		f.api.Delete(podsPath + "/a")
		look(0)
		time.Sleep(collectAfter - time.Second)
		look(0)
		f.api.Set(podsPath+"/a", pod)
		look(0)
		f.api.Delete(podsPath + "/a")
		time.Sleep(2 * time.Second)
		look(0) // anew
		time.Sleep(collectAfter)
		look(1)
		time.Sleep(collectEvery)
		if left := r.Assignments(); len(left) != 0 {
			t.Errorf("left are %+v, want none", left)
		}
		if b := r.assign(t, f.pod("b", "rail0")); b.Sequence <= a.Sequence {
			t.Errorf("sequence %d after %d", b.Sequence, a.Sequence)
		}
	})
}

// TestCollectNewer wants a sandbox that took over to be left alone where the pod
// was seen to be gone before it.
func TestCollectNewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(4, 9))
		r := f.ready(t)
		request := f.pod("a", "rail0")
		r.assign(t, request)
		c := collector{service: r.Service, gone: map[holder.Key]time.Time{}}
		f.api.Delete(podsPath + "/a")
		if err := c.collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(collectAfter)
		candidates, err := c.candidates(t.Context(), r.Assignments())
		if err != nil || len(candidates) != 1 {
			t.Fatalf("candidates %+v, error %v, want pod a", candidates, err)
		}
		request.Sandbox = "second"
		r.assign(t, request)
		if err := c.release(t.Context(), candidates[0], nil); err != nil {
			t.Fatal(err)
		}
		if left := r.Assignments(); len(left) != 1 || left[0].Sandbox != "second" {
			t.Errorf("left are %+v, want that of the second sandbox", left)
		}
	})
}
