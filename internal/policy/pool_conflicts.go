package policy

import (
	"net/netip"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

const (
	kindPool   = "SpiderIPPool"
	kindSubnet = "SpiderSubnet"
)

// newPoolConflicts holds a pool as it is created, or as it is stored, against
// all other pools and subnets.
func (c *Catalog) newPoolConflicts(obj *v2beta1.SpiderIPPool, pool Pool) Review {
	c.mu.RLock()
	defer c.mu.RUnlock()
	known := c.pools.byName[obj.Name]
	side := contest{stampOf(obj), kindPool, known != nil && known.uid == obj.UID}
	review := c.subnetConflicts(side, obj.Spec.Subnet, pool.Subnet)
	review.add(c.rangeConflicts(side, obj, pool, pool.Addresses))
	review.add(c.gatewayConflicts(pool, pool.Addresses))
	return review
}

// changedPoolConflicts holds the addresses that a change adds against all
// other pools and subnets. Its subnet is as it was.
func (c *Catalog) changedPoolConflicts(obj *v2beta1.SpiderIPPool, pool Pool, added *netipx.IPSet) Review {
	c.mu.RLock()
	defer c.mu.RUnlock()
	review := c.rangeConflicts(contest{stampOf(obj), kindPool, false}, obj, pool, added)
	review.add(c.gatewayConflicts(pool, added))
	return review
}

// subnetConflicts finds subnets of pools and SpiderSubnets that overlap a
// pool's subnet and are not the same.
func (c *Catalog) subnetConflicts(side contest, text string, cidr netip.Prefix) Review {
	var review Review
	if !cidr.IsValid() {
		return review
	}
	path := field.NewPath("spec", "subnet")
	c.pools.cidrs.overlapping(netipx.RangeOfPrefix(cidr), func(s span[netip.Prefix]) bool {
		if s.owner == cidr {
			return true
		}
		if name, ok := c.winner(side, s.owner); ok {
			review.refuse(path, text, "overlaps the subnet %s of pool %s: want the same subnet, or one apart", s.owner, name)
		}
		return len(review.Errors) < maxListed
	})
	if !c.config.EnableSpiderSubnet {
		return review
	}
	for _, other := range c.subnets.overlapping(cidr) {
		if other.subnet.CIDR != cidr && side.loses(kindSubnet, other.stamp) {
			review.refuse(path, text, "overlaps the SpiderSubnet %s (%s): want the same subnet, or one apart", other.name, other.subnet.CIDR)
		}
	}
	return review
}

// winner is the first pool of a subnet that an object would lose a conflict to.
func (c *Catalog) winner(side contest, cidr netip.Prefix) (string, bool) {
	for _, name := range c.pools.of(cidr) {
		if side.loses(kindPool, c.pools.byName[name].stamp) {
			return name, true
		}
	}
	return "", false
}

// rangeConflicts finds other pools that have some of a pool's addresses, and
// addresses that the SpiderSubnet of the same CIDR does not have.
func (c *Catalog) rangeConflicts(side contest, obj *v2beta1.SpiderIPPool, pool Pool, addresses *netipx.IPSet) Review {
	var review Review
	refuse := func(r netipx.IPRange, format string, args ...any) {
		path, value := itemOf(obj.Spec.IPs, r)
		review.refuse(path, value, format, args...)
	}
	for _, r := range addresses.Ranges() {
		c.pools.ranges.overlapping(r, func(s span[string]) bool {
			if side.loses(kindPool, c.pools.byName[s.owner].stamp) {
				refuse(r, "%s of pool %s too: want each address in one pool", areAddresses(common(r, s.IPRange), ""), s.owner)
			}
			return len(review.Errors) < maxListed
		})
		if len(review.Errors) >= maxListed {
			break
		}
	}
	if !c.config.EnableSpiderSubnet || !pool.Subnet.IsValid() {
		return review
	}
	subnet := c.subnets.of(pool.Subnet)
	if subnet == nil || !side.loses(kindSubnet, subnet.stamp) {
		return review
	}
	for _, r := range difference(addresses, subnet.subnet.Addresses).Ranges() {
		if len(review.Errors) >= maxListed {
			break
		}
		refuse(r, "%s of the SpiderSubnet %s (%s), which pools of its CIDR are cut from", areAddresses(r, "no "), subnet.name, subnet.subnet.CIDR)
	}
	return review
}

// gatewayConflicts warns of gateways that pods may be given as their address:
// the pool's own by another pool, and another pool's by this one.
func (c *Catalog) gatewayConflicts(pool Pool, addresses *netipx.IPSet) Review {
	var review Review
	for _, gateway := range gatewayRange(pool) {
		c.pools.ranges.overlapping(gateway, func(s span[string]) bool {
			if s.owner != pool.Name {
				review.warn(field.NewPath("spec", "gateway"), "%s is one of the addresses of pool %s: add it to the pool's excludeIPs, or a pod may take it", pool.Gateway, s.owner)
			}
			return s.owner == pool.Name
		})
	}
	for _, r := range addresses.Ranges() {
		c.pools.gateways.overlapping(r, func(s span[string]) bool {
			if s.owner != pool.Name {
				review.warn(field.NewPath("spec", "ips"), "%s is the gateway of pool %s: add it to excludeIPs, or a pod may take it", s.From(), s.owner)
			}
			return s.owner == pool.Name
		})
	}
	return review
}

// itemOf is the item of ips that a range comes from.
func itemOf(items []string, r netipx.IPRange) (*field.Path, string) {
	path := field.NewPath("spec", "ips")
	for i, item := range items {
		if ir, err := parseRange(item); err == nil && ir.Overlaps(r) {
			return path.Index(i), item
		}
	}
	return path, formatRange(r)
}

// areAddresses is "X is an address", or "X-Y are addresses"; with no, that it is
// none or they are none.
func areAddresses(r netipx.IPRange, no string) string {
	switch {
	case r.From() != r.To():
		return formatRange(r) + " are " + no + "addresses"
	case no != "":
		return formatRange(r) + " is " + no + "address"
	}
	return formatRange(r) + " is an address"
}

// common is what two ranges that overlap have in common.
func common(a, b netipx.IPRange) netipx.IPRange {
	from, to := a.From(), a.To()
	if from.Less(b.From()) {
		from = b.From()
	}
	if b.To().Less(to) {
		to = b.To()
	}
	return netipx.IPRangeFrom(from, to)
}
