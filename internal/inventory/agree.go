package inventory

import (
	"cmp"
	"fmt"
	"slices"

	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/sysfs"
)

// agree reads those RDMA devices again of which sysfs and netlink say different
// things, because they came or went between the two. The kernel makes the files
// of a device before netlink lists it, and removes them after netlink has
// dropped it. So what netlink lists has files, and what it does not list and has
// no ports is not there yet, or no more.
func (p *pass) agree() {
	disputed := p.disputed()
	if !p.isListed || len(disputed) == 0 {
		return
	}
	p.listAgain(disputed)
	p.readAgain(disputed)
	if torn := p.torn(); len(torn) > 0 {
		p.listAgain(torn)
		p.readAgain(torn)
	}
	p.leaveOut()
}

// leaveOut drops the devices that are still on their way. One that sysfs never
// showed is none of them: its sysfs may be that of another network namespace.
func (p *pass) leaveOut() {
	ib := byKey(p.facts.IB, nameOfIB)
	onItsWay := map[string]bool{}
	for _, name := range p.disputed() {
		switch files := ib[name]; {
		case files == nil:
			onItsWay[name] = slices.Contains(p.ibNames, name)
		case len(files.Ports) == 0:
			onItsWay[name] = true
		}
	}
	n := &p.facts.Netlink
	n.RDMA = slices.DeleteFunc(n.RDMA, func(d rdmanl.Device) bool { return onItsWay[d.Name] })
	p.facts.IB = slices.DeleteFunc(p.facts.IB, func(d sysfs.IBDevice) bool { return onItsWay[d.Name] })
	for _, name := range p.torn() {
		if i := slices.IndexFunc(p.facts.IB, func(d sysfs.IBDevice) bool { return d.Name == name }); i >= 0 {
			p.object(name, fmt.Errorf("RDMA device %s: netlink shows more ports than the %d in sysfs", name, len(p.facts.IB[i].Ports)))
		}
	}
}

// disputed names the devices that only one of sysfs and netlink shows, or of
// which sysfs lacks ports. What could not be read is no matter of dispute.
func (p *pass) disputed() []string {
	names := p.torn()
	listed := byKey(p.facts.Netlink.RDMA, nameOfRDMA)
	for i := range p.facts.IB {
		if name := p.facts.IB[i].Name; listed[name] == nil && !p.facts.unread.Names[name] {
			names = append(names, name)
		}
	}
	return names
}

// torn names the devices that netlink lists and sysfs does not show whole.
func (p *pass) torn() []string {
	ib := byKey(p.facts.IB, nameOfIB)
	var names []string
	for _, d := range p.facts.Netlink.RDMA {
		if files := ib[d.Name]; !p.facts.unread.Names[d.Name] && (files == nil || len(files.Ports) < len(d.Ports)) {
			names = append(names, d.Name)
		}
	}
	return names
}

// listAgain asks netlink once more and takes its word on the named devices.
func (p *pass) listAgain(names []string) {
	listed, err := p.rdma.DevicesWithPorts()
	if err != nil {
		p.problem(err)
		return
	}
	n := &p.facts.Netlink
	n.RDMA = slices.DeleteFunc(n.RDMA, func(d rdmanl.Device) bool { return slices.Contains(names, d.Name) })
	for _, d := range listed {
		if slices.Contains(names, d.Name) {
			n.RDMA = append(n.RDMA, d)
		}
	}
	slices.SortFunc(n.RDMA, func(a, b rdmanl.Device) int { return cmp.Compare(a.Index, b.Index) })
}

// readAgain reads those of the named devices from sysfs that netlink lists.
func (p *pass) readAgain(names []string) {
	for _, d := range p.facts.Netlink.RDMA {
		if slices.Contains(names, d.Name) {
			p.facts.IB = slices.DeleteFunc(p.facts.IB, func(ib sysfs.IBDevice) bool { return ib.Name == d.Name })
			p.oneIB(d.Name)
		}
	}
}
