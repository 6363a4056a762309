package granter

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// world is a cluster and one granter in it.
type world struct {
	*store

	t     testing.TB
	g     *Granter
	pools map[string]ipam.Pool
	nodes map[string]Node
	view  func(*View)
	// behind says that the granter has not seen the last writes of another one.
	behind bool
	news   []News // of the rounds of calm
	old    ipam.Pool
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	return &world{store: newStore(), t: tb, pools: map[string]ipam.Pool{}, nodes: map[string]Node{}}
}

func (w *world) pool(name, subnet string, addresses ...string) {
	w.t.Helper()
	set, err := ipam.ParseRanges(addresses)
	if err != nil {
		w.t.Fatal(err)
	}
	w.pools[name] = ipam.Pool{Name: name, UID: types.UID("uid-" + name), Subnet: netip.MustParsePrefix(subnet), Addresses: set}
}

// node adds a node that wants addresses of pools, each "pool" the same number.
func (w *world) node(name string, n int64, pools ...string) {
	w.nodes[name] = Node{UID: types.UID("uid-" + name)}
	w.spec(name, func(l *v1alpha1.AddressLease) {
		l.Spec.Wants = nil
		for _, p := range pools {
			l.Spec.Wants = append(l.Spec.Wants, v1alpha1.Want{Pool: p, Addresses: n})
		}
		l.Spec.Groups = []v1alpha1.Group{{Pools: pools}}
	})
}

func (w *world) look() View {
	v := View{Pools: w.pools, Nodes: w.nodes, Now: time.Unix(1_700_000_000, 0)}
	for _, l := range w.leases {
		v.Leases = append(v.Leases, l.DeepCopy())
	}
	slices.SortFunc(v.Leases, func(a, b *v1alpha1.AddressLease) int { return cmp.Compare(a.Name, b.Name) })
	v.Touched = map[string]string{}
	for name, l := range w.ledgers {
		if _, said := l.Annotations[v1alpha1.AnnotationRelease]; said || l.DeletionTimestamp != nil {
			v.Touched[name] = l.Spec.Pool
		}
	}
	if w.view != nil {
		w.view(&v)
	}
	return v
}

func (w *world) granter() *Granter {
	if w.g == nil {
		w.g = New(w.store, Options{})
	}
	return w.g
}

// round is one round, which has no errors.
func (w *world) round() Report {
	w.t.Helper()
	report, err := w.granter().Round(w.t.Context(), w.look())
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// settle has rounds until nothing is to be done.
func (w *world) settle() Report {
	w.t.Helper()
	for range 10 {
		before := w.version
		report := w.round()
		if w.version == before && !report.Again {
			return report
		}
	}
	w.t.Fatal("rounds do not come to an end")
	return Report{}
}

// holds is what the status of a lease grants of a pool.
func (w *world) holds(node, pool string) *netipx.IPSet {
	var build netipx.IPSetBuilder
	for _, p := range w.leases[node].Status.Pools {
		for _, g := range p.Grants {
			for _, text := range g.Addresses {
				r, err := ipam.ParseRange(text)
				if p.Pool != pool {
					continue
				}
				if err != nil {
					w.t.Fatal(err)
				}
				build.AddRange(r)
			}
		}
	}
	set, _ := build.IPSet()
	return set
}

func (w *world) leased(node, pool string) v1alpha1.LeasedPool {
	for _, p := range w.leases[node].Status.Pools {
		if p.Pool == pool {
			return p
		}
	}
	return v1alpha1.LeasedPool{}
}

// giveBack has a node return n addresses of a pool, the lowest of its grants.
func (w *world) giveBack(node, pool string, n int64, quarantine string) {
	w.spec(node, func(l *v1alpha1.AddressLease) {
		for _, g := range w.leased(node, pool).Grants {
			set, _ := ipam.ParseRanges(g.Addresses)
			lowest := ipam.StockOf(set.Ranges()).Take(n, nil)
			if n -= ipam.CountList(lowest); len(lowest) > 0 {
				l.Spec.Returns = append(l.Spec.Returns, v1alpha1.Return{Pool: pool, Epoch: g.Epoch, Addresses: ipam.FormatList(lowest), Quarantine: quarantine})
			}
		}
	})
}

// runs is the runs of all ledgers of a pool, "addresses holder" each.
func (w *world) runs(pool string) []string {
	var out []string
	for _, name := range sortedKeys(w.ledgers) {
		l := w.ledgers[name]
		for _, run := range l.Spec.Runs {
			if l.Spec.Pool != pool {
				continue
			}
			text := run.Addresses + " " + run.Node + run.Identity
			if run.Target != "" {
				text += ">" + run.Target
			}
			if run.Doubtful {
				text += "?"
			}
			if run.Quarantine != nil {
				text += "quarantine: " + run.Quarantine.Reason
			}
			out = append(out, text)
		}
	}
	return out
}
