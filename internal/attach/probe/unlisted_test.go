package probe

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// TestGatewayUnlisted has a kernel without room for gateways, with a wire that
// is there for suspects already and without. The size of the kernel's table is
// that of the whole machine, so that a test cannot fill it.
func TestGatewayUnlisted(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("probe neighbour: %w", unix.ENOBUFS)
	for _, tt := range []struct{ name, address, gateway, bits string }{
		{"IPv4", "10.1.0.2/24", "10.1.0.1", "/24"},
		{"IPv6", "fd01::2/64", "fd01::1", "/64"},
	} {
		for _, suspicious := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %t", tt.name, suspicious), func(t *testing.T) {
				t.Parallel()
				kerneltest.NetNS(t, func() {
					l := newLab(t, false)
					target, other := l.rail(1, tt.address), l.rail(2, "10.2.0.2/24")
					mac := l.host(1, tt.gateway+tt.bits)
					target.Detect.Conflict = suspicious
					target.Detect.Timeout, target.Detect.Retries = time.Minute, 1
					bare := other
					bare.Addresses = nil
					s := begun(t, l, withGateway(target, tt.gateway), withGateway(bare, "10.2.0.1"))
					if w := s.wire; w != nil { // it is there for suspects, and Run would read from it
						s.background.Go(func() { s.readFrames(w) })
					}
					for _, g := range s.gateways {
						g.result.Tries = 1 // the kernel's
						s.refused(g, full)
					}
					// The far end may not have joined the address's group yet.
					again := time.NewTicker(50 * time.Millisecond)
					defer again.Stop()
					for g := s.gateways[0]; !g.decided && g.result.Tries < 600; {
						select {
						case w := <-s.heard:
							w.drain(s.sighted)
						case now := <-again.C:
							s.askOnWire(g, now)
						}
					}
					got := s.gateways[0].result
					if !got.OK || got.Tries < 1 || got.MAC.String() != mac.String() {
						t.Errorf("%+v, want an answer of %v", got, mac)
					}
					want := "net2 (rail 2, rail2): gateway 10.2.0.1 cannot be asked: the neighbour table is full " +
						"(net.ipv4.neigh.default.gc_thresh3, net.ipv6 for IPv6): probe neighbour: no buffer space available"
					if err := s.gateways[1].result.Err; err == nil || err.Error() != want {
						t.Errorf("error %v, want %q", err, want)
					}
				})
			})
		}
	}
}
