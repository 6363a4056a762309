package simulation

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
)

// Capabilities of ports that the kernel tells, enum ib_port_cap_flags.
const (
	capIP     = 1 << 26
	capVendor = 1 << 16
)

// device is the RDMA device as netlink describes it.
func (f *function) device() rdmanl.Device {
	d := rdmanl.Device{
		Index: f.index, Name: f.rdma, NodeType: strings.ToLower(after(f.card.driver.nodeType)),
		NodeGUID: f.nodeGUID(), SysImageGUID: f.imageGUID(), Firmware: f.card.spec.Firmware, PortCount: 1,
	}
	port := rdmanl.Port{DeviceIndex: f.index, DeviceName: f.rdma, Number: 1, State: "ACTIVE", PhysState: "LINK_UP"}
	switch {
	case f.isInfiniBand():
		d.Protocol = "ib"
		port.SubnetPrefix, port.LID, port.SMLID, port.CapFlags = "fe80:0000:0000:0000", f.lid(), 1, capVendor
	case f.netdev != "":
		d.Protocol, port.CapFlags = "roce", capIP
		if f.isTied() {
			port.NetdevIndex, port.NetdevName = f.link, f.name
		}
	}
	if f.card.state.isDown {
		port.State, port.PhysState = "DOWN", "DISABLED"
		if f.isInfiniBand() {
			port.PhysState = "POLLING"
		}
	}
	d.Ports = []rdmanl.Port{port}
	return d
}

func after(numbered string) string {
	_, name, _ := strings.Cut(numbered, ": ")
	return name
}

// hca is what netlink tells of the RDMA device beside that.
func (m *machine) hca(f *function) *fakekernel.HCA {
	uverbs, umad := m.charDevices(f)
	port := &fakekernel.HCAPort{Umad: umad, Values: m.reader(f, f.hardware)}
	for i, c := range f.hardware {
		port.Counters = append(port.Counters, rdmanl.CounterStatus{
			Index: uint32(i), Name: c.name, Optional: c.isOptional(), Enabled: !c.isOff,
		})
	}
	return &fakekernel.HCA{Ports: map[int]*fakekernel.HCAPort{1: port}, Uverbs: uverbs}
}

// isOptional tells whether a counter can be switched on and off.
func (r *row) isOptional() bool { return r.isOff }

// reader computes counters at the present moment.
func (m *machine) reader(f *function, counters []counter) func(dst []uint64) {
	return func(dst []uint64) { f.card.values(f, counters, m.moment(), dst) }
}

// netlink is the netdev as rtnetlink describes it.
func (f *function) netlink() rtnl.Link {
	if f.real != nil {
		return f.real.netlink(f)
	}
	l := rtnl.Link{
		Index: f.link, Name: f.name, Type: unix.ARPHRD_ETHER, Address: f.mac, PermAddress: f.mac, Up: true, Running: true, OperState: "up",
		MTU: f.mtu(), MinMTU: 68, MaxMTU: 9978, TxQueueLen: 1000,
	}
	switch {
	case f.pci == "":
		l.Kind = "dummy"
	case f.isInfiniBand():
		l.Type, l.Address, l.PermAddress, l.ParentBus, l.ParentDev = unix.ARPHRD_INFINIBAND, f.hardwareAddress(), "", "pci", f.pci
	default:
		l.ParentBus, l.ParentDev = "pci", f.pci
		if f.vf < 0 {
			l.PhysPortName = "p0"
		}
	}
	if f.card.state.isDown {
		l.Running, l.OperState = false, "down"
	}
	return l
}

// addresses are those of the netdev.
func (f *function) addresses() []rtnl.Address {
	if f.real != nil {
		return f.real.addresses
	}
	addresses := []rtnl.Address{{LinkIndex: f.link, Prefix: f.linkLocal(), Scope: "link"}}
	if f.address.IsValid() {
		addresses = append(addresses, rtnl.Address{LinkIndex: f.link, Prefix: f.address, Label: f.name, Scope: "global"})
	}
	return addresses
}

// settings is what the link runs at.
func (f *function) settings() ethtool.LinkSettings {
	state := f.card.state
	s := ethtool.LinkSettings{
		MaxSpeedMegabits: f.card.spec.Speed * 1000, Duplex: "full", Autoneg: true, Port: "direct-attach", LinkDetected: new(!state.isDown),
	}
	if !state.isDown {
		s.SpeedMegabits, s.Lanes = state.speed*1000, state.lanes
	}
	return s
}

// nic is what the netdev and its driver count.
func (m *machine) nic(f *function) *fakekernel.NIC {
	d := f.card.driver
	n := &fakekernel.NIC{
		Driver: &ethtool.DriverInfo{Driver: d.net, Version: m.release, Firmware: f.card.spec.Firmware, BusInfo: f.pci},
	}
	if f.pci == "" {
		n.Driver = &ethtool.DriverInfo{Driver: f.netlink().Kind, Version: m.release}
		return n
	}
	for _, c := range f.statistics {
		n.StatNames = append(n.StatNames, c.name)
	}
	if n.StatNames != nil {
		n.Stats = m.reader(f, f.statistics)
	}
	if f.vf >= 0 || f.isInfiniBand() {
		return n
	}
	n.Pause = &ethtool.Pause{}
	n.FEC = &ethtool.FEC{Active: "rs", Modes: []string{"rs"}}
	n.PauseStats = func() ethtool.PauseStats {
		return ethtool.PauseStats{RxFrames: new(uint64(0)), TxFrames: new(uint64(0))}
	}
	n.FECStats = func() ethtool.FECStats { return m.fecStats(f) }
	n.PFC = func() rtnl.PFC { return m.pfc(f) }
	m.addVFs(n, f)
	return n
}

// fecStats tells of corrected bits what the driver's statistics do, of blocks
// that each has a few.
func (m *machine) fecStats(f *function) ethtool.FECStats {
	corrected := m.named(f, "rx_corrected_bits_phy", "rx_corrected_bits")
	uncorrectable := m.named(f, "rx_pcs_symbol_err_phy", "rx_pcs_symbol_err")
	const bitsOfBlock = 2
	blocks := corrected / bitsOfBlock
	return ethtool.FECStats{CorrectedBlocks: &blocks, UncorrectableBlocks: &uncorrectable, CorrectedBits: &corrected}
}

// named returns the statistic that has the first of some names.
func (m *machine) named(f *function, names ...string) uint64 {
	for _, name := range names {
		i := slices.IndexFunc(f.statistics, func(c counter) bool { return c.name == name })
		if i < 0 {
			continue
		}
		var value [1]uint64
		f.card.values(f, f.statistics[i:i+1], m.moment(), value[:])
		return value[0]
	}
	return 0
}

// pfc is the priority flow control of a port.
func (m *machine) pfc(f *function) rtnl.PFC {
	pfc := rtnl.PFC{}
	names := f.card.driver.congestion
	for p := range priorities {
		if slices.Contains(f.card.spec.PFC, p) {
			pfc.Enabled |= 1 << p
		}
		if names.rxFrames != "" {
			pfc.Indications[p] = m.named(f, fmt.Sprintf(names.rxFrames, p))
			pfc.Requests[p] = m.named(f, fmt.Sprintf(names.txFrames, p))
		}
	}
	return pfc
}

// addVFs adds what a PF tells of its VFs.
func (m *machine) addVFs(n *fakekernel.NIC, pf *function) {
	for _, f := range pf.card.functions[1:] {
		n.VFs = append(n.VFs, rtnl.VF{
			Number: f.vf, Address: f.mac, SpoofCheck: new(true), Trust: new(false), LinkState: "auto",
			NodeGUID: guidText(f.guid), PortGUID: guidText(f.guid),
		})
	}
	if n.VFs == nil {
		return
	}
	n.VFStats = func(number int) rtnl.VFStats {
		if number < 0 || number >= pf.card.spec.VFs {
			return rtnl.VFStats{}
		}
		l := pf.card.through(pf.card.functions[number+1], m.moment())
		return rtnl.VFStats{RxPackets: l.rxPackets, TxPackets: l.txPackets, RxBytes: l.rxBytes, TxBytes: l.txBytes}
	}
}
