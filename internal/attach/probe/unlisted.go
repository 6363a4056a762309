package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel keeps the neighbours of all namespaces in one table for each
// family, and makes no entry while it is full: a hundred pods of eight rails
// that start at once, with net.ipv4.neigh.default.gc_thresh3 as it comes, do
// that. That is no reason to start no pod: such gateways are asked for on the
// packet socket.

// refused notes that the kernel does not ask for a gateway, and asks if that is
// for want of room.
func (s *session) refused(g *gateway, err error) {
	if errors.Is(err, unix.ENOBUFS) {
		if failure := s.unlist(g); failure == nil {
			return
		}
		err = fmt.Errorf("the neighbour table is full (net.ipv4.neigh.default.gc_thresh3, net.ipv6 for IPv6): %w", err)
	}
	s.decide(&g.check, fmt.Errorf("%s: gateway %v cannot be asked: %w", g.target.where(), g.result.Address, err))
}

// unlist asks for a gateway on the wire from now on.
func (s *session) unlist(g *gateway) error {
	if _, err := g.request(); err != nil {
		return err
	}
	g.unlisted = true
	if s.wire != nil {
		if err := s.wire.narrow(s.wanted()); err != nil {
			return err
		}
	} else {
		if err := s.openWire(); err != nil {
			return err
		}
		w := s.wire
		s.background.Go(func() { s.readFrames(w) })
	}
	g.result.Tries-- // that of the kernel, which asked nobody
	s.askOnWire(g, time.Now())
	return nil
}

// openWire opens the pod's wire, for all that is wanted.
func (s *session) openWire() error {
	w, err := openWire(s.netnsFD)
	if err != nil {
		return err
	}
	s.wires = append(s.wires, w)
	s.wire = w
	return w.hear(0, unix.ETH_P_ALL, s.wanted())
}

// wanted are the addresses that are listened for.
func (s *session) wanted() []netip.Addr {
	var addrs []netip.Addr
	for _, p := range s.suspects {
		if !p.decided {
			addrs = append(addrs, p.result.Address)
		}
	}
	for _, g := range s.gateways {
		if g.unlisted {
			addrs = append(addrs, g.result.Address)
		}
	}
	return addrs
}

// askOnWire sends one request.
func (s *session) askOnWire(g *gateway, now time.Time) {
	g.result.Tries++
	g.due = now.Add(g.detect.Timeout)
	frame, err := g.request()
	if err == nil {
		err = s.wire.send(g.target.Index, frame)
	}
	if err != nil {
		s.decide(&g.check, fmt.Errorf("%s: gateway %v cannot be asked: %w", g.target.where(), g.result.Address, err))
	}
}

// request returns the frame that asks for a gateway from the first address of
// its family.
func (g *gateway) request() ([]byte, error) {
	if len(g.target.MAC) != macSize {
		return nil, errors.New("the interface has no MAC address of Ethernet")
	}
	for _, a := range g.target.Addresses {
		if a.Addr.Is4() == g.result.Address.Is4() {
			return requestFrame([macSize]byte(g.target.MAC), a.Addr, g.result.Address.WithZone("")), nil
		}
	}
	return nil, errors.New("the interface has no address of its family")
}

// sightedGateway takes in what was seen on a link: the answer of a gateway.
func (s *session) sightedGateway(a arrival) {
	for _, g := range s.gateways {
		if g.unlisted && !g.decided && !a.probe && a.parent == "" && g.target.Index == a.index && g.result.Address.WithZone("") == a.addr {
			g.result.MAC = a.hardware()
			s.decide(&g.check, nil)
		}
	}
}
