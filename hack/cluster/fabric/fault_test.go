package fabric

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"railhead/hack/cluster/plan"
	"railhead/internal/kernel/kerneltest"
)

// TestCutAndMend cuts a rail of a node: nothing passes there, everything does
// elsewhere, and both ends know.
func TestCutAndMend(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := built(t, bothFamilies)
		rail := l.link("node1", "rail1")
		l.reaches("node2", "node1", addrs(rail.Addresses)...)
		for range 2 {
			l.must(l.Cut(rail))
		}
		l.wantState(State{Link: rail, Connected: true, Cut: true})
		for _, a := range addrs(rail.Addresses) {
			if l.dial("node2", "node1", a, 100*time.Millisecond) == nil {
				t.Errorf("node2 reaches %v over a cable that is cut", a)
			}
		}
		l.reaches("node2", "node1", addrs(l.link("node1", "rail0").Addresses)...)
		l.reaches("node2", "node3", addrs(l.link("node3", "rail1").Addresses)...)
		for range 2 {
			l.must(l.Mend(rail))
		}
		l.wantState(State{Link: rail, Connected: true, Carrier: true})
		l.reaches("node2", "node1", addrs(rail.Addresses)...)
	})
}

// TestLimit reads limits back from the kernel, at both ends of a cable, also
// such as do not fit into 32 bits of bytes.
func TestLimit(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := built(t, bothFamilies)
		rail := l.link("node2", "rail0")
		for _, rate := range []uint64{minRate, 1e6, 1e9, 400e9} {
			l.must(l.Limit(rail, rate))
			l.wantState(State{Link: rail, Connected: true, Carrier: true, BitsPerSecond: rate})
			if got := l.rateInNode(rail); got != rate {
				t.Errorf("%v sends %d bit/s, want %d", rail, got, rate)
			}
		}
		l.must(l.Limit(rail, 10e6))
		l.reaches("node1", "node2", addrs(rail.Addresses)...)
		for range 2 {
			l.must(l.Unlimit(rail))
		}
		l.wantState(State{Link: rail, Connected: true, Carrier: true})
		if got := l.rateInNode(rail); got != 0 {
			t.Errorf("%v still sends no more than %d bit/s", rail, got)
		}
		l.reaches("node1", "node2", addrs(rail.Addresses)...)
	})
}

func TestLimitRefuses(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := built(t, plan.Options{Nodes: 1, Rails: 1, IPv4: true})
		rail := l.link("node1", "0")
		if err := l.Limit(rail, minRate-1); err == nil {
			t.Error("a rate at which no frame passes is taken")
		}
		l.wantState(State{Link: rail, Connected: true, Carrier: true})
	})
}

// TestLimitWithoutTheNodesEnd: when a pod has taken a rail away the fabric's
// end is limited all the same, and the error tells of the other.
func TestLimitWithoutTheNodesEnd(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := built(t, plan.Options{Nodes: 1, Rails: 1, IPv4: true})
		rail := l.link("node1", "rail0")
		pod := kerneltest.NewNetNS(t)
		l.inside("node1", func() { kerneltest.MoveLink(t, rail.Netdev, pod) })
		if err := l.Limit(rail, 1e9); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v, want that the node's end is not there", err)
		}
		l.wantState(State{Link: rail, Connected: true, BitsPerSecond: 1e9})
		l.must(l.Unlimit(rail))
		l.wantState(State{Link: rail, Connected: true})
	})
}

func TestStatesOfWhatIsNotConnected(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := planned(t, bothFamilies)
		l.must(l.Build())
		l.must(l.Connect("node2"))
		var want []State
		for _, n := range l.plan.Nodes {
			for _, link := range l.plan.Links(n) {
				there := n.Name == "node2"
				want = append(want, State{Link: link, Connected: there, Carrier: there})
			}
		}
		if diff := cmp.Diff(want, l.states(), prefixes); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	})
}

// TestStatesMeanwhile asks for states while other links come and go, as those of
// tests do.
func TestStatesMeanwhile(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := built(t, plan.Options{Nodes: 1, Rails: 8, IPv4: true})
		want := l.states()
		ended := make(chan error)
		go func() {
			ended <- l.in(plan.Fabric, func(m machine) error {
				for range 30 {
					other := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "other"}}
					if err := errors.Join(m.LinkAdd(other), m.LinkDel(other)); err != nil {
						return err
					}
				}
				return nil
			})
		}()
		for {
			select {
			case err := <-ended:
				l.must(err)
				return
			default:
			}
			if diff := cmp.Diff(want, l.states(), prefixes); diff != "" {
				t.Fatalf("states (-want +got):\n%s", diff)
			}
		}
	})
}

func (l *lab) link(node, name string) plan.Link {
	l.t.Helper()
	link, err := l.plan.Link(node, name)
	l.must(err)
	return link
}

func (l *lab) wantState(want State) {
	l.t.Helper()
	for _, got := range l.states() {
		if got.Link.Port != want.Link.Port {
			continue
		}
		if diff := cmp.Diff(want, got, prefixes); diff != "" {
			l.t.Errorf("state of %v (-want +got):\n%s", want.Link, diff)
		}
		return
	}
	l.t.Errorf("there is no state of %v", want.Link)
}

// rateInNode is the limit of the node's end of a cable.
func (l *lab) rateInNode(link plan.Link) (rate uint64) {
	l.t.Helper()
	l.must(l.in(link.Node, func(m machine) error {
		dev, err := m.link(link.Netdev)
		if err != nil {
			return err
		}
		rates, err := m.rates()
		rate = rates[dev.Attrs().Index]
		return err
	}))
	return rate
}
