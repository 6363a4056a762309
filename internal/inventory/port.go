package inventory

import (
	"cmp"
	"slices"
	"strings"

	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/sysfs"
)

// The link layers of a port, as the kernel names them.
const (
	Ethernet   = "Ethernet"
	InfiniBand = "InfiniBand"
)

// linkUp is the physical state of a port that has a link.
const linkUp = "LINK_UP"

// portFacts is a port as sysfs and netlink tell it; one may be nil.
type portFacts struct {
	number int
	ib     *sysfs.IBPort
	nl     *rdmanl.Port
}

// mergePorts pairs sysfs' and netlink's ports by number.
func mergePorts(ib *sysfs.IBDevice, nl *rdmanl.Device) []portFacts {
	var list []portFacts
	if ib != nil {
		for i := range ib.Ports {
			list = append(list, portFacts{number: ib.Ports[i].Number, ib: &ib.Ports[i]})
		}
	}
	if nl != nil {
		for i := range nl.Ports {
			list = append(list, portFacts{number: nl.Ports[i].Number, nl: &nl.Ports[i]})
		}
	}
	slices.SortStableFunc(list, func(a, b portFacts) int { return cmp.Compare(a.number, b.number) })
	merged := list[:0]
	for _, p := range list {
		if n := len(merged); n > 0 && merged[n-1].number == p.number {
			merged[n-1].ib = cmp.Or(merged[n-1].ib, p.ib)
			merged[n-1].nl = cmp.Or(merged[n-1].nl, p.nl)
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

// portOf puts together what a snapshot says of a port of device d.
func (v *view) portOf(d *Device, r *rdmaFacts, facts portFacts) Port {
	p := Port{Number: facts.number}
	if ib := facts.ib; ib != nil {
		p.LinkLayer = ib.LinkLayer
		p.State = ib.State
		p.PhysState = physState(ib.PhysState)
		p.Gigabits, p.Lanes, p.Speed = ib.Rate.Gigabits, ib.Rate.Lanes, ib.Rate.Speed
		p.LID, p.SMLID = ib.LID, ib.SMLID
		p.GIDTableLen = ib.GIDTableLen
	}
	if nl := facts.nl; nl != nil {
		p.LinkLayer = cmp.Or(p.LinkLayer, nl.LinkLayer)
		p.State = cmp.Or(nl.State, p.State)
		p.PhysState = cmp.Or(nl.PhysState, p.PhysState)
		p.LID, p.SMLID = cmp.Or(nl.LID, p.LID), cmp.Or(nl.SMLID, p.SMLID)
	}
	isRoCE := p.LinkLayer == Ethernet && !r.isIWARP()
	p.GIDs = gidsOf(facts.ib, isRoCE)
	p.GUID = portGUID(p)
	if n := v.portNetdev(d, r, facts); n != nil {
		p.setNetdev(n)
	}
	if p.PhysState != linkUp { // the kernel then tells some default
		p.Gigabits, p.Lanes, p.Speed = 0, 0, ""
	}
	if isRoCE {
		p.RDMAMTU = rdmaMTU(p.MTU)
	}
	return p
}

// portNetdev finds the netdev that carries a port: by netlink's index, by
// sysfs' parent (Soft-RoCE), by the netdev of the port's default GID (a bond),
// or by the port's number on the function, never by address.
func (v *view) portNetdev(d *Device, r *rdmaFacts, facts portFacts) *netdev {
	if facts.nl != nil {
		if n := v.byIndex[facts.nl.NetdevIndex]; n != nil {
			return v.orBond(n, facts.ib)
		}
	}
	if r.ib != nil {
		if n := v.byName[r.ib.Parent]; n != nil {
			return n
		}
	}
	if n := v.byName[defaultGIDNetdev(facts.ib)]; n != nil && (n.bondMode == "" || v.bonded[n.Name] == 1) {
		return n
	}
	return v.functionNetdev(d, r, facts.number)
}

// orBond returns the bond of a netdev when the RDMA device stands for the whole
// bond: netlink then names the first member, the default GID names the bond.
// The default GIDs of devices that stand for a member each name it as well.
func (v *view) orBond(n *netdev, ib *sysfs.IBPort) *netdev {
	bond := v.byName[n.Master]
	if bond != nil && bond.bondMode != "" && defaultGIDNetdev(ib) == bond.Name && v.bonded[bond.Name] == 1 {
		return bond
	}
	return n
}

// defaultGIDNetdev is the netdev of a port's default GID, the first of its
// table; empty where there is none.
func defaultGIDNetdev(ib *sysfs.IBPort) string {
	if ib == nil || len(ib.GIDs) == 0 || ib.GIDs[0].Index != 0 {
		return ""
	}
	return ib.GIDs[0].Netdev
}

// functionNetdev picks the netdev of a port among those of its function. Some
// drivers count dev_port over the card and not over the function, so the only
// netdev of the only port needs no number. The ports of an eswitch's device have
// numbers of another kind; its uplink is told by having a physical port's name.
func (v *view) functionNetdev(d *Device, r *rdmaFacts, port int) *netdev {
	var own []*netdev
	for _, n := range d.Netdevs {
		if m := v.byIndex[n.Index]; m != nil && m.Name == n.Name && m.parentIndex == 0 && sameNetNS(n.NetNS, v.netns) {
			own = append(own, m)
		}
	}
	for _, n := range own {
		if n.DevPort == port-1 && (n.physPortName == "" || len(r.ports) == 1) {
			return n
		}
	}
	if len(own) == 1 && len(r.ports) == 1 {
		return own[0]
	}
	return nil
}

// isRepresentor tells by its phys_port_name (pf0vf3, c1pf0sf88, pf0hpf) whether
// a netdev stands on an eswitch for someone else's function.
func (n *netdev) isRepresentor() bool {
	name := n.physPortName
	if rest, ok := strings.CutPrefix(name, "c"); ok { // the controller that the function belongs to
		name = strings.TrimLeft(rest, "0123456789")
	}
	return strings.HasPrefix(name, "pf")
}

// markRepresentors marks the ports of an eswitch's RDMA device that stand for
// other functions: all but the uplink, whether or not their netdev is here.
func (v *view) markRepresentors(ports []Port) {
	stands := func(p Port) bool { n := v.byName[p.Netdev]; return n != nil && n.isRepresentor() }
	if !slices.ContainsFunc(ports, stands) {
		return
	}
	for i := range ports {
		ports[i].Representor = ports[i].Netdev == "" || stands(ports[i])
	}
}

func sameNetNS(a, b *NetNS) bool {
	return a == b || a != nil && b != nil && a.ID == b.ID
}

func (p *Port) setNetdev(n *netdev) {
	p.Netdev = n.Name
	p.MTU, p.MaxMTU = n.MTU, n.MaxMTU
	p.MaxGigabits = gigabitsOf(n.maxMegabits)
	if p.LinkLayer == Ethernet && n.megabits > 0 {
		p.Gigabits, p.Lanes = gigabitsOf(n.megabits), n.lanes
	}
}

func gigabitsOf(megabits int) float64 {
	const perGigabit = 1000
	return float64(megabits) / perGigabit
}

// rdmaMTU is the largest InfiniBand MTU that fits into an Ethernet MTU beside
// the longest RoCE headers, as iboe_get_mtu in include/rdma/ib_addr.h counts.
func rdmaMTU(mtu int) int {
	const headers = 40 + 8 + 12 + 4 + 28 // GRH, UDP, BTH, extended XRC, atomic ETH
	for _, m := range []int{4096, 2048, 1024, 512, 256} {
		if mtu-headers >= m {
			return m
		}
	}
	return 0
}

// portGUID is the lower half of an InfiniBand port's first GID; the upper half
// is its subnet.
func portGUID(p Port) string {
	if p.LinkLayer != InfiniBand || len(p.GIDs) == 0 || p.GIDs[0].Index != 0 {
		return ""
	}
	groups := strings.Split(p.GIDs[0].GID, ":")
	return strings.Join(groups[len(groups)/2:], ":")
}

// gidsOf lists the GIDs of a port; those of RoCE stand for addresses.
func gidsOf(ib *sysfs.IBPort, isRoCE bool) []GID {
	if ib == nil {
		return nil
	}
	gids := make([]GID, 0, len(ib.GIDs))
	for _, g := range ib.GIDs {
		gid := GID{Index: g.Index, GID: g.GID, Type: g.Type, Netdev: g.Netdev}
		if isRoCE {
			gid.Address = addressOf(g.GID)
		}
		gids = append(gids, gid)
	}
	return gids
}
