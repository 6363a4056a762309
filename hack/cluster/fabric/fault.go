package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

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

// Limit lets no more pass through a cable than so many bits a second each way,
// headers included. It takes the place of an earlier limit. The kernel takes the
// limit off an end that moves to another namespace.
func (f *Fabric) Limit(l plan.Link, bitsPerSecond uint64) error {
	if bitsPerSecond < minRate {
		return fmt.Errorf("rate %d bit/s of %v: want at least %d", bitsPerSecond, l, minRate)
	}
	limit := func(m machine, link netlink.Link) error { return m.QdiscReplace(bucket(link, bitsPerSecond)) }
	return errors.Join(f.port(l, limit), f.netdev(l, limit))
}

// Unlimit undoes [Fabric.Limit]. A node's end that has gone elsewhere has no
// limit any more.
func (f *Fabric) Unlimit(l plan.Link) error {
	err := f.netdev(l, machine.noBucket)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(f.port(l, machine.noBucket), err)
}

// port does something to the fabric's end of a cable.
func (f *Fabric) port(l plan.Link, do func(machine, netlink.Link) error) error {
	return f.end(l, plan.Fabric, l.Port, do)
}

// netdev does something to the node's end of a cable.
func (f *Fabric) netdev(l plan.Link, do func(machine, netlink.Link) error) error {
	return f.end(l, l.Node, l.Netdev, do)
}

func (f *Fabric) end(l plan.Link, name, end string, do func(machine, netlink.Link) error) error {
	err := f.in(name, func(m machine) error {
		link, err := m.link(end)
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

// The size of a token bucket: what may pass at once is 10 ms of the rate, but
// at least a few of the largest frames, and what may wait is 100 ms.
const (
	minRate  = 8000 // bits a second; less would not pass one frame in ten seconds
	minBurst = 64 << 10
	maxBurst = 64 << 20
)

// bucket is the queueing discipline that limits what leaves by a link.
func bucket(link netlink.Link, bitsPerSecond uint64) *netlink.Tbf {
	rate := bitsPerSecond / 8
	burst := uint32(min(max(rate/100, minBurst), maxBurst))
	return &netlink.Tbf{
		QdiscAttrs: root(link),
		Rate:       rate,
		Buffer:     netlink.Xmittime(rate, burst),
		Limit:      burst + uint32(min(rate/10, math.MaxInt32)),
	}
}

func root(link netlink.Link) netlink.QdiscAttrs {
	return netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
}

// noBucket takes the limit off a link. Any other discipline stays.
func (m machine) noBucket(link netlink.Link) error {
	disciplines, err := m.QdiscList(link)
	if err != nil {
		return err
	}
	for _, d := range disciplines {
		if tbf, ok := d.(*netlink.Tbf); ok && tbf.Parent == netlink.HANDLE_ROOT {
			return m.QdiscDel(tbf)
		}
	}
	return nil
}
