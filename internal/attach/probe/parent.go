package probe

import (
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// hearParents listens also on the parents of ipvlan interfaces, in the
// namespace of the calling thread, which is the node's. All interfaces of
// ipvlan on a parent have its MAC, and the kernel gives a frame to the one with
// the address that it is for. The answer to a probe is for none, as the probe
// has no sender, and stays with the parent (ipvlan_addr_lookup in
// drivers/net/ipvlan/ipvlan_core.c). Advertisements of IPv6 are for everybody.
func (s *session) hearParents() {
	for parent, suspects := range s.behindIPVLAN() {
		err := s.hearParent(parent, suspects)
		if err == nil {
			continue
		}
		for _, p := range suspects {
			s.decide(&p.check, fmt.Errorf("%s: address %v cannot be checked for conflicts: the answers come to its parent: %w",
				p.target.where(), p.result.Address, err))
		}
	}
}

// behindIPVLAN returns the suspects whose answers come to a parent.
func (s *session) behindIPVLAN() map[string][]*suspect {
	found := map[string][]*suspect{}
	for _, p := range s.suspects {
		if !p.decided && p.result.Address.Is4() && s.ready[p.target.Index].ipvlan {
			found[p.target.Parent] = append(found[p.target.Parent], p)
		}
	}
	return found
}

func (s *session) hearParent(parent string, suspects []*suspect) error {
	link, err := net.InterfaceByName(parent)
	if err != nil {
		return fmt.Errorf("%q: %w", parent, err)
	}
	w, err := openWire(0)
	if err != nil {
		return err
	}
	w.parent = parent
	s.wires = append(s.wires, w)
	addrs := make([]netip.Addr, 0, len(suspects))
	for _, p := range suspects {
		addrs = append(addrs, p.result.Address)
	}
	return w.hear(link.Index, unix.ETH_P_ARP, addrs)
}
