package inventory

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// view is what one network namespace holds, from sysfs and netlink together.
type view struct {
	netns   *NetNS // nil for the namespace we look from
	netdevs []netdev
	rdma    []rdmaFacts
	byIndex map[int]*netdev
	byName  map[string]*netdev
	bonded  map[string]int // number of ports whose default GID names a netdev
}

// netdev is a netdev with what ties it to its function.
type netdev struct {
	Netdev
	parentDev    string // name of the device below it: PCI address or auxiliary device
	devicePath   string
	parentIndex  int // of the netdev below it
	physPortName string
	bondMode     string
	megabits     int
	maxMegabits  int
	lanes        int
}

// rdmaFacts is an RDMA device as sysfs and netlink tell it; one may be nil.
type rdmaFacts struct {
	ib    *sysfs.IBDevice
	nl    *rdmanl.Device
	ports []portFacts // by number
}

// views returns the namespace we look from, then the others.
func views(f *Facts) []*view {
	list := []*view{hostView(f)}
	for i := range f.Netlink.Elsewhere {
		n := &f.Netlink.Elsewhere[i]
		v := newView(n.IB, n.RDMA, nil, n.Links, n.Addresses, n.Settings)
		v.netns = &NetNS{ID: n.ID, Path: n.Path}
		for k := range v.netdevs {
			v.netdevs[k].NetNS = v.netns
		}
		list = append(list, v)
	}
	return list
}

func hostView(f *Facts) *view {
	n := &f.Netlink
	return newView(f.IB, n.RDMA, f.Netdevs, n.Links, n.Addresses, n.Settings)
}

func newView(ib []sysfs.IBDevice, rdma []rdmanl.Device, sys []sysfs.Netdev, links []rtnl.Link,
	addrs []rtnl.Address, settings map[int]ethtool.LinkSettings,
) *view {
	v := &view{
		netdevs: mergeNetdevs(sys, links),
		rdma:    mergeRDMA(ib, rdma),
		byIndex: map[int]*netdev{},
		byName:  map[string]*netdev{},
		bonded:  map[string]int{},
	}
	for i := range ib {
		for k := range ib[i].Ports {
			v.bonded[defaultGIDNetdev(&ib[i].Ports[k])]++
		}
	}
	for i := range v.netdevs {
		n := &v.netdevs[i]
		v.byIndex[n.Index] = n
		v.byName[n.Name] = n
		if s, ok := settings[n.Index]; ok {
			n.megabits = cmp.Or(s.SpeedMegabits, n.megabits)
			n.maxMegabits = s.MaxSpeedMegabits
			n.lanes = s.Lanes
		}
	}
	for _, a := range addrs {
		if n := v.byIndex[a.LinkIndex]; n != nil {
			n.Addresses = append(n.Addresses, a.Prefix)
		}
	}
	return v
}

// mergeNetdevs takes netlink's word where there is one, because it is told in
// one message, and fills in what only sysfs knows. The result is ordered by
// index.
func mergeNetdevs(sys []sysfs.Netdev, links []rtnl.Link) []netdev {
	list := make([]netdev, 0, max(len(sys), len(links)))
	if len(links) == 0 {
		for i := range sys {
			list = append(list, netdevOfSysfs(&sys[i]))
		}
	}
	known := byKey(sys, func(s *sysfs.Netdev) string { return s.Name })
	names := make(map[int]string, len(links))
	for i := range links {
		names[links[i].Index] = links[i].Name
	}
	for i := range links {
		n := netdevOfLink(&links[i], names)
		if s := known[n.Name]; s != nil && s.Index == n.Index {
			n.devicePath = s.DevicePath
			n.DevPort = s.DevPort
			n.physPortName = cmp.Or(n.physPortName, s.PhysPortName)
			n.bondMode = cmp.Or(n.bondMode, s.BondMode)
			n.megabits = s.SpeedMegabit
		}
		list = append(list, n)
	}
	slices.SortStableFunc(list, func(a, b netdev) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

func netdevOfLink(l *rtnl.Link, names map[int]string) netdev {
	return netdev{
		Netdev: Netdev{
			Name: l.Name, Index: l.Index, Address: l.Address, Up: l.Up, Running: l.Running,
			MTU: l.MTU, MaxMTU: l.MaxMTU, Master: names[l.MasterIndex],
		},
		parentDev:    l.ParentDev,
		parentIndex:  l.ParentIndex,
		physPortName: l.PhysPortName,
		bondMode:     l.BondMode,
	}
}

func netdevOfSysfs(s *sysfs.Netdev) netdev {
	return netdev{
		Netdev: Netdev{
			Name: s.Name, Index: s.Index, Address: s.Address,
			Up: s.Carrier != nil, Running: s.Carrier != nil && *s.Carrier,
			MTU: s.MTU, Master: s.Master, DevPort: s.DevPort,
		},
		devicePath:   s.DevicePath,
		physPortName: s.PhysPortName,
		bondMode:     s.BondMode,
		megabits:     s.SpeedMegabit,
	}
}

// mergeRDMA pairs sysfs' and netlink's devices by name, which is unique on the
// node. In shared mode sysfs and netlink see the same devices; a device that
// only one of them shows was just coming or going. The result is ordered by
// name.
func mergeRDMA(ib []sysfs.IBDevice, nl []rdmanl.Device) []rdmaFacts {
	list := make([]rdmaFacts, 0, max(len(ib), len(nl)))
	known := byKey(nl, func(d *rdmanl.Device) string { return d.Name })
	for i := range ib {
		d := known[ib[i].Name]
		delete(known, ib[i].Name)
		list = append(list, rdmaFacts{ib: &ib[i], nl: d, ports: mergePorts(&ib[i], d)})
	}
	for _, d := range known {
		list = append(list, rdmaFacts{nl: d, ports: mergePorts(nil, d)})
	}
	slices.SortStableFunc(list, func(a, b rdmaFacts) int { return compareNames(a.name(), b.name()) })
	return list
}

func (r *rdmaFacts) name() string {
	if r.ib != nil {
		return r.ib.Name
	}
	return r.nl.Name
}

// isIWARP tells whether the device speaks iWARP, which is carried by TCP.
func (r *rdmaFacts) isIWARP() bool {
	return r.nl != nil && r.nl.Protocol == "iw" || r.ib != nil && r.ib.NodeType == "RNIC"
}

// identity is what does not depend on the ports.
func (r *rdmaFacts) identity() *RDMA {
	rdma := &RDMA{Name: r.name(), Ports: []Port{}}
	if r.nl != nil {
		rdma.Index = &r.nl.Index
		rdma.Protocol = r.nl.Protocol
		rdma.NodeGUID = r.nl.NodeGUID
		rdma.SysImageGUID = r.nl.SysImageGUID
		rdma.Firmware = r.nl.Firmware
	}
	if r.ib != nil {
		rdma.NodeGUID = cmp.Or(rdma.NodeGUID, r.ib.NodeGUID)
		rdma.SysImageGUID = cmp.Or(rdma.SysImageGUID, r.ib.SysImageGUID)
		rdma.Firmware = cmp.Or(rdma.Firmware, r.ib.Firmware)
		rdma.BoardID = r.ib.BoardID
		rdma.HCAType = r.ib.HCAType
	}
	return rdma
}

// addPortNetdevs adds to a device the netdevs of its ports that are not its
// function's: a bond, the netdev below software RDMA, that of a function which
// the RDMA device shares its network with.
func (v *view) addPortNetdevs(d *Device) {
	for _, p := range d.RDMA.Ports {
		n := v.byName[p.Netdev]
		if n == nil || p.Representor || slices.ContainsFunc(d.Netdevs, func(m Netdev) bool { return m.Name == n.Name && sameNetNS(m.NetNS, n.NetNS) }) {
			continue
		}
		d.Netdevs = append(d.Netdevs, n.Netdev)
	}
}

// physState gives sysfs' names of physical port states in netlink's form.
func physState(sysfsName string) string {
	var b strings.Builder
	for i, r := range sysfsName {
		switch {
		case r == ' ':
			b.WriteByte('_')
			continue
		case i > 0 && r >= 'A' && r <= 'Z' && sysfsName[i-1] != ' ':
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// addressOf is the IP address that a RoCE GID stands for.
func addressOf(gid string) netip.Addr {
	a, err := netip.ParseAddr(gid)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}
