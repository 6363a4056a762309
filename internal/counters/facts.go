package counters

import (
	"math"
	"strconv"

	"railhead/internal/inventory"
)

// Facts appends to dst what a snapshot tells without reading anything: what
// devices and ports are, and the speed, width, MTU and GIDs of ports. Its series
// are made anew each time. No Reader returns a series of the same name and
// labels: states of ports are from the Reader, but of devices that netlink does
// not show, which have them here.
func Facts(s *inventory.Snapshot, dst []Sample) []Sample {
	f := facts{snapshot: s, samples: dst}
	f.system()
	for i := range s.Devices {
		if s.Devices[i].RDMA != nil {
			f.device(&s.Devices[i])
		}
	}
	return f.samples
}

// facts makes samples of a snapshot.
type facts struct {
	snapshot *inventory.Snapshot
	samples  []Sample
}

// add appends a sample of a family, with a value for each of its own labels;
// those that are empty are left out.
func (f *facts) add(name string, where *place, value uint64, values ...string) {
	s := &Series{Family: known.byName[name], Scale: 1}
	if where != nil {
		s.Labels = append(s.Labels, where.labels...)
	}
	for i, v := range values {
		if v != "" {
			s.Labels = append(s.Labels, Label{s.Family.Labels[i], v})
		}
	}
	f.samples = append(f.samples, Sample{Series: s, Value: value})
}

// positive adds a sample where the value is known, which zero is not.
func (f *facts) positive(name string, where *place, value uint64, values ...string) {
	if value > 0 {
		f.add(name, where, value, values...)
	}
}

func (f *facts) system() {
	if mode := f.snapshot.System.NetNSMode; mode != "" {
		f.add("rdma_system_netns_mode", nil, 1, mode)
	}
	if copied := f.snapshot.System.CopyOnFork; copied != nil {
		f.add("rdma_system_copy_on_fork", nil, bit(*copied))
	}
}

func (f *facts) device(d *inventory.Device) {
	rdma := d.RDMA
	var driver, address, numa string
	if d.PCI != nil {
		driver, address = d.PCI.Driver, d.PCI.Address
		if d.PCI.NUMANode != nil {
			numa = strconv.Itoa(*d.PCI.NUMANode)
		}
	} else {
		driver = Driver(d)
	}
	f.add("rdma_device_info", newPlace(rdma.Name, "", ""), 1,
		rdma.NodeGUID, rdma.SysImageGUID, rdma.Firmware, driver, rdma.BoardID, address, numa, nodeType(rdma.Protocol), rdma.Protocol)
	for i := range rdma.Ports {
		f.port(d, &rdma.Ports[i])
	}
}

// nodeType is the type of node that goes with a protocol, as the kernel has
// them.
func nodeType(protocol string) string {
	switch protocol {
	case "roce", "ib", "opa":
		return "ca"
	case "iw":
		return "rnic"
	}
	return ""
}

func (f *facts) port(d *inventory.Device, p *inventory.Port) {
	where := portPlace(d.RDMA.Name, p)
	parent := f.byID(d.Parent)
	rail := d.Rail
	if rail == nil && parent != nil {
		rail = parent.Rail
	}
	f.add("rdma_port_info", where, 1, p.LinkLayer, cardOf(parent), function(d, p), number(d.VF), number(rail))
	if p.Representor {
		return
	}
	f.positive("rdma_port_speed_bytes_per_second", where, bytesPerSecond(p.Gigabits))
	f.positive("rdma_vport_speed_mbps", where, uint64(math.Round(p.Gigabits*1e3)))
	f.positive("rdma_port_max_speed_bytes_per_second", where, bytesPerSecond(p.MaxGigabits))
	f.positive("rdma_port_width_lanes", where, uint64(max(p.Lanes, 0)))
	f.positive("rdma_port_mtu_bytes", where, uint64(max(p.MTU, 0)), "active")
	f.positive("rdma_port_mtu_bytes", where, uint64(max(p.MaxMTU, 0)), "max")
	f.positive("rdma_port_mtu_bytes", where, uint64(max(p.RDMAMTU, 0)), "rdma")
	if p.GIDTableLen > 0 {
		f.add("rdma_port_gids", where, uint64(len(p.GIDs)))
	}
	if d.RDMA.Index == nil {
		var r Reader
		f.samples = r.states(f.samples, where, p.State, p.PhysState)
	}
}

func (f *facts) byID(id string) *inventory.Device {
	for i := range f.snapshot.Devices {
		if id != "" && f.snapshot.Devices[i].ID == id {
			return &f.snapshot.Devices[i]
		}
	}
	return nil
}

// function is what a port is of: rep for a port that stands for another
// function.
func function(d *inventory.Device, p *inventory.Port) string {
	if p.Representor {
		return "rep"
	}
	switch d.Kind {
	case inventory.PF:
		return "pf"
	case inventory.VF:
		return "vf"
	case inventory.SF:
		return "sf"
	}
	return string(d.Kind)
}

func number(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func bytesPerSecond(gigabits float64) uint64 { return uint64(math.Round(gigabits * 1e9 / 8)) }

// cardOf is the RDMA device of the port of the card that a function shares, as
// far as the snapshot knows.
func cardOf(parent *inventory.Device) string {
	if parent == nil {
		return ""
	}
	if parent.RDMA != nil {
		return parent.RDMA.Name
	}
	return parent.CarriedBy
}
