package simulation

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Kinds of events.
const (
	doDown    = "down"
	doFlap    = "flap"
	doDegrade = "degrade"
	doStall   = "stall"
	doRefuse  = "refuse"
	doBlock   = "block"
	doFull    = "full"
)

// congestion checks that the driver of each card counts what congestion makes.
func (c *checker) congestion(path string, g *Congested) {
	c.when(path, g.When)
	c.on(path+".devices", g.Devices)
	c.share(path+".receive", g.Receive, 1)
	c.share(path+".transmit", g.Transmit, 1)
	if g.Priority != nil {
		c.within(path+".priority", *g.Priority, 0, priorities-1)
	}
	for _, name := range g.Devices {
		card := c.functions[name]
		if card == nil || drivers[card.Driver] == nil {
			continue
		}
		if strings.Contains(name, "/") {
			c.fail(path+".devices", name, "a card, as a VF does not see the port")
		}
		counted := drivers[card.Driver].congestion
		for _, field := range []struct {
			name    string
			value   float64
			counter string
		}{
			{"receive", g.Receive, counted.rxFrames},
			{"transmit", g.Transmit, counted.txFrames},
			{"marked", g.Marked.Value, counted.marked},
			{"notified", g.Notified.Value, counted.handled},
			{"discards", g.Discards.Value, strings.Join(counted.discards, "")},
		} {
			if field.value > 0 && field.counter == "" {
				c.fail(path+"."+field.name, field.value, "0, as %s of %s does not count it", card.Driver, name)
			}
		}
	}
}

// on checks that an entry is about something that there is.
func (c *checker) on(path string, names []string) {
	if len(names) == 0 {
		c.fail(path, "", "one of %s", some(slices.Sorted(maps.Keys(c.functions))))
	}
	c.known(path, names)
}

func (c *checker) growth(path string, g *Growth) {
	c.when(path, g.When)
	c.on(path+".devices", g.Devices)
	const mostRate = 1e12
	if !(g.Rate >= 0 && g.Rate <= mostRate) || math.IsNaN(g.Rate) {
		c.fail(path+".rate", g.Rate, "a number from 0 to 1e12")
	}
	for _, name := range g.Devices {
		c.counter(path+".counter", name, g.Counter)
	}
}

// counter checks that a function has a counter.
func (c *checker) counter(path, function, counter string) {
	card := c.functions[function]
	if card == nil || drivers[card.Driver] == nil {
		return
	}
	rows := drivers[card.Driver].rows(card, strings.Contains(function, "/"))
	if slices.ContainsFunc(rows, func(r row) bool { return r.name == counter }) {
		return
	}
	names := make([]string, 0, len(rows))
	for _, r := range rows {
		names = append(names, r.name)
	}
	slices.Sort(names)
	c.fail(path, counter, "a counter of %s, which are %s", function, strings.Join(slices.Compact(names), ", "))
}

func (c *checker) event(path string, e *Event) {
	c.when(path, e.When)
	c.on(path+".devices", e.Devices)
	c.oneOf(path+".do", e.Do, doDown, doFlap, doDegrade, doStall, doRefuse, doBlock, doFull)
	switch e.Do {
	case doDown, doFlap, doDegrade, doStall:
		for _, name := range e.Devices {
			if strings.Contains(name, "/") {
				c.fail(path+".devices", name, "a card, as it is the port to which this happens")
			}
		}
		c.portEvent(path, e)
	case doRefuse:
		if errnos[e.Errno] == 0 {
			c.fail(path+".errno", e.Errno, "one of %s", strings.Join(slices.Sorted(maps.Keys(errnos)), ", "))
		}
		c.oneOf(path+".request", e.Request, slices.Sorted(maps.Keys(requests))...)
	case doBlock:
		if e.Delay.Duration <= 0 {
			c.fail(path+".delay", e.Delay.Duration, "more than 0s")
		}
		c.oneOf(path+".request", e.Request, slices.Sorted(maps.Keys(requests))...)
	case doFull:
		for _, name := range e.Devices {
			c.counter(path+".counter", name, e.Counter)
		}
	}
}

// faults checks that requests of one kind are refused with one error and delayed
// by one time, which is all that a simulated kernel can do.
func (c *checker) faults() {
	first := map[string]int{}
	for i := range c.scenario.Events {
		e := &c.scenario.Events[i]
		if e.Do != doRefuse && e.Do != doBlock {
			continue
		}
		key := e.Do + " " + e.Request
		j, ok := first[key]
		if !ok {
			first[key] = i
			continue
		}
		if other := &c.scenario.Events[j]; other.Errno != e.Errno {
			c.fail(fmt.Sprintf("events[%d].errno", i), e.Errno, "%s as in events[%d], which is about the same request", other.Errno, j)
		} else if other.Delay.Duration != e.Delay.Duration {
			c.fail(fmt.Sprintf("events[%d].delay", i), e.Delay.Duration, "%v as in events[%d], which is about the same request", other.Delay.Duration, j)
		}
	}
}

func (c *checker) portEvent(path string, e *Event) {
	c.share(path+".share", e.Share, 1)
	switch {
	case e.Do == doFlap && e.For.Duration == 0:
		c.fail(path+".for", e.For.Duration, "more than 0s")
	case e.Do == doDegrade:
		if e.Speed != 0 && !slices.Contains(speeds, e.Speed) {
			c.fail(path+".speed", e.Speed, "one of %v", speeds)
		}
		c.within(path+".lanes", e.Lanes, 0, 16)
	}
}
