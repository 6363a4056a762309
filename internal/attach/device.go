package attach

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"railhead/internal/kernel/rtnl"
)

// infiniband is ARPHRD_INFINIBAND.
const infiniband = 32

// device plans a netdev of the node that is moved.
func (p *planner) device(i *Interface, planned *PlannedInterface) error {
	l, err := p.find(i.Link.Device)
	if err != nil {
		return err
	}
	if l.Name == "lo" || l.MasterIndex != 0 {
		return fmt.Errorf("device %s: want a link of its own, not lo nor one that is in a bond or bridge", l.Name)
	}
	if l.Group == DeviceGroup {
		return fmt.Errorf("device %s: it comes back from another pod just now, and is not yet what it was before: want to try again; if no record of that pod is left, ip link set %s group default", l.Name, l.Name)
	}
	for _, other := range p.plan.Interfaces {
		if other.Kind == HostDevice && other.ParentIndex == l.Index {
			return fmt.Errorf("device %s: %s has it already", l.Name, other.Name)
		}
	}
	before := formerOf(l)
	if err := p.configuration(&before); err != nil {
		return err
	}
	if planned.Promisc != nil || planned.AllMulti != nil {
		f, err := p.a.nodeFlags(l.Name)
		if err != nil {
			return err
		}
		before.Promisc, before.AllMulti = f.promisc, f.allMulti
	}
	planned.Parent, planned.ParentIndex, planned.Before = l.Name, l.Index, &before
	i.SharesMAC = i.SharesMAC || l.Type == infiniband
	if i.MAC == nil && !i.SharesMAC && (i.Coordinator == nil || i.Coordinator.MACPrefix == nil) {
		i.MAC = macOf(l.Address)
	}
	if len(i.Masters) == 0 {
		i.Masters = []string{l.Name}
	}
	return nil
}

// nodeFlags are those of a link of the node.
func (a *Attacher) nodeFlags(name string) (f flags, err error) {
	err = a.home.Do(func() error {
		f, err = linkFlags(name)
		return err
	})
	return f, err
}

// configuration notes addresses and routes of a link, which end when it is
// moved. What the kernel makes by itself, it makes again, and routers announce again
// what they gave: from us it would stay for ever.
func (p *planner) configuration(before *Former) error {
	addresses, err := p.a.node.Addresses()
	if err != nil {
		return fmt.Errorf("addresses of the node: %w", err)
	}
	routes, err := p.a.node.Routes()
	if err != nil {
		return fmt.Errorf("routes of the node: %w", err)
	}
	for _, a := range addresses {
		isRouters := a.Dynamic && a.Prefix.Addr().Is6()
		if a.LinkIndex == before.Index && !a.Prefix.Addr().IsLinkLocalUnicast() && !isRouters {
			before.Addresses = append(before.Addresses, a)
		}
	}
	for _, r := range routes {
		if goes(r, before.Index) && r.Protocol != "kernel" && r.Protocol != "ra" {
			r.Dead, r.LinkDown, r.NextHopID = false, false, 0 // the object goes with the link
			before.Routes = append(before.Routes, p.a.whole(r, before.Index))
		}
	}
	hasGateway := func(r rtnl.Route) bool { return waysOf(r)[0].Gateway.IsValid() }
	slices.SortStableFunc(before.Routes, func(x, y rtnl.Route) int { // those on the link come first
		return compareBool(hasGateway(x), hasGateway(y))
	})
	return nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// find finds the node's link that a Device names.
func (p *planner) find(d Device) (rtnl.Link, error) {
	field, value, match := "", "", func(rtnl.Link) bool { return false }
	set := 0
	if d.Name != "" {
		set++
		field, value = "name", d.Name
		match = func(l rtnl.Link) bool { return l.Name == d.Name || slices.Contains(l.AltNames, d.Name) }
	}
	if len(d.MAC) > 0 {
		set++
		field, value = "MAC", d.MAC.String()
		match = func(l rtnl.Link) bool { return strings.EqualFold(l.Address, d.MAC.String()) }
	}
	if d.KernelPath != "" {
		set++
		field, value = "kernelpath", d.KernelPath
		below := strings.TrimPrefix(filepath.Clean("/"+d.KernelPath), "/sys/devices") // wherever ours is mounted
		match = named(netdevsBelow(filepath.Join(p.a.config.Sys, "devices", below)))
	}
	if d.PCIAddress != "" {
		set++
		field, value = "PCI address", d.PCIAddress
		match = named(netdevsBelow(filepath.Join(p.a.config.Sys, "bus/pci/devices", filepath.Base(d.PCIAddress))))
	}
	if set != 1 {
		return rtnl.Link{}, fmt.Errorf("device: %d of name, MAC, kernelpath and PCI address are given: want one", set)
	}
	links, err := p.a.node.Links()
	if err != nil {
		return rtnl.Link{}, fmt.Errorf("links of the node: %w", err)
	}
	n := slices.IndexFunc(links, match)
	if n < 0 {
		return rtnl.Link{}, fmt.Errorf("device %s %q: the node has no such link: %w", field, value, fs.ErrNotExist)
	}
	return links[n], nil
}

func named(names []string) func(rtnl.Link) bool {
	return func(l rtnl.Link) bool { return slices.Contains(names, l.Name) }
}

// netdevsBelow are the names of a device's netdevs: in its directory net, in
// that of a virtio device below it, or it is a netdev's own directory.
func netdevsBelow(dir string) []string {
	var names []string
	if filepath.Base(filepath.Dir(dir)) == "net" {
		names = append(names, filepath.Base(dir))
	}
	for _, pattern := range []string{"net", "virtio*/net"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern, "*"))
		if err != nil {
			continue // of the pattern
		}
		for _, path := range found {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}
