package policy

import (
	"go4.org/netipx"

	"railhead/api/spiderpool/v2beta1"
)

// reservedIndex is the Catalog's reserved addresses, under its lock.
type reservedIndex struct {
	byName map[string]reservedEntry
	// union has, by family, what all reserve together.
	union map[int64]*netipx.IPSet
}

// reservedEntry is what one SpiderReservedIP reserves.
type reservedEntry struct {
	stamp

	addresses *netipx.IPSet
}

func newReservedIndex() reservedIndex {
	return reservedIndex{byName: map[string]reservedEntry{}, union: map[int64]*netipx.IPSet{}}
}

func (x *reservedIndex) put(obj *v2beta1.SpiderReservedIP) {
	if known, ok := x.byName[obj.Name]; ok && known.same(obj) {
		return
	}
	// What can be read of a broken one is reserved all the same: to give
	// nobody an address is the safe mistake.
	addresses, _ := reservedOf(obj)
	x.byName[obj.Name] = reservedEntry{stampOf(obj), addresses}
	x.unite()
}

func (x *reservedIndex) remove(name string) {
	delete(x.byName, name)
	x.unite()
}

// unite makes the unions again.
func (x *reservedIndex) unite() {
	build := map[int64]*netipx.IPSetBuilder{4: {}, 6: {}}
	for _, entry := range x.byName {
		for _, r := range entry.addresses.Ranges() {
			build[versionOf(r.From())].AddRange(r)
		}
	}
	for version, b := range build {
		if set, err := b.IPSet(); err == nil { // an IPSetBuilder fails for invalid ranges only, and these are none
			x.union[version] = set
		}
	}
}

// Reserved are the addresses of a family (4 or 6) that no pod gets from any
// pool. The set is never nil.
func (c *Catalog) Reserved(version int64) *netipx.IPSet {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if set := c.reserved.union[version]; set != nil {
		return set
	}
	return &netipx.IPSet{}
}
