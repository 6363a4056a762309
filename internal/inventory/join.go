package inventory

import (
	"cmp"
	"path"
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

// addFunction adds a PCI function and its subfunctions.
func (j *joiner) addFunction(p *sysfs.PCIDevice) {
	d := j.add(&Device{ID: p.Address, Kind: PF, PCI: pciOf(p)})
	if p.PhysFn != "" {
		d.Kind = VF
		j.setPF(d, j.pci[p.PhysFn])
	}
	if p.PhysFn == "" && slices.Contains(virtualFunctions[d.PCI.Vendor], d.PCI.Device) {
		d.Kind = VF
	}
	if p.SRIOV != nil {
		d.SRIOV = &SRIOV{TotalVFs: p.SRIOV.TotalVFs, NumVFs: p.SRIOV.NumVFs, AutoprobeVFs: p.SRIOV.DriversAutoprobe}
	}
	for _, aux := range p.Auxiliary {
		j.add(&Device{ID: aux.Name, Kind: SF, Parent: p.Address, SF: &aux.SFNum, PCI: pciOf(p)})
	}
}

// setPF ties a VF to its PF, unless that just went away.
func (j *joiner) setPF(vf *Device, pf *sysfs.PCIDevice) {
	if pf == nil || !isNetwork(pf.Class) {
		return
	}
	vf.Parent = pf.Address
	if pf.SRIOV == nil {
		return
	}
	if n := slices.Index(pf.SRIOV.VFs, vf.ID); n >= 0 {
		vf.VF = &n
	}
}

// owner finds the function that a sysfs device path belongs to: the function
// itself or the nearest one above it.
func (j *joiner) owner(devicePath string) *Device {
	for p := devicePath; p != "" && p != "." && p != "/"; p = path.Dir(p) {
		if d := j.byID[path.Base(p)]; d != nil {
			return d
		}
	}
	return nil
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

// addBonds marks the members of bonds. What a bond could do is what its members
// could: as a netdev it has no bounds of its own.
func (j *joiner) addBonds(v *view) {
	bonds := map[string]*Bond{}
	for _, n := range v.netdevs {
		if n.bondMode != "" {
			bonds[n.Name] = &Bond{Name: n.Name, Mode: n.bondMode, Members: []string{}}
		}
	}
	limits := map[string]*Port{}
	for _, n := range v.netdevs {
		if b := bonds[n.Master]; b != nil {
			b.Members = append(b.Members, n.Name)
			limits[b.Name] = limitsWith(limits[b.Name], n)
		}
	}
	for _, d := range j.devices {
		for _, n := range d.Netdevs {
			if b := bonds[n.Master]; b != nil && n.NetNS == nil {
				d.Bond = b
			}
		}
		if d.RDMA != nil && d.RDMA.NetNS == nil {
			d.RDMA.setLimits(limits)
		}
	}
	for _, b := range bonds {
		slices.Sort(b.Members)
	}
}

// setLimits gives ports that are bonds what these could do.
func (r *RDMA) setLimits(bonds map[string]*Port) {
	for i := range r.Ports {
		if l := bonds[r.Ports[i].Netdev]; l != nil {
			r.Ports[i].MaxMTU, r.Ports[i].MaxGigabits = l.MaxMTU, l.MaxGigabits
		}
	}
}

// limitsWith adds a member to what a bond could do: the speed of all, the MTU
// of the least.
func limitsWith(l *Port, member netdev) *Port {
	if l == nil {
		l = &Port{MaxMTU: member.MaxMTU}
	}
	l.MaxMTU = min(l.MaxMTU, member.MaxMTU)
	l.MaxGigabits += gigabitsOf(member.maxMegabits)
	return l
}

// addCarriers marks functions without an RDMA device whose netdev, or the bond
// above it, is a port of another function's.
func (j *joiner) addCarriers() {
	carriers := map[string]string{} // netdev → RDMA device
	for _, d := range j.devices {
		if d.RDMA == nil || d.RDMA.NetNS != nil {
			continue
		}
		for _, p := range d.RDMA.Ports {
			if p.Netdev != "" && !p.Representor {
				carriers[p.Netdev] = d.RDMA.Name
			}
		}
	}
	for _, d := range j.devices {
		if d.RDMA != nil {
			continue
		}
		for _, n := range d.Netdevs {
			if n.NetNS == nil {
				d.CarriedBy = cmp.Or(d.CarriedBy, carriers[n.Name], carriers[n.Master])
			}
		}
	}
}

// relevant returns, in order, the devices that carry RDMA or could, with the
// PFs of their VFs and SFs.
func (j *joiner) relevant() []Device {
	keep := map[string]bool{}
	for _, d := range j.devices {
		if d.RDMA == nil && !j.couldCarryRDMA(d) {
			continue
		}
		for ; d != nil && !keep[d.ID]; d = j.byID[d.Parent] {
			keep[d.ID] = true
		}
	}
	gpus := j.gpuPlaces()
	devices := []Device{}
	for _, d := range j.devices {
		if !keep[d.ID] && !keep[d.Parent] {
			continue
		}
		if d.PCI != nil && len(gpus) > 0 {
			d.GPUs = affinities(placeOf(j.pci[d.PCI.Address]), gpus)
		}
		devices = append(devices, *d)
	}
	slices.SortStableFunc(devices, compareDevices)
	return devices
}

func (j *joiner) couldCarryRDMA(d *Device) bool {
	if d.PCI == nil {
		return false
	}
	if d.PCI.Driver != "" {
		_, ok := DriverOf(d.PCI.Driver)
		return ok
	}
	return CardDriver(d.PCI.Vendor, d.PCI.Device) != ""
}

// CardDriver returns the driver that binds a card known to carry RDMA, or "".
func CardDriver(vendor, device string) string {
	for _, c := range cards {
		if vendor == c.vendor && device >= c.first && device <= c.last {
			return c.net
		}
	}
	return ""
}

// DriverOf returns the RDMA driver that goes with the driver of a PCI function.
func DriverOf(net string) (Driver, bool) {
	i := slices.IndexFunc(drivers, func(d Driver) bool { return d.Net == net })
	if i < 0 {
		return Driver{}, false
	}
	return drivers[i], true
}

// compareDevices orders PFs as the PCI bus does, each followed by its SFs and
// VFs, and software RDMA at the end.
func compareDevices(a, b Device) int {
	family := func(d Device) string { return cmp.Or(d.Parent, d.ID) }
	hardware := func(d Device) int {
		if d.PCI == nil {
			return 1
		}
		return 0
	}
	order := map[Kind]int{PF: 0, SF: 1, VF: 2, Virtual: 3}
	number := func(d Device) int {
		switch {
		case d.VF != nil:
			return *d.VF
		case d.SF != nil:
			return *d.SF
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(hardware(a), hardware(b)),
		compareNames(family(a), family(b)),
		cmp.Compare(order[a.Kind], order[b.Kind]),
		cmp.Compare(number(a), number(b)),
		compareNames(a.ID, b.ID),
	)
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
