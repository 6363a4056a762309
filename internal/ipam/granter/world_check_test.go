package granter

import (
	"go4.org/netipx"

	"railhead/internal/ipam"
)

// check says what must be true after every round: no address that its node does
// not give back is shown to two, unless an identity moves between them.
func (w *world) check() {
	w.t.Helper()
	type shown struct {
		node, identity string
		ranges         []netipx.IPRange
	}
	var all []shown
	for _, node := range sortedKeys(w.leases) {
		for _, p := range w.leases[node].Status.Pools {
			for _, g := range p.Grants {
				set, err := ipam.ParseRanges(g.Addresses)
				if err != nil {
					w.t.Fatal(err)
				}
				rest := ipam.Without(set.Ranges(), w.returned(node, p.Pool, g.Epoch))
				all = append(all, shown{node, g.Identity, rest})
			}
		}
	}
	for i, a := range all {
		for _, b := range all[:i] {
			both := ipam.Common(a.ranges, b.ranges)
			if len(both) > 0 && (a.identity == "" || a.identity != b.identity || a.node == b.node) {
				w.t.Fatalf("%s and %s both hold %v", a.node, b.node, ipam.FormatList(both))
			}
		}
	}
}

// returned is what a node gives back of one grant.
func (w *world) returned(node, pool string, epoch int64) []netipx.IPRange {
	var all []netipx.IPRange
	for _, back := range w.leases[node].Spec.Returns {
		if set, err := ipam.ParseRanges(back.Addresses); err == nil && back.Pool == pool && back.Epoch == epoch {
			all = append(all, set.Ranges()...)
		}
	}
	return ipam.Merged(all)
}

// calm has rounds until nothing is to be done and nothing fails, and checks
// after each of them.
func (w *world) calm() {
	w.t.Helper()
	var last error
	for range 20 {
		before := w.version
		report, err := w.granter().Round(w.t.Context(), w.look())
		w.check()
		w.news = append(w.news, report.News...)
		if last = err; err == nil && w.version == before && !report.Again {
			w.nothingLeft()
			return
		}
	}
	w.t.Fatalf("rounds do not come to an end: %v", last)
}

// nothingLeft checks that leases at rest are so for a reason, and that another
// leader finds nothing to do.
func (w *world) nothingLeft() {
	w.t.Helper()
	fault := w.fault
	w.fault = nil
	for _, l := range w.g.leases {
		l.rest = nil
	}
	leaders := []*Granter{w.g}
	if !w.behind {
		leaders = append(leaders, New(w.store, Options{}))
	}
	for _, g := range leaders {
		before := w.version
		if _, err := g.Round(w.t.Context(), w.look()); err != nil || w.version != before {
			w.t.Fatalf("something was left to be done; error %v", err)
		}
	}
	w.fault = fault
}
