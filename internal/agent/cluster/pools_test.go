package cluster

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"railhead/internal/kubetest"
	"railhead/internal/policy"
)

// changedPool is pool0 in some state: which range its spec has, of which generation
// that is, and how many addresses its status has in use.
func changedPool(ips string, generation, used int) content {
	o := poolOf("pool0", "10.0.0.0/24", ips)
	kubetest.Meta(o)["generation"] = generation
	o["status"] = content{"totalIPCount": used}
	return o
}

// TestPools wants a pool to be read again when its spec or its owner changed, and
// never for its status.
func TestPools(t *testing.T) {
	t.Parallel()
	owner := policy.Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ai", Name: "web", UID: "u"}
	const path = "get " + poolsPath + "/pool0"
	for name, isOld := range map[string]bool{"watch list": false, "list and watch": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := small()
			a.IsOld = isOld
			running(t, a, func(c *Cache) {
				for _, step := range []struct {
					name  string
					pool  func() content
					first string // address
					reads int
				}{
					{"status", func() content { return changedPool("10.0.0.9", 1, 7) }, "10.0.0.9", 0},
					{"status again", func() content { return changedPool("10.0.0.9", 1, 8) }, "10.0.0.9", 0},
					{"spec", func() content { return changedPool("10.0.0.30", 2, 8) }, "10.0.0.30", 1},
					{"status of the new spec", func() content { return changedPool("10.0.0.30", 2, 9) }, "10.0.0.30", 0},
					{"owner", func() content {
						o := changedPool("10.0.0.30", 3, 9)
						kubetest.Meta(o)["labels"] = owner.Labels()
						o["spec"].(content)["podAffinity"] = owner.Affinity() //nolint:forcetypeassert // it is made above
						return o
					}, "10.0.0.30", 1},
					{"labels of no owner", func() content {
						o := changedPool("10.0.0.30", 4, 9)
						kubetest.Meta(o)["labels"] = content{"x": "y"}
						return o
					}, "10.0.0.30", 1},
					{"another by its name", func() content {
						o := changedPool("10.0.0.40", 4, 0)
						kubetest.Meta(o)["uid"] = "another"
						return o
					}, "10.0.0.40", 1},
					{"without generations", func() content {
						o := changedPool("10.0.0.50", 0, 0)
						kubetest.Meta(o)["uid"] = "another"
						return o
					}, "10.0.0.50", 1},
				} {
					before := a.Count(path)
					a.set(poolsPath, step.pool())
					synctest.Wait()
					pool, ok := c.Catalog().Pool("pool0")
					if !ok || pool.Addresses.Ranges()[0].From().String() != step.first {
						t.Errorf("%s: pool %+v, %t, want %s first", step.name, pool, ok, step.first)
					}
					if n := a.Count(path) - before; n != step.reads {
						t.Errorf("%s: it was read %d times, want %d", step.name, n, step.reads)
					}
				}
				if c.owned.has("ai") {
					t.Error("a pool that is nobody's any more counts")
				}
				a.delete(poolsPath, "pool0")
				synctest.Wait()
				if _, ok := c.Catalog().Pool("pool0"); ok || len(c.pools.seen) > 0 {
					t.Error("a pool that is gone is known")
				}
			})
		})
	}
}

// TestPoolUnread wants a pool that cannot be read when it changed to be known soon
// after it can, and one that is gone meanwhile to be forgotten.
func TestPoolUnread(t *testing.T) {
	t.Parallel()
	const path = poolsPath + "/pool0"
	for name, status := range map[string]int{"gone": http.StatusNotFound, "forbidden": http.StatusForbidden, "failed": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := small()
			running(t, a, func(c *Cache) {
				a.Change(func() { a.Answers[path] = status })
				a.set(poolsPath, changedPool("10.0.0.30", 2, 0))
				synctest.Wait()
				if _, ok := c.Catalog().Pool("pool0"); ok != (status != http.StatusNotFound) {
					t.Errorf("the pool is known: %t", ok)
				}
				a.Change(func() { a.Answers = map[string]int{} })
				a.set(poolsPath, changedPool("10.0.0.40", 3, 0))
				after(5 * time.Minute)
				pool, ok := c.Catalog().Pool("pool0")
				if !ok || pool.Addresses.Ranges()[0].From().String() != "10.0.0.40" {
					t.Errorf("pool %+v, %t", pool, ok)
				}
			})
		})
	}
}
