package counters

import (
	"slices"
	"strings"
)

// counter is what the tables know of a kernel counter. One that they do not
// know is exported all the same if it is one of RDMA: a statistic of the RDMA
// device, or one of a netdev that has to do with virtual ports.
func (r *Reader) counter(s source, name string) *counter {
	if c := known.find(s, r.driver, name); c != nil {
		return c
	}
	if s != statistics && s != deviceFiles && (s != driverStats || !strings.Contains(name, "vport")) {
		return nil
	}
	if !slices.Contains(r.unknown, name) {
		r.unknown = append(r.unknown, name)
	}
	return r.unknownCounter(s, name)
}

// unknownCounter is a row for a counter that has none. Where a counter of
// another driver has its name, it is taken for the same.
func (r *Reader) unknownCounter(s source, name string) *counter {
	c := &counter{row: &row{key: name, kind: Unknown, tier: Errors}}
	if s == deviceFiles {
		c.scope = WholeDevice
	}
	f := known.byName[familyOf(name)]
	switch {
	case f == nil:
		f = r.unknownFamily(familyOf(name), c.scope)
	case len(f.Labels) > 0:
		return nil // it cannot be the same
	}
	c.outputs = []output{{family: f, second: true}} // what is known under this name counts
	return c
}

// unknownFamily is the family of a counter that the tables do not know, the same
// each time.
func (r *Reader) unknownFamily(name string, scope Scope) *Family {
	f := r.families[name]
	if f == nil {
		f = &Family{Name: name, Kind: Unknown, Scope: scope, Tier: Errors, Help: "A counter of the driver that this version does not know."}
		if r.families == nil {
			r.families = map[string]*Family{}
		}
		r.families[name] = f
	}
	return f
}
