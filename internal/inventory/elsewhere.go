package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// look is a look into other namespaces, which costs the more the more pods
// there are.
type look struct {
	missing  map[string]want // what it was for
	isFailed bool            // not all could be seen
}

// elsewhere looks for functions that have a driver but nothing to show for it
// here: their netdev or RDMA device was moved into another network namespace.
// It looks only while there are any, and keeps what was found earlier as long
// as that accounts for them, or would account for no more. Where nothing changed
// here, it is what is elsewhere that the caller wants anew.
func (p *pass) elsewhere() {
	if p.archive != nil {
		return
	}
	missing := p.missing()
	if len(missing) == 0 {
		return
	}
	kept := keepFound(p.prev.Netlink.Elsewhere, missing)
	if last := p.prev.looked; !p.isLook && !last.isFailed && (accounted(kept, missing) || p.isInVain(last, missing, kept)) {
		p.facts.Netlink.Elsewhere, p.facts.looked = kept, look{missing: missing}
		return
	}
	p.lookFor(missing)
}

// isInVain tells whether a look would end as the last did: some functions have
// nothing to show anywhere, such as the second member of a bond.
func (p *pass) isInVain(last look, missing map[string]want, kept []Namespace) bool {
	sameNamespace := func(a, b Namespace) bool {
		return a.ID == b.ID && len(a.IB) == len(b.IB) && len(a.Links) == len(b.Links)
	}
	return maps.Equal(last.missing, missing) && slices.EqualFunc(kept, p.prev.Netlink.Elsewhere, sameNamespace)
}

func (p *pass) lookFor(missing map[string]want) {
	p.facts.looked = look{missing: missing}
	found, listErr := netns.List(p.fs.Path("proc"))
	for _, f := range found {
		n, err := p.lookInto(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p.lookProblem(err)
		if len(n.IB)+len(n.Links) > 0 {
			p.facts.Netlink.Elsewhere = append(p.facts.Netlink.Elsewhere, n)
		}
	}
	if listErr != nil && !accounted(p.facts.Netlink.Elsewhere, missing) {
		p.lookProblem(fmt.Errorf("looking for %s in other network namespaces: %w",
			strings.Join(slices.Sorted(maps.Keys(missing)), ", "), unnumbered(listErr)))
	}
}

// unnumbered is an error of netns.List without the processes that may not be looked
// into: with each that starts or ends these are others, for the same cause, which
// people are to be told of once.
func unnumbered(err error) error {
	denied, ok := errors.AsType[*netns.DeniedError](err)
	if !ok {
		return err
	}
	text := fmt.Sprintf("those of some processes, which needs CAP_SYS_PTRACE: %v", fs.ErrPermission)
	return errors.New(strings.ReplaceAll(err.Error(), denied.Error(), text))
}

func (p *pass) lookProblem(err error) {
	p.problem(err)
	p.facts.looked.isFailed = p.facts.looked.isFailed || err != nil
}

// want says what a function lacks here.
type want struct {
	netdev, rdma bool
}

// missing returns the functions, by PCI address or auxiliary device, that lack
// something that they had or must have.
func (p *pass) missing() map[string]want {
	netdevs, rdma, had := p.netdevFunctions(), functionsOf(p.facts.IB), p.hadRDMA()
	isExclusive := p.isExclusive()
	missing := map[string]want{}
	check := func(id, driver string) {
		known, ok := DriverOf(driver)
		w := want{
			netdev: !netdevs[id] && (rdma[id] == nil || isRoCE(rdma[id])),
			rdma:   isExclusive && rdma[id] == nil && (had[id] || ok && known.Always || !netdevs[id]),
		}
		if w.netdev || w.rdma {
			missing[id] = w
		}
	}
	for i := range p.facts.PCI {
		d := &p.facts.PCI[i]
		if d.Driver == "" || isPassedThrough(d.Driver) || !isNetwork(d.Class) {
			continue
		}
		check(d.Address, d.Driver)
		for _, aux := range d.Auxiliary {
			check(aux.Name, d.Driver)
		}
	}
	return missing
}

// isExclusive tells whether RDMA devices can be in another namespace. In shared
// mode every namespace shows all of them, and none is anywhere but here.
func (p *pass) isExclusive() bool {
	system := p.facts.Netlink.System
	return system != nil && system.NetNSMode == "exclusive"
}

// netdevFunctions returns all that is above a netdev of this namespace: its
// parent may be a virtio device, and only that one's parent the function. Also
// those whose RDMA device is carried by a netdev of another function.
func (p *pass) netdevFunctions() map[string]bool {
	above := map[string]bool{}
	ib := byKey(p.facts.IB, func(d *sysfs.IBDevice) string { return d.Name })
	for i := range p.facts.Netlink.RDMA {
		d := &p.facts.Netlink.RDMA[i]
		if ib[d.Name] != nil && slices.ContainsFunc(d.Ports, func(port rdmanl.Port) bool { return port.NetdevIndex != 0 }) {
			above[functionOf(ib[d.Name])] = true
		}
	}
	for _, l := range p.facts.Netlink.Links {
		above[l.ParentDev] = true
	}
	for _, n := range p.facts.Netdevs {
		for hop := range strings.SplitSeq(n.DevicePath, "/") {
			above[hop] = true
		}
	}
	return above
}

// hadRDMA returns the functions that had an RDMA device, here or elsewhere.
func (p *pass) hadRDMA() map[string]bool {
	had := map[string]bool{}
	for i := range p.prev.IB {
		had[functionOf(&p.prev.IB[i])] = true
	}
	for _, n := range p.prev.Netlink.Elsewhere {
		for i := range n.IB {
			had[functionOf(&n.IB[i])] = true
		}
	}
	return had
}

// isPassedThrough tells whether a driver hands functions to user space.
func isPassedThrough(driver string) bool {
	return slices.Contains([]string{"vfio-pci", "uio_pci_generic", "igb_uio", "pci-stub", "xen-pciback"}, driver)
}

func isRoCE(d *sysfs.IBDevice) bool {
	return slices.ContainsFunc(d.Ports, func(p sysfs.IBPort) bool { return p.LinkLayer == Ethernet })
}

// functionOf is the PCI address or auxiliary device that an RDMA device sits
// on; empty for software RDMA.
func functionOf(d *sysfs.IBDevice) string {
	if d.DevicePath == "" {
		return ""
	}
	return path.Base(d.DevicePath)
}

func functionsOf(ib []sysfs.IBDevice) map[string]*sysfs.IBDevice {
	return byKey(ib, functionOf)
}

// keepFound returns those of the namespaces that still exist, without what has
// come back here.
func keepFound(found []Namespace, missing map[string]want) []Namespace {
	var kept []Namespace
	for _, n := range found {
		if id, err := netns.Stat(n.Path); err != nil || id != n.ID {
			continue
		}
		n.IB = slices.DeleteFunc(slices.Clone(n.IB), func(d sysfs.IBDevice) bool { return !missing[functionOf(&d)].rdma })
		n.Links = slices.DeleteFunc(slices.Clone(n.Links), func(l rtnl.Link) bool { return !missing[l.ParentDev].netdev })
		n.RDMA = slices.DeleteFunc(slices.Clone(n.RDMA), func(d rdmanl.Device) bool {
			return !slices.ContainsFunc(n.IB, func(ib sysfs.IBDevice) bool { return ib.Name == d.Name })
		})
		if len(n.IB)+len(n.Links) > 0 {
			kept = append(kept, n)
		}
	}
	return kept
}

// accounted tells whether all that is missing is among what was found. What is
// not RoCE needs no netdev.
func accounted(found []Namespace, missing map[string]want) bool {
	have := map[string]want{}
	for _, n := range found {
		for i := range n.IB {
			w := have[functionOf(&n.IB[i])]
			w.rdma = true
			w.netdev = w.netdev || !isRoCE(&n.IB[i])
			have[functionOf(&n.IB[i])] = w
		}
		for _, l := range n.Links {
			w := have[l.ParentDev]
			w.netdev = true
			have[l.ParentDev] = w
		}
	}
	for id, w := range missing {
		if w.netdev && !have[id].netdev || w.rdma && !have[id].rdma {
			return false
		}
	}
	return true
}

// lookInto reads what another namespace holds of the node's hardware.
func (p *pass) lookInto(f netns.Found) (Namespace, error) {
	n := Namespace{ID: f.ID, Path: f.Path}
	sys, err := p.ask(&n)
	if sys == nil {
		return n, err
	}
	defer sys.Close()
	var errFiles error
	n.IB, errFiles = p.fs.WithSys(procFD(sys)).IBDevices()
	return n, errors.Join(err, wrap(n.Path, errFiles))
}

// ask asks the kernel what a namespace holds, and opens its view of sysfs where
// there are RDMA devices in it. Sockets keep the namespace and the devices in it
// alive, and sysfs does not: so they are closed before its files are read, of
// which a GID table alone has a thousand.
func (p *pass) ask(n *Namespace) (sys *os.File, err error) {
	ns, err := p.node.Open(n.Path)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if ns.ID() != n.ID {
		return nil, fmt.Errorf("%s: it became another namespace: %w", n.Path, fs.ErrNotExist)
	}
	errLinks := n.readLinks(ns)
	errSettings := n.readSettings(ns)
	sys, errRDMA := p.askRDMA(n, ns)
	return sys, errors.Join(errLinks, errSettings, errRDMA)
}

// readLinks keeps the links with hardware below them, and their addresses.
func (n *Namespace) readLinks(ns node.NetNS) error {
	client, err := ns.Links()
	if err != nil {
		return fmt.Errorf("%s: %w", n.Path, err)
	}
	defer client.Close()
	links, err := client.Links()
	if err != nil {
		return fmt.Errorf("%s: %w", n.Path, err)
	}
	n.Links = slices.DeleteFunc(links, func(l rtnl.Link) bool { return l.ParentDev == "" })
	if len(n.Links) == 0 {
		return nil
	}
	addresses, err := client.Addresses()
	if err != nil {
		return fmt.Errorf("%s: %w", n.Path, err)
	}
	n.Addresses = slices.DeleteFunc(addresses, func(a rtnl.Address) bool {
		return !slices.ContainsFunc(n.Links, func(l rtnl.Link) bool { return l.Index == a.LinkIndex })
	})
	return nil
}

// readSettings reads the speeds of the links that were kept.
func (n *Namespace) readSettings(ns node.NetNS) error {
	if len(n.Links) == 0 {
		return nil
	}
	client, err := ns.Ethtool()
	if errors.Is(err, ethtool.ErrNotSupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.Path, err)
	}
	defer client.Close()
	n.Settings = map[int]ethtool.LinkSettings{}
	var errs []error
	for _, l := range n.Links {
		settings, err := client.Settings(l.Index)
		if err == nil {
			n.Settings[l.Index] = settings
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("%s: %w", n.Path, err))
		}
	}
	return errors.Join(errs...)
}

// askRDMA asks for the RDMA devices of a namespace, and opens its view of sysfs
// if it has any.
func (p *pass) askRDMA(n *Namespace, ns node.NetNS) (sys *os.File, err error) {
	if !p.isExclusive() {
		return nil, nil //nolint:nilnil // RDMA devices are in no namespace but ours
	}
	client, err := ns.RDMA()
	if err != nil {
		return nil, wrap(n.Path, err)
	}
	defer client.Close()
	n.RDMA, err = client.DevicesWithPorts()
	if err != nil || len(n.RDMA) == 0 {
		return nil, wrap(n.Path, err)
	}
	sys, err = ns.SysFS()
	return sys, wrap(n.Path, err)
}

func wrap(object string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", object, err)
}

// procFD is a path to an open directory.
func procFD(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
