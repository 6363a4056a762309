package fakekernel

import (
	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
)

// Facts is what a Kernel knows, in the words of the clients that ask: the
// network namespace they ask in, as they see it. What is nil or missing is
// refused as a kernel or driver refuses what it does not have.
//
// What changes all the time is a function, which is called for each request
// about it, without any lock and from many goroutines at a time. A function
// that takes dst sets all of its elements and does not keep it.
type Facts struct {
	System    *rdmanl.System     // nil for a kernel without RDMA
	RDMA      []rdmanl.Device    // with their ports
	HCAs      map[uint32]*HCA    // more of RDMA devices, by index
	RDMACM    *rdmanl.CharDevice // the "rdma_cm" of the subsystem
	Links     []rtnl.Link
	NICs      map[int]*NIC // more of links, by index
	Addresses []rtnl.Address
	Settings  map[int]ethtool.LinkSettings // by link index; a link without has none
	Devlink   []Reporter                   // nil for a kernel without devlink
}

// HCA is who uses an RDMA device and what it counts.
type HCA struct {
	Ports    map[int]*HCAPort   // by number; a port without has no hardware counters
	Uverbs   *rdmanl.CharDevice // nil in a kernel without ib_uverbs
	Contexts []rdmanl.Context
	PDs      []rdmanl.PD
	CQs      []rdmanl.CQ
	QPs      []rdmanl.QP //nolint:revive // queue pairs, not queries per second
	CMIDs    []rdmanl.CMID
	MRs      []rdmanl.MR
	SRQs     []rdmanl.SRQ
}

// HCAPort is what a port of an RDMA device counts.
type HCAPort struct {
	Umad, Issm *rdmanl.CharDevice

	Counters []rdmanl.CounterStatus // all that there are, in the driver's order, which gives their Index
	Values   func(dst []uint64)     // their values, also of those that are off; nil for zeros

	Mode       rdmanl.CounterMode                       // no Mode is "none"
	QPCounters []rdmanl.QPCounter                       // sets of counters, without what they count
	QPNames    []string                                 // what each of them counts
	QPValues   func(set rdmanl.QPCounter, dst []uint64) // their values; nil for zeros
}

// NIC is what a netdev and its driver count.
type NIC struct {
	Driver     *ethtool.DriverInfo
	StatNames  []string           // the driver's statistics
	Stats      func(dst []uint64) // their values; nil for zeros
	Pause      *ethtool.Pause
	PauseStats func() ethtool.PauseStats
	FEC        *ethtool.FEC
	FECStats   func() ethtool.FECStats
	PFC        func() rtnl.PFC

	Standard       []ethtool.StandardStat // the standard statistics, those of a group side by side
	StandardValues func(dst []uint64)     // their values; nil where Standard says them

	VFs     []rtnl.VF                     // of a PF
	VFStats func(number int) rtnl.VFStats // of a VF; nil where VFs says it
}

// Reporter is a health reporter of devlink.
type Reporter struct {
	devlink.Reporter
	Health func() devlink.Health // what it has seen; nil for one that is healthy
	Names  []string              // what its diagnosis counts; nil for one without
	Values func(dst []uint64)    // their values; nil for zeros
}
