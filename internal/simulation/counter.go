package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// counter is a counter of a function, with all that makes it grow.
type counter struct {
	row

	growths []*growth
}

// value returns what a counter shows at a moment.
func (c *counter) value(v *volumes, t time.Duration) uint64 {
	var sum uint64
	if c.row.value != nil {
		sum = c.row.value(v)
	}
	for _, g := range c.growths {
		added, isFull := g.value(t)
		if isFull {
			return c.limit(^uint64(0))
		}
		sum += added
	}
	return c.limit(sum)
}

// growing collects what makes counters grow beside their volume, by function
// and counter.
type growing map[string]map[string][]*growth

func (g growing) add(function, name string, by growth) {
	if g[function] == nil {
		g[function] = map[string][]*growth{}
	}
	g[function][name] = append(g[function][name], &by)
}

// counters returns counters of a function.
func (g growing) counters(f *function, rows []row) []counter {
	counters := make([]counter, 0, len(rows))
	for _, r := range rowsOf(rows, f.vf >= 0) {
		growths := g[f.id][r.name]
		if r.pauseOf == nil || growths != nil || slices.Contains(f.card.spec.PFC, *r.pauseOf) {
			counters = append(counters, counter{row: r, growths: growths})
		}
	}
	return counters
}

// newGrowing returns all that a scenario says of counters.
func newGrowing(s *Scenario, cards []*card, crowds []crowd) growing {
	g := growing{}
	for i := range s.Counters {
		g.grow(s, i)
	}
	for _, e := range s.Events {
		for _, name := range e.Devices {
			if e.Do == doFull {
				g.add(name, e.Counter, growth{full: new(e.schedule())})
			}
		}
	}
	for _, c := range cards {
		g.addCard(s, c)
	}
	for i := range s.Pods {
		if s.RealNode {
			g.addCrowd(&s.Pods[i], &crowds[i], cards)
		} else {
			g.addPod(&s.Pods[i])
		}
	}
	return g
}

// addPod has counters of a pod's devices show what the pod opens on them: levels
// of bnxt_re, and messages of the connection manager.
func (g growing) addPod(p *Pod) {
	processes := uint64(p.Processes)
	for _, device := range p.Devices {
		for name, level := range p.levels() {
			g.add(device, name, growth{level: processes * level, flow: flow{times: p.schedule()}})
		}
		for _, name := range connecting() {
			g.add(device, name, growth{count: p.schedule(), each: processes * uint64(p.Connections)})
		}
	}
}

// addCrowd does the same for the processes of pods of a real node.
func (g growing) addCrowd(p *Pod, processes *crowd, cards []*card) {
	for _, c := range cards {
		if !p.uses(c.functions[0]) {
			continue
		}
		for name, level := range p.levels() {
			g.add(c.spec.Name, name, growth{crowd: processes, level: level})
		}
		for _, name := range connecting() {
			g.add(c.spec.Name, name, growth{crowd: processes, each: uint64(p.Connections)})
		}
	}
}

// levels are what a process of the pod opens on a device.
func (p *Pod) levels() map[string]uint64 {
	return map[string]uint64{
		"active_qps": uint64(p.QueuePairs), "active_rc_qps": uint64(p.QueuePairs),
		"active_mrs": uint64(p.MemoryRegions.Count), "active_pds": 1, "active_cqs": 1,
	}
}

// connecting are the messages that make a connection.
func connecting() []string { return []string{"cm_tx_msgs/req", "cm_rx_msgs/rep", "cm_tx_msgs/rtu"} }

// grow has a counter grow as an entry of the scenario says.
func (g growing) grow(s *Scenario, number int) {
	entry := &s.Counters[number]
	shape := steady()
	shape.jitter, shape.seed = 0.3, mix(s.Seed, uint64(number))
	for _, name := range entry.Devices {
		g.add(name, entry.Counter, growth{
			start: entry.Start.Value, rate: entry.Rate, flow: flow{shape: shape, times: entry.schedule()},
		})
	}
}

// addCard has counters of a card grow as congestion and events make them.
func (g growing) addCard(s *Scenario, c *card) {
	for _, entry := range s.Congestion {
		if slices.Contains(entry.Devices, c.spec.Name) {
			g.congest(c, &entry)
		}
	}
	for _, e := range s.Events {
		if slices.Contains(e.Devices, c.spec.Name) {
			g.happen(c, &e)
		}
	}
	for _, w := range c.down {
		g.lose(c, growth{count: w, each: 1})
	}
	if s.RealNode {
		g.lose(c, growth{crowd: &c.cuts, each: 1})
	}
}

// Of the time that a port is paused, this many pause frames tell a second, and
// so often it begins and ends.
const (
	framesPaused      = 20000
	transitionsPaused = 400
	marksPerNotice    = 8 // packets that come marked for each notification that goes
)

// congest has counters grow as congestion makes them.
func (g growing) congest(c *card, e *Congested) {
	names := c.driver.congestion
	priority := c.priority
	if e.Priority != nil {
		priority = *e.Priority
	}
	grow := func(name string, rate float64) {
		if strings.Contains(name, "%d") {
			name = fmt.Sprintf(name, priority)
		}
		if name != "" && rate > 0 {
			g.add(c.spec.Name, name, growth{rate: rate, flow: flow{shape: steady(), times: e.schedule()}})
		}
	}
	const microseconds = 1e6
	grow(names.rxDuration, e.Receive*microseconds)
	grow(names.rxFrames, e.Receive*framesPaused)
	grow(names.transitions, e.Receive*transitionsPaused)
	grow(names.txDuration, e.Transmit*microseconds)
	grow(names.txFrames, e.Transmit*framesPaused)
	grow(names.marked, e.Marked.Value)
	grow(names.markedOf, e.Marked.Value)
	grow(names.sent, e.Marked.Value/marksPerNotice)
	grow(names.handled, e.Notified.Value)
	for _, name := range names.discards {
		grow(name, e.Discards.Value)
	}
}

// stalledMuch is the share of the time from which on a PCIe stall counts in
// seconds.
const stalledMuch = 0.3

// happen has counters grow as an event makes them.
func (g growing) happen(c *card, e *Event) {
	if e.Do != doStall {
		return
	}
	times := flow{shape: steady(), times: e.schedule()}
	g.add(c.spec.Name, "outbound_pci_stalled_rd", growth{level: uint64(e.Share * 100), flow: times})
	if e.Share >= stalledMuch {
		g.add(c.spec.Name, "outbound_pci_stalled_rd_events", growth{rate: 1, flow: times})
	}
}

// lose counts the times that a port went down.
func (g growing) lose(c *card, times growth) {
	for _, name := range []string{"link_down_events_phy", "link_down_events", "link_down_count", "link_downed"} {
		g.add(c.spec.Name, name, times)
	}
}
