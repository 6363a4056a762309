package granter

import (
	"fmt"
	"testing"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// benchSubnets are pools of several sizes: what a round costs does not follow them.
var benchSubnets = []struct{ name, subnet, addresses string }{
	{"16", "10.%d.0.0/16", "10.%[1]d.0.1-10.%[1]d.255.254"},
	{"8", "%d.0.0.0/8", "%[1]d.0.0.1-%[1]d.255.255.254"},
	{"64", "fd00:%d::/64", "fd00:%[1]d::1-fd00:%[1]d::ffff:ffff:ffff:fffe"},
}

// BenchmarkRound is rounds over leases of 8 pools with nothing to do. A /24 is
// for few nodes only.
func BenchmarkRound(b *testing.B) {
	b.Run("pools=24/leases=100", func(b *testing.B) {
		benchRest(b, "10.%d.0.0/24", "10.%[1]d.0.1-10.%[1]d.0.254", 100)
	})
	for _, subnet := range benchSubnets {
		for _, nodes := range []int{100, 1000} {
			b.Run(fmt.Sprintf("pools=%s/leases=%d", subnet.name, nodes), func(b *testing.B) {
				benchRest(b, subnet.subnet, subnet.addresses, nodes)
			})
		}
	}
}

func benchRest(b *testing.B, subnet, addresses string, nodes int) {
	b.Helper()
	w := benchWorld(b, subnet, addresses, nodes)
	view, version := w.look(), w.version
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.g.Round(b.Context(), view); err != nil {
			b.Fatal(err)
		}
	}
	if w.version != version {
		b.Error("there was something to do")
	}
}

// BenchmarkGrant is rounds in which a tenth of the nodes get 16 addresses more
// of each of 8 pools, and those that got them in the round before give them back.
func BenchmarkGrant(b *testing.B) {
	for _, subnet := range benchSubnets {
		for _, nodes := range []int{100, 1000} {
			b.Run(fmt.Sprintf("pools=%s/leases=%d", subnet.name, nodes), func(b *testing.B) {
				benchGrant(b, benchWorld(b, subnet.subnet, subnet.addresses, nodes), nodes)
			})
		}
	}
}

// more is how many addresses more a node wants when it is its turn.
const more = 16

func benchGrant(b *testing.B, w *world, nodes int) {
	b.Helper()
	writes, granted, turn := w.writes["ledger"]+w.writes["create"], 0, 0
	for b.Loop() {
		b.StopTimer()
		for i := range nodes / 10 {
			w.benchMore(fmt.Sprintf("node%d", turn%10+i*10))
			w.benchLess(fmt.Sprintf("node%d", (turn+9)%10+i*10))
		}
		turn++
		view := w.look()
		b.StartTimer()
		report, err := w.g.Round(b.Context(), view)
		if err != nil {
			b.Fatal(err)
		}
		granted += report.Granted
	}
	if granted < b.N*nodes/10*8*more {
		b.Errorf("%d grants in %d rounds: want %d addresses for each of 8 pools of each tenth node", granted, b.N, more)
	}
	writes = w.writes["ledger"] + w.writes["create"] - writes
	b.ReportMetric(float64(granted)/float64(b.N), "grants/op")
	b.ReportMetric(float64(writes)/float64(b.N), "ledger-writes/op")
	b.ReportMetric(float64(granted)/float64(writes), "grants/ledger-write")
	b.ReportMetric(float64(granted)/b.Elapsed().Seconds(), "grants/s")
}

// benchMore has a node want more than it holds, its reserve included. What it
// gave back before is gone from its status.
func (w *world) benchMore(node string) {
	w.spec(node, func(l *v1alpha1.AddressLease) {
		l.Spec.Returns = nil
		for i := range l.Spec.Wants {
			l.Spec.Wants[i].Addresses = ipam.Count(w.holds(node, l.Spec.Wants[i].Pool)) + more
		}
	})
}

// benchLess has a node want what it did first, and give back the rest.
func (w *world) benchLess(node string) {
	w.spec(node, func(l *v1alpha1.AddressLease) {
		l.Spec.Returns = nil
		for i := range l.Spec.Wants {
			l.Spec.Wants[i].Addresses = 2
		}
	})
	for _, p := range w.leases[node].Status.Pools {
		if n := ipam.Count(w.holds(node, p.Pool)); n > 2+more {
			w.giveBack(node, p.Pool, n-2, "")
		}
	}
}

func benchWorld(b *testing.B, subnet, addresses string, nodes int) *world {
	b.Helper()
	w := newWorld(b)
	var pools []string
	for i := range 8 {
		name := fmt.Sprintf("rail%d", i)
		w.pool(name, fmt.Sprintf(subnet, 11+i), fmt.Sprintf(addresses, 11+i))
		pools = append(pools, name)
	}
	for i := range nodes {
		w.node(fmt.Sprintf("node%d", i), 2, pools...)
	}
	w.settle()
	return w
}

// BenchmarkManyPools is a round in which one node gets an address more of one of
// 500 pools of one subnet, as applications have them.
func BenchmarkManyPools(b *testing.B) {
	w := newWorld(b)
	for i := range 500 {
		w.pool(fmt.Sprintf("app%d", i), "10.1.0.0/16", fmt.Sprintf("10.1.%d.%d-10.1.%[1]d.%d", i/16, i%16*16, i%16*16+15))
		w.node(fmt.Sprintf("node%d", i%100), 1, fmt.Sprintf("app%d", i))
	}
	for i := range 100 {
		w.node(fmt.Sprintf("node%d", i), 2, fmt.Sprintf("app%d", i), fmt.Sprintf("app%d", i+100), fmt.Sprintf("app%d", i+200), fmt.Sprintf("app%d", i+300), fmt.Sprintf("app%d", i+400))
	}
	w.settle()
	n := int64(0)
	for b.Loop() {
		b.StopTimer()
		n++
		w.spec("node7", func(l *v1alpha1.AddressLease) { l.Spec.Wants[0].Addresses = 2 + n%2*10 })
		view := w.look()
		b.StartTimer()
		if _, err := w.g.Round(b.Context(), view); err != nil {
			b.Fatal(err)
		}
	}
}
