package inventory

import (
	"cmp"
	"path"
	"slices"

	"railhead/internal/kernel/sysfs"
)

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
