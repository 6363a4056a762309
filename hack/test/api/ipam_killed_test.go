package api

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/hack/cluster/binaries"
	"railhead/internal/ipam/holder"
	"railhead/internal/kernel/kerneltest"
)

// moments in the order in which they are tried.
func moments() []Moment { return []Moment{Before, Between, After} }

// TestAddressesKilled kills agents at their writes to the API server and at
// operations on their disks, and then controllers at their writes, while pods
// come and go on three nodes that share two pools with fewer addresses than pods.
// At no time do two pods have one address, by their own word and by their
// namespaces; when it is over, everybody tells the same, and every address can be
// given out. A run tries as many of agentKillPoints as it kills agents, from one on
// that the seed chooses; the night tries all.
//
// It has network and mount namespaces of its own, and touches no others.
func TestAddressesKilled(t *testing.T) {
	t.Parallel()
	Wanted(t)
	if _, err := binaries.Ensure(t.Context(), t.Output(), binaries.Etcd, binaries.Kubernetes); err != nil {
		t.Fatal(err) // before there is no network
	}
	builtPrograms(t)
	kerneltest.NetNS(t, func() {
		if err := makeDefaultRoute(); err != nil {
			t.Fatal(err)
		}
		total := times(48, 1000)
		const nodes, slots, addresses = 3, 8, 21
		s := Own(t) // whose controllers die one after the other
		s.Configure(t, usual)
		pools := []holder.PoolRef{s.smallPool(t, 1, addresses), s.smallPool(t, 2, addresses)}
		st, all := newStress(t, s, nodes, slots, pools...)
		controllers := total / 4

		t.Run("agents", func(t *testing.T) {
			s.Spawn(t, Replica{Name: "replica"}, "").AwaitReady(t)
			st.run(t, all, func() { st.killAgents(t, total-controllers, int(seed(t)%agentKillPoints)) })
			st.agree(t)
		})
		if t.Failed() {
			return
		}
		t.Run("controllers", func(t *testing.T) {
			st.run(t, all, func() {
				st.uncontrolled.Store(true)
				s.killControllers(t, controllers)
				s.Spawn(t, Replica{Name: "replica"}, "").AwaitReady(t)
				st.uncontrolled.Store(false)
			})
			st.agree(t)
		})
		t.Run("all can be given out", func(t *testing.T) {
			s.Spawn(t, Replica{Name: "replica"}, "").AwaitReady(t)
			st.exhaust(t, all, addresses)
		})
	})
}

// run has pods come and go while something is done.
func (st *stress) run(t *testing.T, all []*slot, do func()) {
	t.Helper()
	st.done = make(chan struct{})
	for _, slot := range all {
		st.idle.Add(1)
		go slot.runPods(t)
	}
	defer st.idle.Wait() // also where do ends the test
	defer close(st.done)
	do()
}

// killAgents kills agents until there were that many kills, with the points from
// one on, each once, and lets all live then.
func (st *stress) killAgents(t *testing.T, kills, from int) {
	t.Helper()
	began := time.Now()
	var rounds atomic.Int64
	var group sync.WaitGroup
	for _, n := range st.nodes {
		group.Go(func() {
			for round := int(rounds.Add(1)) - 1; round < kills; round = int(rounds.Add(1)) - 1 {
				n.liveAndDie(t, agentKillPoint(from+round))
			}
			n.begin(t, KillPoint{})
		})
	}
	group.Wait()
	t.Logf("%d kills of agents, from point %d on, took %.0f s; at most %d addresses were in use", kills, from, time.Since(began).Seconds(), st.most)
}

// agentKillPoints is after how many rounds points begin anew.
const agentKillPoints = 288

// agentKillPoint is the end of a life: over all rounds, each of its first 24 writes and
// 48 operations on the disk at each moment, early ones and late ones in turn.
func agentKillPoint(round int) KillPoint {
	const writes, operations, stride = 24, 48, 7 // of which none divides by the last
	d := KillPoint{When: moments()[round%3], Disk: round/3%2 == 1, At: 1 + round/6*stride%writes}
	if d.Disk {
		d.At = 1 + round/6*stride%operations
	}
	return d
}

// TestAgentKillPoints wants each end of an agent within the rounds, and no other.
func TestAgentKillPoints(t *testing.T) {
	t.Parallel()
	got := map[KillPoint]bool{}
	for round := range agentKillPoints {
		got[agentKillPoint(round)] = true
	}
	want := map[KillPoint]bool{}
	for _, when := range moments() {
		for at := range 48 {
			want[KillPoint{At: at + 1, Disk: true, When: when}] = true
			want[KillPoint{At: at%24 + 1, When: when}] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// liveAndDie is one life of the node's agent, which ends as it is to.
func (n *stressNode) liveAndDie(t *testing.T, point KillPoint) {
	t.Helper()
	life := n.begin(t, point)
	select {
	case <-life.ended:
	case <-time.After(Patience):
		t.Errorf("%s does not come to its end: %+v\n%s", n.name, point, lastLines(life.log.String(), 30))
		life.end()
		return
	}
	if !life.wasKilled() {
		t.Errorf("%s ended by itself: %v\n%s", n.name, life.err, lastLines(life.log.String(), 30))
	}
}

// killControllers kills one controller after the other.
func (s *Server) killControllers(t *testing.T, kills int) {
	t.Helper()
	began := time.Now()
	for i := range kills {
		point := KillPoint{At: 1 + i/3%8, When: moments()[i%3]}
		t.Run(fmt.Sprintf("%s write %d", point.When, point.At), func(t *testing.T) { s.controllerDies(t, point) })
	}
	t.Logf("%d kills of controllers took %.0f s", kills, time.Since(began).Seconds())
}

func (s *Server) controllerDies(t *testing.T, point KillPoint) {
	t.Helper()
	g := newKillingProxy(t, s.replicaConfig(t, Replica{}), point)
	var p *Process
	started := make(chan struct{})
	g.kill = func() {
		<-started
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		<-p.ended
	}
	p = s.Spawn(t, Replica{Name: "replica", Server: g.url}, "https://127.0.0.1:1")
	close(started)
	select {
	case <-p.ended:
	case <-time.After(Patience):
		t.Errorf("the controller does not come to its end: %+v", point)
	}
}

// agree compares what pods were told with what is in their namespaces, and both
// with what the cluster says once it has settled.
func (st *stress) agree(t *testing.T) {
	t.Helper()
	told := sortedAddresses(st.assigned.all())
	if found := sortedAddresses(inNamespaces(t, st.sub("namespaces"))); !slices.Equal(told, found) {
		t.Errorf("pods were told %v, their namespaces have %v", told, found)
	}
	st.agreeCluster(t)
}

// exhaust ends all pods and has one node after the other give out every address.
func (st *stress) exhaust(t *testing.T, all []*slot, addresses int) {
	t.Helper()
	st.done = make(chan struct{})
	for _, slot := range all {
		if slot.pod != nil && !slot.end(t) {
			return
		}
	}
	for _, n := range st.nodes {
		var used []*slot
		got := map[netip.Addr]bool{}
		for number := range addresses {
			s := &slot{stress: st, node: n, number: 100 + number, random: all[0].random}
			if !s.start(t) {
				t.Fatalf("%s got %d of %d addresses of each pool", n.name, number, addresses)
			}
			for _, a := range addressesOf(s.given) {
				got[a] = true
			}
			used = append(used, s)
		}
		if len(got) != addresses*len(st.pools) {
			t.Errorf("%s gave out %d addresses, there are %d", n.name, len(got), addresses*len(st.pools))
		}
		for _, s := range used {
			s.end(t)
		}
	}
}
