package policy

import (
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"railhead/api/spiderpool/v2beta1"
)

// subnetIndex is the Catalog's SpiderSubnets, under its lock.
type subnetIndex struct {
	byName map[string]*subnetEntry
	cidrs  spans[string] // whole subnets → name
}

// subnetEntry is one SpiderSubnet, whether it keeps the rules or not.
type subnetEntry struct {
	stamp

	subnet Subnet
	ok     bool
}

func newSubnetIndex() subnetIndex {
	return subnetIndex{byName: map[string]*subnetEntry{}}
}

func (x *subnetIndex) put(obj *v2beta1.SpiderSubnet) {
	if known := x.byName[obj.Name]; known != nil && known.same(obj) {
		return
	}
	x.remove(obj.Name)
	subnet, review := SubnetOf(obj)
	x.byName[obj.Name] = &subnetEntry{stampOf(obj), subnet, review.OK()}
	if subnet.CIDR.IsValid() {
		x.cidrs.add(obj.Name, []netipx.IPRange{netipx.RangeOfPrefix(subnet.CIDR)})
	}
}

func (x *subnetIndex) remove(name string) {
	entry := x.byName[name]
	if entry == nil {
		return
	}
	delete(x.byName, name)
	if entry.subnet.CIDR.IsValid() {
		x.cidrs.drop(name, []netipx.IPRange{netipx.RangeOfPrefix(entry.subnet.CIDR)})
	}
}

// overlapping are the SpiderSubnets that share addresses with a CIDR, the
// earliest first.
func (x *subnetIndex) overlapping(cidr netip.Prefix) []*subnetEntry {
	var entries []*subnetEntry
	x.cidrs.overlapping(netipx.RangeOfPrefix(cidr), func(s span[string]) bool {
		entries = append(entries, x.byName[s.owner])
		return true
	})
	slices.SortFunc(entries, func(a, b *subnetEntry) int { return a.compare(b.stamp) })
	return entries
}

// of is the SpiderSubnet of a CIDR: the earliest that keeps the rules and is
// not being deleted, nil if there is none.
func (x *subnetIndex) of(cidr netip.Prefix) *subnetEntry {
	for _, entry := range x.overlapping(cidr) {
		if entry.subnet.CIDR == cidr && entry.ok && !entry.subnet.Deleting {
			return entry
		}
	}
	return nil
}

// Subnet is the SpiderSubnet of that name, if it keeps the rules that need no
// other object.
func (c *Catalog) Subnet(name string) (Subnet, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	entry := c.subnets.byName[name]
	if entry == nil || !entry.ok {
		return Subnet{}, false
	}
	return entry.subnet, true
}

// Subnets are all SpiderSubnets that Subnet answers, by name.
func (c *Catalog) Subnets() []Subnet {
	c.mu.RLock()
	defer c.mu.RUnlock()
	subnets := make([]Subnet, 0, len(c.subnets.byName))
	for _, name := range slices.Sorted(maps.Keys(c.subnets.byName)) {
		if entry := c.subnets.byName[name]; entry.ok {
			subnets = append(subnets, entry.subnet)
		}
	}
	return subnets
}

// subnetFor is the SpiderSubnet that pools of a CIDR belong to, if there is one
// and the configuration has pools belong to subnets.
func (c *Catalog) subnetFor(cidr netip.Prefix) (Subnet, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.config.EnableSpiderSubnet || !cidr.IsValid() {
		return Subnet{}, false
	}
	entry := c.subnets.of(cidr.Masked())
	if entry == nil {
		return Subnet{}, false
	}
	return entry.subnet, true
}
