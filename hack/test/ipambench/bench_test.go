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

	"railhead/hack/test/api"
)

func TestMain(m *testing.M) {
	api.Launch()
	ctrl.SetLogger(logr.Discard()) // the controller has a logger of its own
	os.Exit(m.Run())
}

// TestBudgets prints the table, and fails where a budget is missed. Parts of it
// can be run by themselves.
func TestBudgets(t *testing.T) {
	if os.Getenv("RAILHEAD_BENCH") == "" {
		t.Skip("takes minutes and judges times: make bench-ipam")
	}
	s := api.RequireSynced(t)
	var (
		tab   table
		peers = replays{}
	)
	t.Run("one map", func(t *testing.T) { peers.run(t, s, &tab) })
	f := newFleet(t, s, 100) // of all parts that follow, so that what it cannot do ends all of them
	t.Run("rate", func(t *testing.T) { f.rates(t, &tab, peers) })
	t.Run("wait", func(t *testing.T) { f.latencies(t, &tab, peers) })
	t.Run("size", func(t *testing.T) { f.bySize(t, &tab) })
	t.Run("all", func(t *testing.T) { f.everything(t, &tab, peers) })
	fmt.Printf("etcd and agents sync their disk, which has the file system %s\n", fileSystem(t, t.TempDir()))
	if err := tab.print(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if tab.missed > 0 {
		t.Errorf("%d budgets are missed", tab.missed)
	}
}

// Pods that get their addresses at once from one object each: of one node, and of
// ten. As many as of 100 nodes at once, 1,600, would take that many minutes.
const (
	oneNode  = podsAtOnce
	tenNodes = 10 * podsAtOnce
)

// replays are measurements of the other way.
type replays map[replay]replayed

// run measures it by records and writers of one pool, and then with as many rails
// as pods have here, out of pools that are empty at first, as ours are.
func (p replays) run(t *testing.T, s *api.Server, tab *table) {
	t.Helper()
	var all []replay
	for _, records := range []int{0, 1000, 2500} {
		for _, writers := range []int{1, 32} {
			all = append(all, replay{records: records, writers: writers, rails: 1})
		}
	}
	for _, writers := range []int{1, oneNode, tenNodes} {
		all = append(all, replay{writers: writers, rails: rails})
	}
	for _, r := range all {
		got, err := r.run(t.Context(), s.Config, api.Scheme())
		if err != nil {
			t.Fatal(err)
		}
		p[r] = got
		t.Logf("%s: %s", r.name(), got)
		tab.add(r.name(), "", got.String(), "")
	}
}

// of is a measurement with all rails and empty pools; without one, its figures are
// no numbers.
func (p replays) of(writers int) replayed { return p[replay{writers: writers, rails: rails}] }

// rates are addresses a second, by how many nodes ask at once: until they are
// assigned, which is when a pod goes on, and until they are published, which the
// other way a pod waits for.
func (f *fleet) rates(t *testing.T, tab *table, peers replays) {
	t.Helper()
	for i, c := range []struct{ agents, pods, writers int }{{1, 200, oneNode}, {10, 50, tenNodes}, {100, 20, tenNodes}} {
		got, peer := f.rate(t, i, c.agents, c.pods), peers.of(c.writers)
		who := fmt.Sprintf("%d agents x %d pods at once: ", c.agents, podsAtOnce)
		beside := fmt.Sprintf(", %d writers", c.writers)
		perWrite := got.perWrite(t)
		if c.agents < 100 {
			tab.add(who+"addresses assigned", figure(got.perSecond())+"/s", "", "")
			tab.add(who+"addresses a write of a ledger", figure(perWrite), figure(peer.perWrite())+beside, times(perWrite, peer.perWrite()))
		} else {
			tab.least(who+"addresses assigned", got.perSecond(), 5000, "/s", "", "")
			tab.least(who+"addresses a write of a ledger", perWrite, 50, "", figure(peer.perWrite())+beside, times(perWrite, peer.perWrite()))
		}
		tab.add(who+"addresses assigned and published", figure(got.publishedPerSecond())+"/s",
			figure(peer.perSecond())+"/s"+beside, times(got.publishedPerSecond(), peer.perSecond()))
		tab.add(who+"a pod's wait, middle and 99 %", milliseconds(at(got.each, 0.5))+", "+milliseconds(at(got.each, 0.99)),
			figure(peer.wait())+" ms"+beside, times(peer.wait(), at(got.each, 0.5).Seconds()*1e3))
	}
}

// latencies are for how long a pod waits that comes alone.
func (f *fleet) latencies(t *testing.T, tab *table, peers replays) {
	t.Helper()
	w, peer := f.wait(t, 3, 20, 5), peers.of(1)
	for _, c := range []struct {
		what string
		each []time.Duration
	}{{"8 addresses that have to be granted, middle and 99 %", w.granted}, {"8 addresses of the reserve, middle and 99 %", w.reserved}} {
		middle := at(c.each, 0.5)
		tab.add(c.what, milliseconds(middle)+", "+milliseconds(at(c.each, 0.99)), figure(peer.wait())+" ms, 1 writer", times(peer.wait(), middle.Seconds()*1e3))
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
		tab.add("pool of a "+s.name+": an address, its bytes of agents and of the controller", fmt.Sprintf("%s/s, %s of CPU, %s, %s", figure(got[i].perSecond),
			microseconds(got[i].cpu), kilobytes(got[i].agentBytes), kilobytes(got[i].controllerBytes)), "", "")
	}
	for _, c := range []struct {
		what string
		of   func(sized) float64
	}{
		{"CPU", func(s sized) float64 { return s.cpu }},
		{"bytes of agents", func(s sized) float64 { return s.agentBytes }},
		{"bytes of the controller", func(s sized) float64 { return s.controllerBytes }},
	} {
		by := func(a, b sized) int { return cmp.Compare(c.of(a), c.of(b)) }
		dearest, cheapest := slices.MaxFunc(got, by), slices.MinFunc(got, by)
		tab.most("dearest size of a pool beside cheapest, "+c.what, c.of(dearest)/c.of(cheapest), 1.5, " x", "", "")
	}
}

// everything is 10,000 pods with 8 addresses each on 100 nodes, until each is
// published.
func (f *fleet) everything(t *testing.T, tab *table, peers replays) {
	t.Helper()
	const each = 100
	pools := f.rails(t, "all", 4)
	requests := f.pods(t, "all", f.agents, each, pools)
	ours, theirs := f.agentSide.Sum(), f.controller.Sum()
	got := f.startAll(t, f.agents, requests)
	pods := float64(len(f.agents) * each)
	agents, controller := f.agentSide.Sum().Since(ours), f.controller.Sum().Since(theirs)
	if float64(agents.Count("POST", "spiderendpoints")) < pods {
		t.Errorf("%.0f pods are published, and the requests that were counted are %v", pods, agents.Requests)
	}
	peer, perPod, perWrite := peers.of(tenNodes), float64(agents.Count())/pods, got.perWrite(t)
	beside := fmt.Sprintf(", %d writers", tenNodes)

	tab.add("10,000 pods x 8 rails, 100 nodes: addresses assigned", figure(got.perSecond())+"/s", "", "")
	tab.add("10,000 pods: until assigned, until published", fmt.Sprintf("%.1f s, %.1f s", got.took.Seconds(), got.published.Seconds()), "", "")
	tab.most("10,000 pods: waited a minute in vain", float64(got.refused), 0, "", "", "")
	tab.least("10,000 pods: addresses a write of a ledger", perWrite, 50, "", figure(peer.perWrite())+beside, times(perWrite, peer.perWrite()))
	tab.most("10,000 pods: requests of agents a pod", perPod, 2, "", figure(peer.perPod())+beside, times(peer.perPod(), perPod))
	tab.add("10,000 pods: requests of the controller a pod", figure(float64(controller.Count())/pods), "", "")
	tab.add("10,000 pods: bytes of agents, of the controller, a pod",
		kilobytes(float64(agents.Bytes)/pods)+", "+kilobytes(float64(controller.Bytes)/pods), "", "")
	t.Logf("requests of agents: %v\nof the controller: %v", agents.Requests, controller.Requests)
	f.end(t, f.agents, got)
}
