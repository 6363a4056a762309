package simulation

import (
	"slices"
	"sync"
	"time"
)

// card is a card of the node while it runs.
type card struct {
	spec      *Card
	driver    *driver
	number    int
	priority  int         // of RDMA
	functions []*function // the PF, then the VFs
	payload   uint64      // bytes of RDMA in a full packet

	down     []window // when its port is down
	degraded []degradation

	mu    sync.Mutex // held while counters are computed: flows remember
	state portState  // as it was told last
	isCut bool       // the netdev that it stands on is away, or has no carrier
	cuts  crowd      // how often that began
}

// degradation is a time in which the port runs at less.
type degradation struct {
	schedule

	speed, lanes int
}

// portState is what a port is at.
type portState struct {
	isDown       bool
	speed, lanes int
}

// newCard returns a card with its functions and what happens to its port.
func newCard(s *Scenario, number int) *card {
	spec := &s.Cards[number]
	c := &card{spec: spec, driver: drivers[spec.Driver], number: number, payload: payloadOf(spec.MTU, spec.LinkLayer)}
	switch {
	case spec.Priority != nil:
		c.priority = *spec.Priority
	case len(spec.PFC) > 0:
		c.priority = spec.PFC[0]
	}
	for _, e := range s.Events {
		if slices.Contains(e.Devices, spec.Name) {
			c.schedule(&e)
		}
	}
	for vf := -1; vf < spec.VFs; vf++ {
		c.functions = append(c.functions, newFunction(s, c, vf))
	}
	return c
}

// payloadOf returns the largest RDMA packet that the MTU of a netdev lets
// through with its headers; InfiniBand takes the largest there is.
func payloadOf(mtu int, linkLayer string) uint64 {
	for _, size := range []int{4096, 2048, 1024, 512} {
		if linkLayer == linkInfiniBand || mtu >= size+58 {
			return uint64(size)
		}
	}
	return 256
}

// schedule notes when the port is down or degraded.
func (c *card) schedule(e *Event) {
	switch e.Do {
	case doDown:
		c.down = append(c.down, e.schedule())
	case doFlap:
		down, up := e.Down.Duration, e.Up.Duration
		c.down = append(c.down, nested{outer: e.schedule(), inner: schedule{last: down, every: down + up}})
	case doDegrade:
		c.degraded = append(c.degraded, degradation{schedule: e.schedule(), speed: e.Speed, lanes: e.Lanes})
	}
}

// at returns what the port is at.
func (c *card) at(t time.Duration) portState {
	state := portState{speed: c.spec.Speed, lanes: c.spec.Lanes, isDown: c.isCut}
	for _, w := range c.down {
		if _, active := w.turn(t); active {
			state.isDown = true
		}
	}
	for _, d := range c.degraded {
		if _, active := d.turn(t); !active {
			continue
		}
		if d.speed != 0 {
			state.speed = d.speed
		}
		if d.lanes != 0 {
			state.lanes = d.lanes
		}
	}
	return state
}

// brakes returns what holds traffic of the card back.
func (c *card) brakes(s *Scenario) []brake {
	var brakes []brake
	for _, w := range c.down {
		brakes = append(brakes, brake{window: w})
	}
	for _, e := range s.Events {
		if e.Do == doDegrade && e.Share > 0 && slices.Contains(e.Devices, c.spec.Name) {
			brakes = append(brakes, brake{window: e.schedule(), share: e.Share})
		}
	}
	return brakes
}

// volumes returns what went through a function and the port by a moment.
func (c *card) volumes(f *function, t time.Duration) *volumes {
	v := &volumes{own: f.load(t), seconds: t.Seconds(), card: c}
	for _, other := range c.functions {
		v.port.add(other.load(t))
	}
	return v
}

// values computes counters of a function.
func (c *card) values(f *function, counters []counter, t time.Duration, dst []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.volumes(f, t)
	for i := range dst {
		dst[i] = counters[i].value(v, t)
	}
}

// through returns what went through a function by a moment.
func (c *card) through(f *function, t time.Duration) load {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f.load(t)
}
