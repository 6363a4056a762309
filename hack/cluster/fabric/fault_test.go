package fabric

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

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
		l.inside("node1", func() {
			if dev, err := netlink.LinkByName(rail.Netdev); err != nil || dev.Attrs().RawFlags&unix.IFF_LOWER_UP != 0 {
				t.Errorf("%v has a carrier (%v)", rail, err)
			}
		})
		l.unanswered(l.link("node2", "rail1"), addrs(rail.Addresses)...)
		l.reaches("node2", "node1", addrs(l.link("node1", "rail0").Addresses)...)
		l.reaches("node2", "node3", addrs(l.link("node3", "rail1").Addresses)...)
		for range 2 {
			l.must(l.Mend(rail))
		}
		l.wantState(State{Link: rail, Connected: true, Carrier: true})
		l.reaches("node2", "node1", addrs(rail.Addresses)...)
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

// unanswered wants nobody to answer a node who asks on a link for addresses. The
// node's kernel judges: it asks three times in three seconds and then gives up. Where
// somebody answers, nobody listens at the port.
func (l *lab) unanswered(link plan.Link, addresses ...netip.Addr) {
	l.t.Helper()
	l.forget(link)
	ends := make([]error, len(addresses))
	var all sync.WaitGroup
	for i, a := range addresses {
		all.Go(func() {
			ns, err := l.ns(link.Node)
			if err == nil {
				defer func() { _ = ns.Close() }()
				err = ns.Do(func() error {
					conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(a, 9).String(), patience)
					if err == nil {
						_ = conn.Close()
					}
					return err
				})
			}
			ends[i] = err
		})
	}
	all.Wait()
	for i, err := range ends {
		if !errors.Is(err, unix.EHOSTUNREACH) {
			l.t.Errorf("%v asks for %v: %v, want %v", link, addresses[i], err, unix.EHOSTUNREACH)
		}
	}
}

// forget makes a node forget the neighbours on a link.
func (l *lab) forget(link plan.Link) {
	l.t.Helper()
	l.must(l.in(link.Node, func(m machine) error {
		dev, err := m.link(link.Netdev)
		if err != nil {
			return err
		}
		neighbours, err := m.NeighList(dev.Attrs().Index, netlink.FAMILY_ALL)
		errs := []error{err}
		for _, n := range neighbours {
			if err := m.NeighDel(&n); !errors.Is(err, unix.ENOENT) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}))
}
