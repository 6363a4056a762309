package simulation

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// What a scenario does not say.
const (
	defaultKernel      = "6.12.48"
	defaultDriver      = "mlx5"
	defaultMTU         = 4200
	defaultSpeed       = 400
	defaultLanes       = 4
	defaultPeriod      = 10 * time.Second
	defaultBusy        = 0.6
	defaultMessageSize = 1 << 20
	defaultRegionSize  = 256 << 20
	defaultDown        = 2 * time.Second
	defaultUp          = 10 * time.Second
)

// Words of a scenario.
const (
	modeExclusive = "exclusive"
	modeShared    = "shared"

	linkRoCE       = "RoCE"
	linkInfiniBand = "InfiniBand"

	bindNone = "none"
	bindPID  = "pid"

	cgroupSystemd = "systemd"
	cgroupFS      = "cgroupfs"
)

// complete fills in what the scenario does not say.
func (s *Scenario) complete() {
	if s.RealNode {
		s.completeReal()
	} else {
		s.completeInvented()
	}
	for i := range s.Cards {
		s.Cards[i].complete(i)
	}
	for i := range s.Pods {
		s.Pods[i].complete()
	}
	for i := range s.Events {
		e := &s.Events[i]
		e.Down.Duration = cmp.Or(e.Down.Duration, defaultDown)
		e.Up.Duration = cmp.Or(e.Up.Duration, defaultUp)
	}
}

func (s *Scenario) completeInvented() {
	s.Kernel = cmp.Or(s.Kernel, defaultKernel)
	s.NetNSMode = cmp.Or(s.NetNSMode, modeExclusive)
	s.Cgroup.Version = cmp.Or(s.Cgroup.Version, 2)
	s.Cgroup.Driver = cmp.Or(s.Cgroup.Driver, cgroupSystemd)
	for i := range s.Cards {
		s.Cards[i].MTU = cmp.Or(s.Cards[i].MTU, defaultMTU)
	}
}

func (s *Scenario) completeReal() {
	s.NetNSMode = cmp.Or(s.NetNSMode, modeShared)
	for i := range s.Cards {
		s.Cards[i].PCI = cmp.Or(s.Cards[i].PCI, s.Cards[i].pciOfNetdev())
	}
	for i := range s.Pods {
		s.Pods[i].Use = cmp.Or(s.Pods[i].Use, modeShared)
	}
}

// pciOfNetdev returns the address that the name of the netdev has by the rules of
// systemd; empty where the name has none, or the card is no hardware.
func (c *Card) pciOfNetdev() string {
	d := drivers[cmp.Or(c.Driver, defaultDriver)]
	parts := netdevName.FindStringSubmatch(c.Netdev)
	if d == nil || d.net == "" || parts == nil {
		return ""
	}
	var numbers [3]int // bus, slot, function
	for i := range numbers {
		numbers[i], _ = strconv.Atoi(parts[i+1]) // digits, or nothing
	}
	return fmt.Sprintf("0000:%02x:%02x.%x", numbers[0], numbers[1], numbers[2])
}

func (c *Card) complete(index int) {
	c.Driver = cmp.Or(c.Driver, defaultDriver)
	c.Rail = cmp.Or(c.Rail, &index)
	c.LinkLayer = cmp.Or(c.LinkLayer, linkRoCE)
	c.Speed = cmp.Or(c.Speed, defaultSpeed)
	c.Lanes = cmp.Or(c.Lanes, defaultLanes)
	c.QPCounters = cmp.Or(c.QPCounters, bindNone)
	if d := drivers[c.Driver]; d != nil {
		c.Firmware = cmp.Or(c.Firmware, d.firmware)
	}
	if c.PFC == nil && c.LinkLayer == linkRoCE {
		c.PFC = []int{3}
	}
	c.Traffic.complete()
}

func (t *Traffic) complete() {
	if t == nil {
		return
	}
	t.Pattern = cmp.Or(t.Pattern, patternSteady)
	t.Period.Duration = cmp.Or(t.Period.Duration, defaultPeriod)
	t.Busy = cmp.Or(t.Busy, defaultBusy)
	t.MessageSize.Value = cmp.Or(t.MessageSize.Value, defaultMessageSize)
}

func (p *Pod) complete() {
	p.Use = cmp.Or(p.Use, modeExclusive)
	p.Processes = cmp.Or(p.Processes, 1)
	p.QueuePairs = cmp.Or(p.QueuePairs, 8)
	p.MemoryRegions.Count = cmp.Or(p.MemoryRegions.Count, 4)
	p.MemoryRegions.Size.Value = cmp.Or(p.MemoryRegions.Size.Value, defaultRegionSize)
	p.Traffic.complete()
}
