package inventory

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"

	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/sysfs"
)

// ib reads RDMA devices from sysfs. One that netlink shows unchanged is kept,
// its registration and its ports, where no link was touched whose addresses
// could have changed its GIDs.
func (p *pass) ib() {
	var err error
	p.ibNames, err = p.fs.IBDeviceNames()
	p.problem(err)
	known := byKey(p.prev.IB, nameOfIB)
	now := byKey(p.facts.Netlink.RDMA, nameOfRDMA)
	before := byKey(p.prev.Netlink.RDMA, nameOfRDMA)
	for _, name := range p.ibNames {
		if old := known[name]; old != nil && !p.changed.Names[name] && p.sameDevice(before[name], now[name]) {
			p.facts.IB = append(p.facts.IB, *old)
			continue
		}
		p.oneIB(name)
	}
}

func nameOfIB(d *sysfs.IBDevice) string  { return d.Name }
func nameOfRDMA(d *rdmanl.Device) string { return d.Name }

func (p *pass) oneIB(name string) {
	d, err := p.fs.IBDevice(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	p.object(name, err)
	p.facts.IB = append(p.facts.IB, d)
}

func (p *pass) sameDevice(before, now *rdmanl.Device) bool {
	return before != nil && now != nil && reflect.DeepEqual(before, now) &&
		!slices.ContainsFunc(now.Ports, func(port rdmanl.Port) bool { return p.touched[port.NetdevIndex] })
}
