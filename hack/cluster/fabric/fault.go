package fabric

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"railhead/hack/cluster/plan"
)

// Cut cuts a cable: both its ends lose their carrier. Neither loses addresses.
func (f *Fabric) Cut(l plan.Link) error {
	return f.port(l, func(m machine, port netlink.Link) error { return m.LinkSetDown(port) })
}

// Mend undoes [Fabric.Cut].
func (f *Fabric) Mend(l plan.Link) error {
	return f.port(l, func(m machine, port netlink.Link) error { return m.LinkSetUp(port) })
}

// port does something to the fabric's end of a cable.
func (f *Fabric) port(l plan.Link, do func(machine, netlink.Link) error) error {
	err := f.in(plan.Fabric, func(m machine) error {
		link, err := m.link(l.Port)
		if err != nil {
			return err
		}
		return do(m, link)
	})
	if err != nil {
		return fmt.Errorf("cable of %v to %s: %w", l, l.Bridge, err)
	}
	return nil
}
