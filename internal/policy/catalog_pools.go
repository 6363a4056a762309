package policy

import (
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"railhead/api/spiderpool/v2beta1"
)

// poolIndex is the Catalog's pools, under its lock.
type poolIndex struct {
	byName map[string]*poolEntry
	// ranges are addresses for pods, and gateways what they may not be, with the name of the pool.
	ranges, gateways spans[string]
	// cidrs has each subnet once, and byCIDR the names of its pools.
	cidrs  spans[netip.Prefix]
	byCIDR map[netip.Prefix]map[string]struct{}
	sorted []Pool // nil until asked for
}

// poolEntry is one pool, whether it keeps the rules or not.
type poolEntry struct {
	stamp

	pool   Pool
	ranges []netipx.IPRange
	labels map[string]string
	ok     bool
}

func newPoolIndex() poolIndex {
	return poolIndex{byName: map[string]*poolEntry{}, byCIDR: map[netip.Prefix]map[string]struct{}{}}
}

// putPool makes a pool known. Its status may name thousands of addresses in use,
// which are read before the lock is taken: pods wait for it.
func (c *Catalog) putPool(obj *v2beta1.SpiderIPPool) {
	if c.knowsPool(obj) {
		return
	}
	inUse := poolUses(obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools.put(obj)
	c.uses.noted[obj.Name] = inUse
	c.recount(obj.Name)
}

// knowsPool says whether a pool has not changed since.
func (c *Catalog) knowsPool(obj *v2beta1.SpiderIPPool) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	known := c.pools.byName[obj.Name]
	return known != nil && known.same(obj)
}

// put takes a pool that changed.
func (x *poolIndex) put(obj *v2beta1.SpiderIPPool) {
	known := x.byName[obj.Name]
	if known != nil && known.generation != 0 && known.generation == obj.Generation &&
		known.uid == obj.UID && maps.Equal(known.labels, obj.Labels) {
		known.stamp = stampOf(obj) // no more than its status
		return
	}
	x.remove(obj.Name)
	pool, review := PoolOf(obj)
	entry := &poolEntry{stampOf(obj), pool, pool.Addresses.Ranges(), obj.Labels, review.OK()}
	x.byName[obj.Name] = entry
	x.ranges.add(obj.Name, entry.ranges)
	x.gateways.add(obj.Name, gatewayRange(pool))
	if pool.Subnet.IsValid() {
		if x.byCIDR[pool.Subnet] == nil {
			x.byCIDR[pool.Subnet] = map[string]struct{}{}
			x.cidrs.add(pool.Subnet, []netipx.IPRange{netipx.RangeOfPrefix(pool.Subnet)})
		}
		x.byCIDR[pool.Subnet][obj.Name] = struct{}{}
	}
}

func (x *poolIndex) remove(name string) {
	entry := x.byName[name]
	if entry == nil {
		return
	}
	x.sorted = nil
	delete(x.byName, name)
	x.ranges.drop(name, entry.ranges)
	x.gateways.drop(name, gatewayRange(entry.pool))
	subnet := entry.pool.Subnet
	if delete(x.byCIDR[subnet], name); len(x.byCIDR[subnet]) == 0 && subnet.IsValid() {
		delete(x.byCIDR, subnet)
		x.cidrs.drop(subnet, []netipx.IPRange{netipx.RangeOfPrefix(subnet)})
	}
}

// gatewayRange is a pool's gateway as a range, none if it has none.
func gatewayRange(pool Pool) []netipx.IPRange {
	if !pool.Gateway.IsValid() {
		return nil
	}
	return []netipx.IPRange{netipx.IPRangeFrom(pool.Gateway, pool.Gateway)}
}

// of are the names of a subnet's pools, in order.
func (x *poolIndex) of(cidr netip.Prefix) []string {
	return slices.Sorted(maps.Keys(x.byCIDR[cidr]))
}

// Pool is the pool of that name, if it keeps the rules that need no other
// object. It may overlap one that another replica admitted at the same time:
// Review says which of the two is the one to use.
func (c *Catalog) Pool(name string) (Pool, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	entry := c.pools.byName[name]
	if entry == nil || !entry.ok {
		return Pool{}, false
	}
	return entry.pool, true
}

// Pools are all pools that Pool answers, by name. The slice is shared: do not
// change it.
func (c *Catalog) Pools() []Pool {
	c.mu.RLock()
	sorted := c.pools.sorted
	c.mu.RUnlock()
	if sorted != nil {
		return sorted
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pools.sorted == nil {
		c.pools.sorted = c.pools.accepted()
	}
	return c.pools.sorted
}

// accepted are the pools that keep the rules, by name.
func (x *poolIndex) accepted() []Pool {
	pools := make([]Pool, 0, len(x.byName))
	for _, name := range slices.Sorted(maps.Keys(x.byName)) {
		if entry := x.byName[name]; entry.ok {
			pools = append(pools, entry.pool)
		}
	}
	return pools
}
