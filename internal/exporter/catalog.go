package exporter

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"railhead/internal/counters"
)

// catalog has all families in the order of their exposition. Those that the
// table of counters does not know join it while devices are read. It is safe
// for concurrent use.
type catalog struct {
	filter filter

	mu     sync.Mutex
	byName map[string]*family
	order  atomic.Pointer[[]*family]
}

// newCatalog takes the known families in the order of their exposition.
func newCatalog(known []*counters.Family, filter filter) *catalog {
	c := &catalog{filter: filter, byName: make(map[string]*family, len(known))}
	order := make([]*family, 0, len(known))
	for i, f := range known {
		if c.byName[f.Name] == nil {
			added := newFamily(f, i, filter)
			c.byName[f.Name] = added
			order = append(order, added)
		}
	}
	c.order.Store(&order)
	return c
}

// families returns all families in the order of their exposition. The index of
// none that was returned before changes.
func (c *catalog) families() []*family { return *c.order.Load() }

// known returns a family by its name, which must be of the table.
func (c *catalog) known(name string) *family {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.byName[name]
	if f == nil {
		panic("exporter: no family " + name)
	}
	return f
}

// of returns a family as it is exposed. One that is new goes to the end, where
// the names are in order. What has the name of another family is exposed as
// that, since a name can have but one type.
func (c *catalog) of(f *counters.Family) *family {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.byName[f.Name]; old != nil {
		return old
	}
	order := c.families()
	added := newFamily(f, len(order), c.filter)
	added.isLate = true
	c.byName[f.Name] = added
	place, _ := slices.BinarySearchFunc(order, added, compareFamilies)
	order = slices.Insert(slices.Clone(order), place, added)
	c.order.Store(&order)
	return added
}

// compareFamilies orders the families of the table as they are there, and all
// others behind them by name.
func compareFamilies(a, b *family) int {
	switch {
	case a.isLate && b.isLate:
		return cmp.Compare(a.Name, b.Name)
	case a.isLate:
		return 1
	case b.isLate:
		return -1
	}
	return cmp.Compare(a.index, b.index)
}
