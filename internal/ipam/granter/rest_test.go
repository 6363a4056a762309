package granter

import (
	"testing"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// A lease at rest, which does not change itself, is looked at again when
// something else does that concerns it.
func TestRestEnds(t *testing.T) {
	t.Parallel()
	pool := func(w *world, change func(*ipam.Pool)) {
		p := w.pools["a"]
		change(&p)
		w.pools["a"] = p
	}
	for name, c := range map[string]struct {
		change func(w *world)
		ok     func(p v1alpha1.LeasedPool) bool
	}{
		"the pool closes": {
			func(w *world) { pool(w, func(p *ipam.Pool) { p.Closed = "it is disabled" }) },
			func(p v1alpha1.LeasedPool) bool { return len(p.Revoke) > 0 },
		},
		"the pool is gone": {
			func(w *world) { delete(w.pools, "a") },
			func(p v1alpha1.LeasedPool) bool { return len(p.Revoke) > 0 },
		},
		"the pool serves it no more": {
			func(w *world) { pool(w, func(p *ipam.Pool) { p.Serves = func(string) bool { return false } }) },
			func(p v1alpha1.LeasedPool) bool { return len(p.Revoke) > 0 },
		},
		"the pool has other addresses": {
			func(w *world) { pool(w, func(p *ipam.Pool) { p.Addresses = ipam.SetOf(p.Addresses.Ranges()[:0]) }) },
			func(p v1alpha1.LeasedPool) bool { return len(p.Revoke) > 0 },
		},
		"another node lacks addresses": {
			func(w *world) { w.node("n2", 20, "a") },
			func(p v1alpha1.LeasedPool) bool { return p.Recall > 0 && p.Reserve == 0 },
		},
		"another node names its address": {
			func(w *world) {
				w.node("n2", 0)
				w.spec("n2", func(l *v1alpha1.AddressLease) {
					l.Spec.Exact = []v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.1.0.1"}}}
				})
			},
			func(p v1alpha1.LeasedPool) bool { return len(p.Revoke) == 1 && p.Revoke[0] == "10.1.0.1" },
		},
		"another leader granted it more": {
			func(w *world) {
				l := w.ledgers["a"].DeepCopy()
				l.Spec.Epoch++
				l.Spec.Runs = append(l.Spec.Runs, v1alpha1.Run{Addresses: "10.1.0.20", Node: "n1", Epoch: l.Spec.Epoch})
				l.ResourceVersion = w.next()
				w.ledgers["a"] = l
				w.node("n2", 9, "a") // so that the ledger is written, and found to be another one
			},
			func(p v1alpha1.LeasedPool) bool { return len(p.Grants) == 2 },
		},
		"it is fenced": {
			func(w *world) { w.nodes["n1"] = Node{"uid-n1", true} },
			func(p v1alpha1.LeasedPool) bool { return len(p.Grants) == 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.20")
			w.node("n1", 2, "a")
			w.calm()
			if l := w.g.leases["n1"]; l.rest == nil {
				t.Fatal("the lease is not at rest")
			}
			c.change(w)
			w.calm()
			if p := w.leased("n1", "a"); !c.ok(p) {
				t.Errorf("%+v", p)
			}
		})
	}
}
