package probe

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

func TestGateways(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		t1, t2, t3 := l.rail(1, "10.1.0.2/24", "fd01::2/64"), l.rail(2, "10.2.0.2/24"), l.rail(3, "10.3.0.2/24")
		mac := l.host(1, "10.1.0.1/24")
		l.host(1, "fd01::1/64")
		l.host(3, "10.3.0.1/24")
		t1.Detect.Retries = patient
		t3.Detect = Detection{Retries: 1, Timeout: 50 * time.Millisecond} // its gateway is in no subnet that is there
		t2.Detect = Detection{Retries: 2, Timeout: 50 * time.Millisecond} // nobody is there
		targets := []Target{
			withGateway(t1, "10.1.0.1", "fd01::1"), withGateway(t2, "10.2.0.1"), withGateway(t3, "10.99.0.1"),
		}
		r := l.run(targets...)
		wantSummary(t, r,
			"net1 1 gateway 10.1.0.1 ok=true mac=true",
			"net1 1 gateway fd01::1 ok=true mac=true",
			"net2 2 gateway 10.2.0.1 ok=false mac=false: net2 (rail 2, rail2): gateway 10.2.0.1 did not answer within T (2 requests)",
			"net3 3 gateway 10.99.0.1 ok=false mac=false: net3 (rail 3, rail3): gateway 10.99.0.1 did not answer within T (1 request)",
		)
		if got := r.Results[0].MAC; got.String() != mac.String() {
			t.Errorf("MAC %v, want %v", got, mac)
		}
		if r.Err() == nil || strings.Count(r.Err().Error(), "\n") != 1 {
			t.Errorf("error %v, want two lines", r.Err())
		}
		// What is known already, the kernel says in no event.
		r = l.run(targets[0])
		if r.Err() != nil || r.Results[0].Tries != 1 {
			t.Errorf("again: %+v", r)
		}
	})
}

// TestGatewayLinks has interfaces that are down, gone and without a carrier.
func TestGatewayLinks(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		l.prober.patience = 10 * time.Millisecond
		down, dark, gone := l.rail(1, "10.1.0.2/24"), l.rail(2, "10.2.0.2/24"), l.rail(3, "10.3.0.2/24")
		gone.Index = 4711
		l.in(l.pod, func() { setUp(t, "net1", false) })
		l.in(l.far, func() { setUp(t, "far2", false) })
		l.in(l.pod, func() { awaitLink(t, "net2", func(l rtnl.Link) bool { return !l.Running }) })
		r := l.run(withGateway(doubtful(down), "10.1.0.1"), withGateway(doubtful(dark), "10.2.0.1"), withGateway(gone, "10.3.0.1"))
		wantSummary(t, r,
			"net1 1 gateway 10.1.0.1 ok=false mac=false: net1 (rail 1, rail1): gateway 10.1.0.1 was not asked for within T: the interface is down",
			"net2 2 gateway 10.2.0.1 ok=false mac=false: net2 (rail 2, rail2): gateway 10.2.0.1 was not asked for within T: the interface has no carrier",
			"net3 3 gateway 10.3.0.1 ok=false mac=false: net3 (rail 3, rail3): gateway 10.3.0.1 cannot be asked: "+
				"probe neighbour 10.3.0.1 on link 4711: RTM_NEWNEIGH: no such device",
			"net1 1 conflict 10.1.0.2 ok=false mac=false: net1 (rail 1, rail1): address 10.1.0.2 was not checked for conflicts within T: the interface is down",
			"net2 2 conflict 10.2.0.2 ok=false mac=false: net2 (rail 2, rail2): address 10.2.0.2 was not checked for conflicts within T: the interface has no carrier",
		)
	})
}

// TestGatewayComesUp has an interface that gets its carrier while it is waited
// for.
func TestGatewayComesUp(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		l.prober.patience = time.Minute
		late, now := l.rail(1, "10.1.0.2/24"), l.rail(2, "10.2.0.2/24")
		late.Detect.Retries = patient
		l.host(1, "10.1.0.1/24")
		l.in(l.far, func() { setUp(t, "far1", false) })
		l.in(l.pod, func() { awaitLink(t, "net1", func(l rtnl.Link) bool { return !l.Running }) })
		l.answer(2, func(frame []byte) []byte {
			if isRequestFor(frame, netip.MustParseAddr("10.2.0.1")) { // it has begun
				l.in(l.far, func() { setUp(t, "far1", true) })
			}
			return nil
		})
		now.Detect.Timeout = 10 * time.Millisecond
		r := l.run(withGateway(late, "10.1.0.1"), withGateway(now, "10.2.0.1"))
		if !r.Results[0].OK || r.Results[1].OK {
			t.Errorf("report:\n%s", summary(r))
		}
	})
}

func TestGatewayAnswersLate(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		target := withGateway(l.rail(1, "10.1.0.2/24"), "10.1.0.1")
		l.in(l.pod, func() { l.sysctl("net/ipv4/neigh/net1/retrans_time_ms", "600000") }) // only we ask again
		asked := 0
		l.answer(1, func(frame []byte) []byte {
			if !isRequestFor(frame, target.Gateways[0]) {
				return nil
			}
			if asked++; asked < 2 {
				return nil
			}
			return arpAnswer(foreign, target.Gateways[0], [macSize]byte(target.MAC))
		})
		target.Detect.Retries, target.Detect.Timeout = patient, 50*time.Millisecond
		r := l.run(target)
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		if got := r.Results[0]; got.Tries < 2 || got.MAC.String() != "02:ee:ee:ee:ee:01" {
			t.Errorf("%+v, want two tries or more", got)
		}
	})
}

// TestGatewayWaitsForLinkLocal has the kernel check the link-local address of
// an interface that has just come up.
func TestGatewayWaitsForLinkLocal(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, true)
		target := withGateway(l.rail(1, "fd01::2/64"), "fd01::1")
		l.host(1, "fd01::1/64")
		target.Detect.Retries, target.Detect.Timeout = patient, 50*time.Millisecond
		if err := l.run(target).Err(); err != nil {
			t.Error(err)
		}
	})
}

// TestGatewayWithoutLinkLocal has no such address at all.
func TestGatewayWithoutLinkLocal(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		l.prober.patience = 10 * time.Millisecond
		l.in(l.pod, func() { l.sysctl("net/ipv6/conf/default/addr_gen_mode", "1") })
		target := withGateway(l.rail(1, "fd01::2/64"), "fd01::1")
		l.host(1, "fd01::1/64")
		wantSummary(t, l.run(target), "net1 1 gateway fd01::1 ok=false mac=false: net1 (rail 1, rail1): gateway fd01::1 was not asked for within T: "+
			"the interface has no link-local address that is checked (IPv6 off, or duplicate address detection not over)")
	})
}
