package inventory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// Reader reads facts from sysfs and netlink. It is not safe for concurrent use.
type Reader struct {
	fs      sysfs.FS
	archive *Netlink // what netlink said when a copy was made; nil on a running node

	links    *rtnl.Client
	rdma     *rdmanl.Client  // nil while the kernel has no RDMA
	settings *ethtool.Client // nil where the kernel has no ethtool netlink
}

// NewReader returns a Reader of the running node, in the network namespace of
// the caller. It needs no privilege; without CAP_SYS_ADMIN and CAP_SYS_PTRACE
// it cannot look for devices in other network namespaces. Close it after use.
func NewReader(fsys sysfs.FS) (*Reader, error) {
	links, err := rtnl.Dial(nil)
	if err != nil {
		return nil, err
	}
	r := &Reader{fs: fsys, links: links}
	if r.settings, err = ethtool.Dial(nil); err != nil && !errors.Is(err, ethtool.ErrNotSupported) {
		return nil, errors.Join(err, links.Close())
	}
	return r, nil
}

// NetlinkFile is where the copy of a node keeps what netlink said.
const NetlinkFile = "/netlink.json"

// netlinkLimit bounds NetlinkFile.
const netlinkLimit = 64 << 20

// NewArchiveReader returns a Reader of the copy of a node. Where the copy has
// no NetlinkFile, sysfs is all there is.
func NewArchiveReader(fsys sysfs.FS) (*Reader, error) {
	r := &Reader{fs: fsys, archive: &Netlink{}}
	text, err := fsys.ConfigFile(NetlinkFile, netlinkLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, r.archive); err != nil {
		return nil, fmt.Errorf("%s: %w", NetlinkFile, err)
	}
	return r, nil
}

// Close closes the netlink sockets.
func (r *Reader) Close() error {
	var errs []error
	if r.links != nil {
		errs = append(errs, r.links.Close())
	}
	if r.rdma != nil {
		errs = append(errs, r.rdma.Close())
	}
	if r.settings != nil {
		errs = append(errs, r.settings.Close())
	}
	return errors.Join(errs...)
}

// Read reads what changed and takes the rest from earlier facts; without
// earlier facts it reads everything. It always returns facts: what could not be
// read is in their Problems, and a device that goes away meanwhile is left out.
func (r *Reader) Read(prev *Facts, changed Changes) *Facts {
	if prev == nil || changed.All {
		prev, changed = &Facts{}, everything()
	}
	p := &pass{Reader: r, prev: prev, isLook: changed.isEmpty(), facts: &Facts{Kernel: prev.Kernel}}
	p.changed.merge(changed)
	p.changed.merge(prev.unread)
	p.kernel()
	p.netlink()
	p.pci()
	p.ib()
	p.netdevs()
	p.chars()
	p.elsewhere()
	return p.facts
}

// pass is one pass of reading.
type pass struct {
	*Reader

	prev    *Facts
	changed Changes
	isLook  bool // nothing changed here, so that it is about what is elsewhere
	facts   *Facts
	touched map[int]bool // links that changed, and those below and above them
}

func (p *pass) problem(err error) {
	if err != nil {
		p.facts.Problems = append(p.facts.Problems, err)
	}
}

// object notes an error of an object, which is then read again next time.
func (p *pass) object(name string, err error) {
	if err != nil {
		p.problem(err)
		p.facts.unread.merge(nameChange(name))
	}
}

func (p *pass) kernel() {
	if p.facts.Kernel != "" {
		return
	}
	release, err := p.fs.KernelRelease()
	if !errors.Is(err, fs.ErrNotExist) {
		p.problem(err)
	}
	p.facts.Kernel = release
}

// netlink asks all that netlink tells of this namespace.
func (p *pass) netlink() {
	if p.archive != nil {
		p.facts.Netlink = *p.archive
	} else {
		p.liveLinks()
		p.liveRDMA()
	}
	if p.facts.Netlink.System == nil {
		p.netnsModeParam()
	}
	p.touched = touchedLinks(p.changed.Links, p.facts.Netlink.Links, p.prev.Netlink.Links)
	if p.archive == nil {
		p.liveSettings()
	}
}

func (p *pass) liveLinks() {
	var err error
	p.facts.Netlink.Links, err = p.links.Links()
	p.problem(err)
	p.facts.Netlink.Addresses, err = p.links.Addresses()
	p.problem(err)
}

// hasRDMA tells whether ib_core is there. To open a socket of RDMA without it
// could make the kernel load it.
func (r *Reader) hasRDMA() (bool, error) {
	_, loaded, err := r.fs.Module("ib_core")
	return loaded, err
}

func (p *pass) liveRDMA() {
	if p.rdma == nil {
		loaded, err := p.hasRDMA()
		p.problem(err)
		if !loaded {
			return
		}
		client, err := rdmanl.Dial(nil)
		if err != nil {
			p.problem(err)
			return
		}
		p.rdma = client
	}
	system, err := p.rdma.System()
	if err == nil {
		p.facts.Netlink.System = &system
	} else if !errors.Is(err, rdmanl.ErrNotSupported) {
		p.problem(err)
	}
	p.facts.Netlink.RDMA, err = p.rdma.DevicesWithPorts()
	p.problem(err)
}

func (p *pass) netnsModeParam() {
	core, loaded, err := p.fs.Module("ib_core")
	p.problem(err)
	if !loaded {
		return
	}
	switch core.Params["netns_mode"] {
	case "Y":
		p.facts.NetNSModeParam = "shared"
	case "N":
		p.facts.NetNSModeParam = "exclusive"
	}
}

// liveSettings asks for the speeds of hardware links. Drivers may ask their
// firmware for them, so those of links that did not change are kept.
func (p *pass) liveSettings() {
	if p.settings == nil {
		return
	}
	n := &p.facts.Netlink
	if p.changed.All {
		var err error
		n.Settings, err = p.settings.SettingsAll()
		if err != nil {
			p.problem(err)
			p.facts.unread.merge(linksChange(n.Links))
		}
		return
	}
	n.Settings = map[int]ethtool.LinkSettings{}
	for _, l := range n.Links {
		if old, ok := p.prev.Netlink.Settings[l.Index]; ok && !p.touched[l.Index] {
			n.Settings[l.Index] = old
			continue
		}
		s, err := p.settings.Settings(l.Index)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		n.Settings[l.Index] = s
		if err != nil {
			p.problem(err)
			p.facts.unread.merge(linkChange(l.Index))
		}
	}
}

// touchedLinks returns the links with the given indexes and those that they sit
// on or belong to: an address of a macvlan adds a GID to the device of its
// parent, one of a bond to the devices of its members.
func touchedLinks(changed map[int]bool, links ...[]rtnl.Link) map[int]bool {
	touched := map[int]bool{}
	if len(changed) == 0 {
		return touched
	}
	byIndex, members := map[int][]*rtnl.Link{}, map[int][]int{}
	for _, list := range links {
		for i := range list {
			l := &list[i]
			byIndex[l.Index] = append(byIndex[l.Index], l)
			members[l.MasterIndex] = append(members[l.MasterIndex], l.Index)
		}
	}
	var touch func(index int)
	touch = func(index int) {
		if index == 0 || touched[index] {
			return
		}
		touched[index] = true
		for _, l := range byIndex[index] {
			touch(l.ParentIndex)
			touch(l.MasterIndex)
			if l.Kind == "bond" {
				for _, member := range members[index] {
					touch(member)
				}
			}
		}
	}
	for index := range changed {
		touch(index)
	}
	return touched
}

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

// ib reads RDMA devices from sysfs. One that netlink shows unchanged is kept,
// its registration and its ports, where no link was touched whose addresses
// could have changed its GIDs.
func (p *pass) ib() {
	names, err := p.fs.IBDeviceNames()
	p.problem(err)
	known := byKey(p.prev.IB, func(d *sysfs.IBDevice) string { return d.Name })
	now := byKey(p.facts.Netlink.RDMA, func(d *rdmanl.Device) string { return d.Name })
	before := byKey(p.prev.Netlink.RDMA, func(d *rdmanl.Device) string { return d.Name })
	for _, name := range names {
		if old := known[name]; old != nil && !p.changed.Names[name] && p.sameDevice(before[name], now[name]) {
			p.facts.IB = append(p.facts.IB, *old)
			continue
		}
		d, err := p.fs.IBDevice(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p.object(name, err)
		p.facts.IB = append(p.facts.IB, d)
	}
}

func (p *pass) sameDevice(before, now *rdmanl.Device) bool {
	return before != nil && now != nil && reflect.DeepEqual(before, now) &&
		!slices.ContainsFunc(now.Ports, func(port rdmanl.Port) bool { return p.touched[port.NetdevIndex] })
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

// Classes of character devices, one of which is in the path of each of them.
const (
	verbsClass = "infiniband_verbs"
	madClass   = "infiniband_mad"
)

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

// byKey indexes a list.
func byKey[T any, K cmp.Ordered](list []T, key func(*T) K) map[K]*T {
	m := make(map[K]*T, len(list))
	for i := range list {
		m[key(&list[i])] = &list[i]
	}
	return m
}
