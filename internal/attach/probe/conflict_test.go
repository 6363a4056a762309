package probe

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestParentOfIPVLAN has an answer come to the parent alone, as those to
// probes of ipvlan do.
func TestParentOfIPVLAN(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		target, orphan := doubtful(l.rail(1, "10.1.0.2/24", "fd01::2/64")), doubtful(l.rail(2, "10.2.0.2/24"))
		orphan.Parent = "rail7"
		parent, err := net.InterfaceByName("rail1")
		if err != nil {
			t.Fatal(err)
		}
		s := begun(t, l, target, orphan)
		for _, ours := range []Target{target, orphan} { // this kernel may have no ipvlan
			s.link(rtnl.Link{Index: ours.Index, Kind: "ipvlan", Up: true, Running: true, OperState: "up"})
		}
		s.hearParents()
		l.send(1, arpAnswer(foreign, target.Addresses[0].Addr, [macSize]byte(parent.HardwareAddr)))
		awaitFrame(t, s.wires[1])
		for range doubtfulProbes + 1 {
			for _, p := range s.suspects {
				p.due = time.Time{}
			}
			s.probeSuspects(time.Now())
		}
		wantSummary(t, s.report(),
			"net1 1 conflict 10.1.0.2 ok=false mac=true: net1 (rail 1, rail1): address 10.1.0.2 is in use by 02:ee:ee:ee:ee:01",
			"net1 1 conflict fd01::2 ok=true mac=false",
			"net2 2 conflict 10.2.0.2 ok=false mac=false: net2 (rail 2, rail7): address 10.2.0.2 cannot be checked for conflicts: "+
				`the answers come to its parent: "rail7": route ip+net: no such network interface`,
		)
	})
}

// TestIPVLAN has a host with the address of such an interface, where there are
// any.
func TestIPVLAN(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"10.1.0.2/24", "fd01::2/64"} {
		t.Run(address[:2], func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				l := newLab(t, false)
				l.cable("rail1", 1)
				l.ipvlan(t, "net1", "rail1")
				target := claimed(l.inPod(1, "rail1", address))
				mac, addr := l.host(1, address), target.Addresses[0].Addr
				wantSummary(t, l.run(target), fmt.Sprintf("net1 1 conflict %v ok=false mac=true: net1 (rail 1, rail1): address %v is in use by %v", addr, addr, mac))
			})
		})
	}
}

// claimed returns a target whose addresses somebody else has, who is waited for: macvlan
// and ipvlan have a worker of the kernel bring an answer to all, which a busy machine
// does not let run at once.
func claimed(t Target) Target {
	t.Detect = Detection{Conflict: true, Timeout: time.Minute}
	return t
}

// ipvlan makes an interface, or skips the test.
func (l *lab) ipvlan(t *testing.T, name, parent string) {
	t.Helper()
	link, err := net.InterfaceByName(parent)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rtnl.Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	errs := client.Do(rtnl.LinkAdd{Name: name, Kind: "ipvlan", Mode: "l2", Parent: link.Index})
	if errs != nil && errors.Is(errs[0], rtnl.ErrNotSupported) {
		t.Skipf("THIS KERNEL CANNOT BE TESTED ON: %v", errs[0])
	}
	if errs != nil {
		t.Fatal(errs)
	}
}

// TestReadsBeforeItDecides is kept from running until the wait is over, with an
// answer that has come and that the reader was about to tell of.
func TestReadsBeforeItDecides(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		target := doubtful(l.rail(1, "10.1.0.2/24"))
		addr := target.Addresses[0].Addr
		s := begun(t, l, target)
		s.background.Go(func() { s.readFrames(s.wire) })
		l.send(1, announceFrame(foreign, addr))
		<-s.heard
		for range doubtfulProbes + 1 {
			s.suspects[0].due = time.Time{}
			s.probeSuspects(time.Now())
		}
		wantSummary(t, s.report(), "net1 1 conflict 10.1.0.2 ok=false mac=true: net1 (rail 1, rail1): address 10.1.0.2 is in use by 02:ee:ee:ee:ee:01")
	})
}

// TestConflicts has another host with one of the addresses of eight rails.
func TestConflicts(t *testing.T) {
	t.Parallel()
	for _, subnet := range []string{"10.%d.0.%d/24", "fd00:%d::%d/64"} {
		t.Run(subnet[:2], func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				l := newLab(t, false)
				var targets []Target
				var want []string
				for n := range 8 {
					checked := doubtful
					if n == 5 {
						checked = claimed
					}
					targets = append(targets, checked(l.rail(n, fmt.Sprintf(subnet, n, 2))))
					want = append(want, fmt.Sprintf("net%d %d conflict %v ok=true mac=false", n, n, targets[n].Addresses[0].Addr))
				}
				mac, addr := l.host(5, fmt.Sprintf(subnet, 5, 2)), targets[5].Addresses[0].Addr
				want[5] = fmt.Sprintf("net5 5 conflict %v ok=false mac=true: net5 (rail 5, rail5): address %v is in use by %v", addr, addr, mac)
				r := l.run(targets...)
				wantSummary(t, r, want...)
				if diff := cmp.Diff(map[netip.Addr]string{addr: mac.String()}, r.Conflicts(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
					t.Errorf("conflicts (-want +got):\n%s", diff)
				}
				if tries := r.Results[0].Tries; tries == 0 || tries > doubtfulProbes {
					t.Errorf("%d probes, want 1 to %d", tries, doubtfulProbes)
				}
			})
		})
	}
}

// TestSimultaneousProbe has another host probe for an address while we do.
func TestSimultaneousProbe(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"10.1.0.2", "fd01::2"} {
		t.Run(address[:2], func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				l := newLab(t, false)
				target, addr := l.rail(1), netip.MustParseAddr(address) // the kernel has not joined its group
				target.Addresses = []Address{{Addr: addr}}
				target.Detect = Detection{Conflict: true, Retries: 2, Timeout: time.Minute} // for the one that never comes
				l.answer(1, func(frame []byte) []byte {
					if s, ok := decode(frame); !ok || !s.probe || s.addr != addr {
						return nil
					}
					return probeFrame(foreign, addr)
				})
				wantSummary(t, l.run(target), fmt.Sprintf("net1 1 conflict %v ok=false mac=true: net1 (rail 1, rail1): "+
					"address %v is wanted by 02:ee:ee:ee:ee:01 too, which asks whether it can have it", addr, addr))
			})
		})
	}
}

// TestNotDoubtful probes what is not doubtful only where it is asked for, and
// finds what cannot be probed.
func TestNotDoubtful(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		detect := Detection{Conflict: true, Retries: 2, Timeout: 20 * time.Millisecond, Interval: time.Millisecond}
		none, free, taken, ipoib, noMAC := l.rail(0, "10.0.0.2/24"), l.rail(1, "10.1.0.2/24"), l.rail(2, "10.2.0.2/24"), l.rail(3, "10.3.0.2/24"), l.rail(4, "10.4.0.2/24")
		gone := l.rail(5, "10.5.0.2/24")
		l.host(2, "10.2.0.2/24")
		free.Detect, ipoib.Detect, noMAC.Detect, gone.Detect = detect, detect, detect, detect
		taken.Detect = Detection{Conflict: true, Timeout: time.Minute} // it need not be waited for
		ipoib.MAC, noMAC.MAC, gone.Index = make([]byte, 20), nil, 4711
		wantSummary(t, l.run(none, free, taken, ipoib, noMAC, gone),
			"net1 1 conflict 10.1.0.2 ok=true mac=false",
			"net2 2 conflict 10.2.0.2 ok=false mac=true: net2 (rail 2, rail2): address 10.2.0.2 is in use by "+l.farLink(2).HardwareAddr.String(),
			"net4 4 conflict 10.4.0.2 ok=false mac=false: net4 (rail 4, rail4): address 10.4.0.2 cannot be checked for conflicts: the interface's MAC address is not given",
			"net5 5 conflict 10.5.0.2 ok=false mac=false: net5 (rail 5, rail5): address 10.5.0.2 cannot be checked for conflicts: sendto: no such device or address",
		)
	})
}
