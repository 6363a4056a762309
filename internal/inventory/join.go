package inventory

import (
	"cmp"
	"slices"
	"strings"

	"railhead/internal/kernel/sysfs"
)

// Options are what an administrator decides about the inventory.
type Options struct {
	// Rails names the rails in order, from 0: by netdev, RDMA device or PCI
	// address of a PF. When it is empty, rails are numbered by the PCI order of
	// the PFs that carry RDMA.
	Rails []string
}

// Join makes one picture of what sysfs and netlink said. It is pure: the same
// facts give the same snapshot. Facts that are missing, contradict each other
// or describe a device that was just going away leave out what depends on them
// and nothing else.
func Join(f *Facts, opts Options) *Snapshot {
	j := newJoiner(f)
	for _, v := range j.views {
		j.addNetdevs(v)
		j.addRDMA(v)
	}
	j.addBonds(j.views[0])
	j.addCarriers()
	s := &Snapshot{
		System:   systemOf(f),
		Devices:  j.relevant(),
		GPUs:     j.gpus(),
		Problems: problemLines(f.Problems),
	}
	s.Problems = append(s.Problems, assignRails(s.Devices, opts.Rails)...)
	return s
}

func systemOf(f *Facts) System {
	s := System{Kernel: f.Kernel}
	if f.Netlink.System != nil {
		s.NetNSMode = f.Netlink.System.NetNSMode
		s.CopyOnFork = f.Netlink.System.CopyOnFork
	}
	if s.NetNSMode == "" {
		s.NetNSMode = f.NetNSModeParam
	}
	return s
}

// problemLines flattens errors to one line each.
func problemLines(errs []error) []string {
	var lines []string
	for _, err := range errs {
		lines = append(lines, strings.Split(err.Error(), "\n")...)
	}
	return lines
}

// joiner holds the devices while they are put together.
type joiner struct {
	facts   *Facts
	views   []*view
	devices []*Device // as discovered
	byID    map[string]*Device
	pci     map[string]*sysfs.PCIDevice
	chars   map[string][]sysfs.CharDevice // by RDMA device
	joined  map[string]bool               // RDMA devices by name
}

// newJoiner discovers the functions that could carry RDMA.
func newJoiner(f *Facts) *joiner {
	j := &joiner{
		facts:  f,
		views:  views(f),
		byID:   map[string]*Device{},
		pci:    map[string]*sysfs.PCIDevice{},
		chars:  map[string][]sysfs.CharDevice{},
		joined: map[string]bool{},
	}
	for _, c := range f.Chars {
		if c.IBDev != "" {
			j.chars[c.IBDev] = append(j.chars[c.IBDev], c)
		}
	}
	for i := range f.PCI {
		j.pci[f.PCI[i].Address] = &f.PCI[i]
	}
	for i := range f.PCI {
		if isNetwork(f.PCI[i].Class) {
			j.addFunction(&f.PCI[i])
		}
	}
	return j
}

// add adds a device, unless there is one of its ID, which it then returns.
func (j *joiner) add(d *Device) *Device {
	if known := j.byID[d.ID]; known != nil {
		return known
	}
	j.devices = append(j.devices, d)
	j.byID[d.ID] = d
	return d
}

// addNetdevs gives each netdev of a namespace to the function below it.
func (j *joiner) addNetdevs(v *view) {
	for _, isAbove := range []bool{false, true} { // a function's own before what sits on them
		for i := range v.netdevs {
			n := &v.netdevs[i]
			if n.isRepresentor() || isAbove != (n.parentIndex != 0) {
				continue
			}
			if d := j.netdevOwner(n); d != nil {
				d.Netdevs = append(d.Netdevs, n.Netdev)
			}
		}
	}
}

func (j *joiner) netdevOwner(n *netdev) *Device {
	if d := j.byID[n.parentDev]; d != nil {
		return d
	}
	return j.owner(n.devicePath)
}

// addRDMA gives each RDMA device of a namespace to the function below it, or
// makes a device of its own for software RDMA. One that moved while it was
// looked for is in two namespaces; the first counts. One that only netlink
// shows, and on no function, has just gone or been renamed.
// Software RDMA, which old kernels show as a child of the function that its
// netdev sits on, comes after the function's own.
func (j *joiner) addRDMA(v *view) {
	own := func(r *rdmaFacts) int {
		if r.ib != nil && r.ib.Parent != "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(v.rdma, func(a, b rdmaFacts) int { return cmp.Compare(own(&a), own(&b)) })
	for i := range v.rdma {
		r := &v.rdma[i]
		if j.joined[r.name()] {
			continue
		}
		j.joined[r.name()] = true
		d := j.rdmaOwner(v, r)
		if d == nil || d.RDMA != nil {
			if r.ib == nil {
				continue
			}
			d = j.add(&Device{ID: r.name(), Kind: Virtual})
		}
		d.RDMA = j.rdmaOf(v, d, r)
		v.addPortNetdevs(d)
	}
}

func (j *joiner) rdmaOwner(v *view, r *rdmaFacts) *Device {
	if r.ib != nil {
		return j.owner(cmp.Or(r.ib.DevicePath, r.ib.Path))
	}
	if r.nl == nil {
		return nil
	}
	for _, p := range r.nl.Ports {
		if n := v.byIndex[p.NetdevIndex]; n != nil {
			if d := j.netdevOwner(n); d != nil {
				return d
			}
		}
	}
	return nil
}

func (j *joiner) rdmaOf(v *view, d *Device, r *rdmaFacts) *RDMA {
	rdma := r.identity()
	rdma.NetNS = v.netns
	chars := j.chars[rdma.Name]
	slices.SortStableFunc(chars, func(a, b sysfs.CharDevice) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), compareNames(a.Name, b.Name))
	})
	for _, c := range chars {
		rdma.CharDevices = append(rdma.CharDevices, CharDevice{
			Name: c.Name, Port: c.Port, Major: c.Major, Minor: c.Minor, Exists: c.Exists,
		})
	}
	for _, p := range r.ports {
		rdma.Ports = append(rdma.Ports, v.portOf(d, r, p))
	}
	v.markRepresentors(rdma.Ports)
	return rdma
}

func (j *joiner) gpus() []GPU {
	var gpus []GPU
	for i := range j.facts.PCI {
		if p := &j.facts.PCI[i]; isGPU(p) {
			pci := pciOf(p)
			gpus = append(gpus, GPU{
				Address: p.Address, Vendor: pci.Vendor, Device: pci.Device,
				Driver: p.Driver, NUMANode: pci.NUMANode, Root: pci.Root,
			})
		}
	}
	slices.SortFunc(gpus, func(a, b GPU) int { return compareNames(a.Address, b.Address) })
	return gpus
}

func (j *joiner) gpuPlaces() []gpuPlace {
	var places []gpuPlace
	for _, g := range j.gpus() {
		places = append(places, gpuPlace{address: g.Address, place: placeOf(j.pci[g.Address])})
	}
	return places
}
