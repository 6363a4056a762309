package ipambench

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"railhead/test/api"
)

func TestMain(m *testing.M) {
	api.Launch()
	ctrl.SetLogger(logr.Discard()) // the controller has a logger of its own
	os.Exit(m.Run())
}

// TestBudgets prints the table, and fails where a budget is missed. Parts of it
// can be run by themselves, with the set-up.
func TestBudgets(t *testing.T) {
	if os.Getenv("RAILHEAD_BENCH") == "" {
		t.Skip("takes minutes and judges times: make bench-ipam")
	}
	s := api.Require(t)
	var (
		tab   table
		f     *fleet
		peers = map[[2]int]replayed{}
	)
	t.Run("one map", func(t *testing.T) { replays(t, s, &tab, peers) })
	t.Run("set-up", func(*testing.T) { f = newFleet(t, s, 100) })
	t.Run("rate", func(t *testing.T) { f.rates(t, &tab, peers) })
	t.Run("wait", func(t *testing.T) { f.latencies(t, &tab, peers) })
	t.Run("size", func(t *testing.T) { f.bySize(t, &tab) })
	t.Run("all", func(t *testing.T) { f.everything(t, &tab) })
	if err := tab.print(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if tab.missed > 0 {
		t.Errorf("%d budgets are missed", tab.missed)
	}
}

// writers are how many nodes allocate at once from one object.
func writers() []int { return []int{1, 8, 32} }

// replays measures the other way, by records and writers.
func replays(t *testing.T, s *api.Server, tab *table, peers map[[2]int]replayed) {
	t.Helper()
	for _, records := range []int{0, 1000, 2500} {
		for _, w := range writers() {
			r := replay{config: s.Config, scheme: api.Scheme(), records: records, writers: w, rails: 1, lasts: 3 * time.Second}
			got, err := r.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			peers[[2]int{records, w}] = got
			tab.add(fmt.Sprintf("%d records, %d writers", records, w), "", got.String(), "")
		}
	}
}

// rates are addresses a second, by how many nodes ask at once. They are set
// against a pool of 1,000 records, and the number of writers next to theirs.
func (f *fleet) rates(t *testing.T, tab *table, peers map[[2]int]replayed) {
	t.Helper()
	for i, c := range []struct{ agents, pods, writers int }{{1, 200, 1}, {10, 50, 8}, {100, 20, 32}} {
		got := f.rate(t, i, c.agents, c.pods)
		peer := peers[[2]int{1000, c.writers}]
		what := fmt.Sprintf("%d agents: addresses granted and assigned", c.agents)
		theirs, ratio := figure(peer.perSecond())+"/s", times(got.perSecond(), peer.perSecond())
		if c.agents < 100 {
			tab.add(what, figure(got.perSecond())+"/s", theirs, ratio)
		} else {
			tab.least(what, got.perSecond(), 5000, "/s", theirs, ratio)
		}
		perWrite := float64(got.addresses()) / float64(max(got.ledgerWrites(), 1))
		what = fmt.Sprintf("%d agents: addresses a write of a ledger", c.agents)
		if c.agents < 100 {
			tab.add(what, figure(perWrite), "1", times(perWrite, 1))
		} else {
			tab.least(what, perWrite, 50, "", "1", times(perWrite, 1))
		}
		tab.add(fmt.Sprintf("%d agents: a pod's wait, middle and 99 %%", c.agents),
			milliseconds(at(got.each, 0.5))+", "+milliseconds(at(got.each, 0.99)),
			milliseconds(at(peer.each, 0.5)*rails)+" for 8 addresses", times(float64(at(peer.each, 0.5)*rails), float64(at(got.each, 0.5))))
	}
}

// latencies are for how long a pod waits.
func (f *fleet) latencies(t *testing.T, tab *table, peers map[[2]int]replayed) {
	t.Helper()
	w := f.wait(t, 3, 20, 5)
	peer := at(peers[[2]int{1000, 1}].each, 0.5) * rails
	for _, c := range []struct {
		what string
		each []time.Duration
	}{{"8 addresses that have to be granted, middle and 99 %", w.granted}, {"8 addresses of the reserve, middle and 99 %", w.reserved}} {
		middle := at(c.each, 0.5)
		tab.add(c.what, milliseconds(middle)+", "+milliseconds(at(c.each, 0.99)), milliseconds(peer), times(float64(peer), float64(middle)))
	}
	tab.most("8 addresses of the reserve: pods that needed the API server", float64(w.needy), 0, "", "", "")
}

// bySize is what an address costs by the size of its pool. CPU time and bytes are
// held against the budget: both tell a pool's size from whatever else the machine does.
func (f *fleet) bySize(t *testing.T, tab *table) {
	t.Helper()
	all := sizes(6)
	got := f.flat(t, all, 10, 20)
	for i, s := range all {
		tab.add("pool of a "+s.name+": an address", fmt.Sprintf("%s/s, %s of CPU, %s", figure(got[i].perSecond), microseconds(got[i].cpu), kilobytes(got[i].bytes)), "", "")
	}
	spread := func(of func(sized) float64) float64 {
		by := func(a, b sized) int { return cmp.Compare(of(a), of(b)) }
		return of(slices.MaxFunc(got, by)) / of(slices.MinFunc(got, by))
	}
	tab.most("dearest size of a pool beside cheapest, CPU", spread(func(s sized) float64 { return s.cpu }), 1.5, " x", "", "")
	tab.most("dearest size of a pool beside cheapest, bytes", spread(func(s sized) float64 { return s.bytes }), 1.5, " x", "", "")
}

// everything is 10,000 pods with 8 addresses each on 100 nodes, until each is
// published.
func (f *fleet) everything(t *testing.T, tab *table) {
	t.Helper()
	const each = 100
	pools := f.rails(t, "all", 4)
	requests := f.pods(t, "all", f.agents, each, pools)
	ours, theirs, began := f.agentSide.Sum(), f.controller.Sum(), time.Now()
	got := f.start(t, f.agents, requests)
	pods := float64(len(f.agents) * each)
	f.awaitEndpoints(t, int(pods))
	published := time.Since(began)
	agents, controller := f.agentSide.Sum().Since(ours), f.controller.Sum().Since(theirs)

	tab.add("10,000 pods x 8 rails, 100 nodes: addresses assigned", figure(got.perSecond())+"/s", "", "")
	tab.add("10,000 pods: until assigned, until published", fmt.Sprintf("%.1f s, %.1f s", got.took.Seconds(), published.Seconds()), "", "")
	tab.most("10,000 pods: waited a minute in vain", float64(got.refused), 0, "", "", "")
	tab.least("10,000 pods: addresses a write of a ledger", float64(got.addresses())/float64(max(got.ledgerWrites(), 1)), 50, "", "1", "")
	tab.most("10,000 pods: requests of agents a pod", float64(agents.Count())/pods, 2, "", "24", times(24*pods, float64(agents.Count())))
	tab.add("10,000 pods: requests of the controller a pod", figure(float64(controller.Count())/pods), "", "")
	tab.add("10,000 pods: bytes of agents, of the controller, a pod",
		kilobytes(float64(agents.Bytes)/pods)+", "+kilobytes(float64(controller.Bytes)/pods), "", "")
	t.Logf("requests of agents: %v\nof the controller: %v", agents.Requests, controller.Requests)
	f.end(t, f.agents, got)
}
