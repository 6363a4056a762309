package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"railhead/internal/kernel/rtnl"
	"railhead/internal/policy"
)

// MTUs that IP works with.
const (
	minMTU  = 68
	minMTU6 = 1280
)

// link plans how one interface is made, or moved, or found.
func (p *planner) link(i *Interface, planned *PlannedInterface) error {
	if taken, ok := p.inPod(i.Name); ok && i.Link.Kind != Foreign {
		return fmt.Errorf("name: the pod has a link %q already (index %d%s): want a free one", i.Name, taken.Index, ofKind(taken.Kind))
	}
	switch i.Link.Kind {
	case Foreign:
		return p.foreignLink(i, planned)
	case HostDevice:
		return p.device(i, planned)
	case Macvlan, IPVLAN, VLAN:
		return p.virtual(i, planned)
	}
	return fmt.Errorf("kind %q: want %s, %s, %s or %s, or none for one that another's plugin makes", i.Link.Kind, Macvlan, IPVLAN, VLAN, HostDevice)
}

func ofKind(kind string) string {
	if kind == "" {
		return ""
	}
	return ", " + kind
}

// virtual plans a link on a parent.
func (p *planner) virtual(i *Interface, planned *PlannedInterface) error {
	if err := checkMode(planned); err != nil {
		return err
	}
	parent, err := p.parent(i, planned)
	if err != nil {
		return err
	}
	if len(i.Masters) == 0 {
		i.Masters = []string{planned.Parent}
	}
	switch i.Link.Kind {
	case IPVLAN:
		i.SharesMAC = true
	case Macvlan:
		i.SharesMAC = i.SharesMAC || planned.Mode == "passthru"
	case VLAN:
		i.SharesMAC = i.MAC == nil && (i.Coordinator == nil || i.Coordinator.MACPrefix == nil)
	}
	if i.SharesMAC && i.Tuning.MAC != nil {
		return fmt.Errorf("tuning mac %s: want none: a %s has its parent's", i.Tuning.MAC, strings.TrimSpace(string(planned.Kind)+" "+planned.Mode))
	}
	return checkMTU(planned, parent, hasIPv6(i.Addresses))
}

// checkMode checks mode and VLAN, and fills in the kind's default.
func checkMode(planned *PlannedInterface) error {
	modes := map[Kind][]string{Macvlan: {"bridge", "private", "vepa", "passthru"}, IPVLAN: {"l2", "l3", "l3s"}}[planned.Kind]
	switch {
	case planned.Kind == VLAN:
		return checkVLAN("VLAN", planned.VLANID)
	case planned.VLANID != 0:
		return fmt.Errorf("VLAN %d: want none for kind %s", planned.VLANID, planned.Kind)
	case planned.Mode == "":
		planned.Mode = modes[0]
	case !slices.Contains(modes, planned.Mode):
		return fmt.Errorf("mode %q: want %s", planned.Mode, strings.Join(modes, ", "))
	}
	return nil
}

func checkVLAN(field string, id int) error {
	const most = 4094
	if id < 1 || id > most {
		return fmt.Errorf("%s %d: want 1 to %d", field, id, most)
	}
	return nil
}

// checkMTU compares an MTU with the parent's, which is also the default. Without
// a parent yet nothing is known.
func checkMTU(planned *PlannedInterface, parent *rtnl.Link, ipv6 bool) error {
	least := minMTU
	if ipv6 {
		least = minMTU6
	}
	switch {
	case parent == nil && planned.MTU == 0:
	case parent == nil && planned.MTU < least:
		return fmt.Errorf("mtu %d: want at least %d", planned.MTU, least)
	case parent == nil:
	case planned.MTU == 0:
		planned.MTU = parent.MTU
	case planned.MTU < least || planned.MTU > parent.MTU:
		return fmt.Errorf("mtu %d: want %d to %d, that of %s", planned.MTU, least, parent.MTU, parent.Name)
	}
	return nil
}

// parent finds what an interface stands on; nil if it is still to be made.
func (p *planner) parent(i *Interface, planned *PlannedInterface) (*rtnl.Link, error) {
	planned.Parent = i.Link.Parent.Name
	switch {
	case i.Link.InContainer:
		return p.parentInPod(planned)
	case i.Link.Parent.Bond != nil || i.Link.Parent.VLANID != 0:
		return p.shared(i.Link.Parent, planned)
	case planned.Parent == "":
		return nil, errors.New("parent: want the name of a netdev")
	}
	l, err := p.onNode(planned.Parent)
	if err != nil {
		return nil, parentError(planned.Parent, "node", err)
	}
	if !l.Up {
		p.notes = append(p.notes, fmt.Sprintf("%s: parent %s is down: nothing passes until somebody sets it up", i.Name, l.Name))
	}
	planned.ParentIndex = l.Index
	return &l, nil
}

// parentInPod finds it among the pod's links and those that are made before.
func (p *planner) parentInPod(planned *PlannedInterface) (*rtnl.Link, error) {
	planned.InContainer = true
	if slices.ContainsFunc(p.plan.Interfaces, func(i PlannedInterface) bool { return i.Name == planned.Parent }) {
		return nil, nil //nolint:nilnil // it is not there yet
	}
	l, ok := p.inPod(planned.Parent)
	if !ok {
		return nil, parentError(planned.Parent, "pod", fs.ErrNotExist)
	}
	planned.ParentIndex = l.Index
	return &l, nil
}

func parentError(name, where string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("parent %q: the %s has no such link: %w", name, where, err)
	}
	return fmt.Errorf("parent %q: %w", name, err)
}

// foreignLink finds an interface that another's plugin made.
func (p *planner) foreignLink(i *Interface, planned *PlannedInterface) error {
	l, ok := p.inPod(i.Name)
	if !ok {
		return fmt.Errorf("the pod has no link %q, which the network's own plugin should have made: %w", i.Name, fs.ErrNotExist)
	}
	i.Foreign = true
	before := formerOf(l)
	planned.Before, planned.Index = &before, l.Index
	if i.Tuning.MAC != nil {
		planned.MAC = i.Tuning.MAC.String()
		i.MAC = i.Tuning.MAC
	}
	if i.MAC == nil {
		i.MAC = macOf(l.Address)
	}
	return p.flagsBefore(planned)
}

// flagsBefore notes flags of a foreign link that are to change.
func (p *planner) flagsBefore(planned *PlannedInterface) error {
	if planned.Promisc == nil && planned.AllMulti == nil {
		return nil
	}
	f, err := linkFlags(planned.Name)
	planned.Before.Promisc, planned.Before.AllMulti = f.promisc, f.allMulti
	return err
}

// macs wants macvlans of one parent to have MAC addresses of their own, without
// which the kernel says only that something is busy. On different parents they are
// in different networks, and may have the same.
func (p *planner) macs() error {
	var errs []error
	for n, i := range p.plan.Interfaces {
		for _, o := range p.plan.Interfaces[:n] {
			same := i.Kind == Macvlan && o.Kind == Macvlan && i.MAC != "" && strings.EqualFold(i.MAC, o.MAC)
			if same && i.Parent == o.Parent && i.InContainer == o.InContainer {
				errs = append(errs, fmt.Errorf("interfaces %s and %s: both have MAC address %s on parent %s: want one of its own for each", o.Name, i.Name, i.MAC, i.Parent))
			}
		}
	}
	return errors.Join(errs...)
}

// foreign asks the kernel for what the interfaces of others have. The pod may have put
// addresses there as well: those that are not among the given ones are marked so.
func (p *planner) foreign(interfaces []Interface) error {
	isForeign := func(i Interface) bool { return i.Link.Kind == Foreign }
	lacks := func(i Interface) bool { return isForeign(i) && len(i.Gateways)+len(i.Routes) == 0 }
	if !slices.ContainsFunc(interfaces, isForeign) {
		return nil
	}
	addresses, err := p.pod.Addresses()
	if err != nil {
		return fmt.Errorf("addresses in %s: %w", p.plan.NetNS, err)
	}
	var routes []rtnl.Route
	if slices.ContainsFunc(interfaces, lacks) {
		if routes, err = p.pod.Routes(); err != nil {
			return fmt.Errorf("routes in %s: %w", p.plan.NetNS, err)
		}
	}
	for n := range interfaces {
		i := &interfaces[n]
		l, ok := p.inPod(i.Name)
		if !ok || !isForeign(*i) {
			continue // which link says
		}
		given := i.Addresses
		i.Addresses = addressesOn(l.Index, addresses)
		i.NotGiven = notGiven(i.Addresses, given)
		if lacks(*i) {
			i.Gateways, i.Routes = routesOn(l.Index, routes)
		}
	}
	return nil
}

// notGiven are the addresses that are not among those given, whatever their subnets.
func notGiven(there, given []netip.Prefix) map[netip.Addr]bool {
	set := map[netip.Addr]bool{}
	for _, a := range there {
		set[a.Addr()] = !slices.ContainsFunc(given, func(g netip.Prefix) bool { return g.Addr() == a.Addr() })
	}
	return set
}

func addressesOn(index int, addresses []rtnl.Address) []netip.Prefix {
	var all []netip.Prefix
	for _, a := range addresses {
		if a.LinkIndex == index && a.Scope == "global" {
			all = append(all, a.Prefix)
		}
	}
	return all
}

// routesOn are the gateways of a link's default routes in main, and its other
// routes there but those that the kernel makes with addresses.
func routesOn(index int, routes []rtnl.Route) (gateways []netip.Addr, others []policy.Route) {
	const main = 254
	for _, r := range routes {
		if r.Table != main || r.Type != "unicast" || r.Protocol == "kernel" {
			continue
		}
		for _, hop := range waysOf(r) {
			switch {
			case hop.LinkIndex != index:
			case r.Dst.Bits() == 0 && hop.Gateway.IsValid():
				gateways = append(gateways, hop.Gateway)
			case r.Dst.Bits() != 0:
				others = append(others, policy.Route{Dst: r.Dst, Gw: hop.Gateway})
			}
		}
	}
	return gateways, others
}
