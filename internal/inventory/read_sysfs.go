package inventory

import (
	"errors"
	"io/fs"
	"slices"

	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// pci reads the functions of interest, and looks at the class of the others
// only once.
func (p *pass) pci() {
	var err error
	p.facts.functions, err = p.fs.PCIAddresses()
	p.problem(err)
	if p.changed.All {
		// Only when something cannot be read is it worth the while to find out what.
		if p.facts.PCI, err = p.fs.PCIDevices(isOfInterest); err == nil {
			return
		}
		p.facts.PCI = nil
	}
	known := byKey(p.prev.PCI, func(d *sysfs.PCIDevice) string { return d.Address })
	sameVFs := slices.Equal(p.prev.functions, p.facts.functions) // a PF makes no event of their end
	for _, address := range p.facts.functions {
		old := known[address]
		_, seen := slices.BinarySearchFunc(p.prev.functions, address, compareNames)
		switch {
		case !seen, p.changed.Names[address], old != nil && old.SRIOV != nil && !sameVFs:
			p.onePCI(address)
		case old != nil:
			p.facts.PCI = append(p.facts.PCI, *old)
		}
	}
}

func (p *pass) onePCI(address string) {
	d, err := p.fs.PCIDevice(address)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.facts.unread.merge(nameChange(address))
	case isOfInterest(d.Class):
		p.object(address, err)
		p.facts.PCI = append(p.facts.PCI, d)
	case d.Class == 0: // it may be one of interest whose class could not be read
		p.object(address, err)
	}
}

// isOfInterest tells whether a PCI class is one that the inventory lists.
func isOfInterest(class uint32) bool {
	return isNetwork(class) || slices.ContainsFunc(gpuClasses, func(c gpuClass) bool { return c.class == class>>8 })
}

// netdevs reads from sysfs what netlink does not tell of netdevs. Only links
// with hardware below them have anything there.
func (p *pass) netdevs() {
	if len(p.facts.Netlink.Links) == 0 {
		var err error
		p.facts.Netdevs, err = p.fs.Netdevs()
		p.problem(err)
		return
	}
	known := byKey(p.prev.Netdevs, func(n *sysfs.Netdev) string { return n.Name })
	for _, l := range p.facts.Netlink.Links {
		if isSoftware(&l) {
			continue
		}
		if old := known[l.Name]; old != nil && old.Index == l.Index && !p.touched[l.Index] && !p.changed.Names[l.Name] {
			p.facts.Netdevs = append(p.facts.Netdevs, *old)
			continue
		}
		n, err := p.fs.Netdev(l.Name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p.object(l.Name, err)
		p.facts.Netdevs = append(p.facts.Netdevs, n)
	}
}

// isSoftware tells whether a link has no hardware below it. IPoIB links have,
// though they have a kind too; a kernel before 5.14 names no parent device.
func isSoftware(l *rtnl.Link) bool {
	const ipoib = 32 // ARPHRD_INFINIBAND
	return l.Kind != "" && l.ParentDev == "" && l.Type != ipoib
}

// chars reads the character devices when RDMA devices or character devices came
// or went.
func (p *pass) chars() {
	changed := p.changed.All || p.changed.Names[verbsClass] || p.changed.Names[madClass]
	if !changed && sameRegistrations(p.prev.Netlink.RDMA, p.facts.Netlink.RDMA) {
		p.facts.Chars = p.prev.Chars
		return
	}
	var err error
	p.facts.Chars, err = p.fs.CharDevices()
	p.object(verbsClass, err)
}

func sameRegistrations(a, b []rdmanl.Device) bool {
	return slices.EqualFunc(a, b, func(x, y rdmanl.Device) bool { return x.Index == y.Index && x.Name == y.Name })
}
