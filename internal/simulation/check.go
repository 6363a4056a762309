package simulation

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// checker collects what is wrong with a scenario.
type checker struct {
	scenario  *Scenario
	functions map[string]*Card // by the name that pods and events use
	errs      []error
}

// fail notes a field that is wrong: its path, its value, and what is wanted.
func (c *checker) fail(path string, value any, want string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %.80q, want %s", path, fmt.Sprint(value), fmt.Sprintf(want, args...)))
}

func (c *checker) within(path string, value, low, high int) {
	if value < low || value > high {
		c.fail(path, value, "a number from %d to %d", low, high)
	}
}

func (c *checker) share(path string, value, most float64) {
	if !(value >= 0 && value <= most) {
		c.fail(path, value, "a number from 0 to %v", most)
	}
}

func (c *checker) oneOf(path, value string, words ...string) {
	if !slices.Contains(words, value) {
		c.fail(path, value, "one of %s", strings.Join(words, ", "))
	}
}

func (c *checker) matches(path, value string, form *regexp.Regexp, want string) bool {
	if form.MatchString(value) {
		return true
	}
	c.fail(path, value, "%s", want)
	return false
}

// check returns all that is wrong with a complete scenario.
func (s *Scenario) check() error {
	c := &checker{scenario: s, functions: map[string]*Card{}}
	if s.RealNode {
		c.realNode()
	} else {
		c.inventedNode()
	}
	c.cards()
	c.pods()
	for i, g := range s.Congestion {
		c.congestion(fmt.Sprintf("congestion[%d]", i), &g)
	}
	for i, g := range s.Counters {
		c.growth(fmt.Sprintf("counters[%d]", i), &g)
	}
	for i, e := range s.Events {
		c.event(fmt.Sprintf("events[%d]", i), &e)
	}
	c.faults()
	for i, name := range slices.Concat(s.Kubernetes.Forbidden, s.Kubernetes.Absent) {
		c.matches(fmt.Sprintf("kubernetes: resource %d", i), name, resourceName, "a resource such as jobs.batch or pytorchjobs.kubeflow.org")
	}
	return errors.Join(c.errs...)
}

// inventedNode checks what is said of a node that the scenario invents.
func (c *checker) inventedNode() {
	s := c.scenario
	c.matches("node", s.Node, dnsName, wantDNS)
	c.matches("kernel", s.Kernel, kernelRelease, "a release such as "+defaultKernel)
	c.oneOf("netnsMode", s.NetNSMode, modeExclusive, modeShared)
	c.within("cgroup.version", s.Cgroup.Version, 1, 2)
	c.oneOf("cgroup.driver", s.Cgroup.Driver, cgroupSystemd, cgroupFS)
}

// longest bounds times, so that none overflows when they are added.
const longest = 10 * 365 * 24 * time.Hour

func (c *checker) when(path string, w When) {
	if d := max(w.From.Duration, w.For.Duration, w.Every.Duration); d > longest {
		c.fail(path, d, "times of at most %v", longest)
	}
	if w.Every.Duration > 0 && (w.For.Duration == 0 || w.For.Duration > w.Every.Duration) {
		c.fail(path+".for", w.For.Duration, "more than 0s and at most every, %v", w.Every.Duration)
	}
}

// most cards and VFs that a node can have.
const (
	mostCards = 64
	mostVFs   = 63
)

func (c *checker) cards() {
	if n := len(c.scenario.Cards); n == 0 || n > mostCards {
		c.fail("cards", n, "1 to %d", mostCards)
	}
	unique := map[string]string{}
	for i := range c.scenario.Cards {
		card, path := &c.scenario.Cards[i], fmt.Sprintf("cards[%d]", i)
		c.card(path, card)
		for _, field := range []struct{ name, value string }{
			{"name", card.Name}, {"pci", card.PCI}, {"netdev", card.Netdev}, {"address", card.Address},
		} {
			if other, ok := unique[field.name+field.value]; ok && field.value != "" {
				c.fail(path+"."+field.name, field.value, "another than that of %s", other)
			}
			unique[field.name+field.value] = path
		}
		c.functions[card.Name] = card
		for vf := range min(card.VFs, mostVFs) {
			c.functions[vfName(card.Name, vf)] = card
		}
	}
}

// vfName is what a scenario calls a VF.
func vfName(card string, vf int) string { return fmt.Sprintf("%s/%d", card, vf) }

func (c *checker) card(path string, card *Card) {
	c.matches(path+".name", card.Name, deviceName, wantDevice)
	if card.Netdev != "" {
		c.matches(path+".netdev", card.Netdev, deviceName, wantDevice)
	}
	c.oneOf(path+".driver", card.Driver, slices.Sorted(maps.Keys(drivers))...)
	c.oneOf(path+".linkLayer", card.LinkLayer, linkRoCE, linkInfiniBand)
	c.within(path+".rail", *card.Rail, 0, mostCards-1)
	c.within(path+".numa", card.NUMA, 0, 63)
	c.within(path+".lanes", card.Lanes, 1, 16)
	if !slices.Contains(speeds, card.Speed) {
		c.fail(path+".speed", card.Speed, "one of %v", speeds)
	}
	c.oneOf(path+".qpCounters", card.QPCounters, bindNone, bindPID)
	c.priorities(path, card)
	if c.scenario.RealNode {
		c.realCard(path, card)
	} else {
		c.inventedCard(path, card)
	}
	c.traffic(path+".traffic", card.Traffic)
	if d := drivers[card.Driver]; d != nil {
		c.driver(path, card, d)
	}
}

// inventedCard checks what a card has beside RDMA.
func (c *checker) inventedCard(path string, card *Card) {
	c.within(path+".mtu", card.MTU, 576, 9978)
	c.within(path+".vfs", card.VFs, 0, mostVFs)
	if card.Address == "" {
		return
	}
	if p, err := netip.ParsePrefix(card.Address); err != nil || !p.Addr().Is4() {
		c.fail(path+".address", card.Address, "an IPv4 address with its length, such as 172.16.0.5/24")
	}
}

func (c *checker) priorities(path string, card *Card) {
	for i, p := range card.PFC {
		c.within(fmt.Sprintf("%s.pfc[%d]", path, i), p, 0, priorities-1)
	}
	if card.Priority != nil {
		c.within(path+".priority", *card.Priority, 0, priorities-1)
	}
}

// driver checks what depends on the driver.
func (c *checker) driver(path string, card *Card, d *driver) {
	if card.LinkLayer == linkInfiniBand && !d.infiniBand {
		c.fail(path+".linkLayer", card.LinkLayer, "%s, which is all that %s has", linkRoCE, card.Driver)
	}
	if card.QPCounters == bindPID && !d.binds {
		c.fail(path+".qpCounters", card.QPCounters, "%s, as %s has no others", bindNone, card.Driver)
	}
	if card.VFs > 0 && d.vf == "" {
		c.fail(path+".vfs", card.VFs, "0, as %s has none here", card.Driver)
	}
	if d.net == "" {
		if card.PCI != "" {
			c.fail(path+".pci", card.PCI, "none, as %s is no hardware", card.Driver)
		}
		return
	}
	if !c.matches(path+".pci", card.PCI, pciAddress, "an address such as 0000:18:00.0, with a bus from 04") {
		return
	}
	if card.VFs > 0 && !strings.HasSuffix(card.PCI, ":00.0") && !strings.HasSuffix(card.PCI, ":00.1") {
		c.fail(path+".pci", card.PCI, "one that ends in :00.0 or :00.1, as it has VFs")
	}
}

func (c *checker) traffic(path string, t *Traffic) {
	if t == nil {
		return
	}
	const least, mostRate = 64, 1e12
	c.oneOf(path+".pattern", t.Pattern, patternSteady, patternTraining, patternWave)
	if t.Period.Duration < 10*time.Millisecond || t.Period.Duration > longest {
		c.fail(path+".period", t.Period.Duration, "10ms to %v", longest)
	}
	if !(t.Busy > 0 && t.Busy <= 1) {
		c.fail(path+".busy", t.Busy, "more than 0 and at most 1")
	}
	c.share(path+".jitter", t.Jitter, 0.9)
	if t.MessageSize.Value < least {
		c.fail(path+".messageSize", t.MessageSize.Value, "at least %d", least)
	}
	if rate := max(t.Receive.Value, t.Transmit.Value); rate > mostRate {
		c.fail(path, rate, "at most 1T bytes a second")
	}
}
