package policy

import (
	"net/netip"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// reviewSubnet has every rule of a SpiderSubnet; see Catalog.Review.
func reviewSubnet(c *Catalog, obj, old *v2beta1.SpiderSubnet) Review {
	if old == nil {
		subnet, review := SubnetOf(obj)
		config := c.Config()
		if subnet.CIDR.IsValid() {
			review.reviewFamily(config, field.NewPath("spec", "subnet"), obj.Spec.Subnet, subnet.Version())
		}
		if problems := validation.IsValidLabelValue(obj.Name); len(problems) > 0 {
			review.refuse(field.NewPath("metadata", "name"), obj.Name, "is a label of the subnet's pools: %s", strings.Join(problems, "; "))
		}
		if !config.EnableSpiderSubnet {
			review.warn(field.NewPath("spec"), "has no effect: the ConfigMap %s has enableSpiderSubnet: false", ConfigMapName)
		}
		review.add(c.newSubnetConflicts(obj, subnet))
		return review
	}
	review, settled := reviewChange(obj, old, obj.Spec, old.Spec)
	if settled {
		return review
	}
	subnet, review := SubnetOf(obj)
	before, _ := SubnetOf(old)
	review.reviewVersionChange("subnet", obj.Spec.IPVersion, old.Spec.IPVersion)
	review.reviewSubnetChange("subnet", obj.Spec.Subnet, old.Spec.Subnet)
	review.add(c.reviewSubnetRemoval(difference(before.Addresses, subnet.Addresses), before))
	return review
}

// newSubnetConflicts holds a subnet as it is created, or as it is stored,
// against other subnets and against the pools that are there.
func (c *Catalog) newSubnetConflicts(obj *v2beta1.SpiderSubnet, subnet Subnet) Review {
	var review Review
	if !subnet.CIDR.IsValid() {
		return review
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	known := c.subnets.byName[obj.Name]
	side := contest{stampOf(obj), kindSubnet, known != nil && known.uid == obj.UID}
	path := field.NewPath("spec", "subnet")
	for _, other := range c.subnets.overlapping(subnet.CIDR) {
		if side.loses(kindSubnet, other.stamp) {
			review.refuse(path, obj.Spec.Subnet, "overlaps the SpiderSubnet %s (%s): want one apart", other.name, other.subnet.CIDR)
		}
	}
	if !c.config.EnableSpiderSubnet {
		return review
	}
	review.add(c.uncontained(side, subnet))
	return review
}

// uncontained finds pools that are partly within a subnet: of another CIDR
// that overlaps it, or of its own with addresses that it lacks.
func (c *Catalog) uncontained(side contest, subnet Subnet) Review {
	var review Review
	spec := field.NewPath("spec")
	whole := netipx.RangeOfPrefix(subnet.CIDR)
	c.pools.cidrs.overlapping(whole, func(s span[netip.Prefix]) bool {
		if s.owner == subnet.CIDR {
			return true
		}
		if name, ok := c.winner(side, s.owner); ok {
			review.refuse(spec.Child("subnet"), subnet.CIDR.String(), "overlaps the subnet %s of pool %s: want the same subnet, or one apart", s.owner, name)
		}
		return len(review.Errors) < maxListed
	})
	written := strings.Join(FormatRanges(subnet.Addresses), ",")
	c.pools.ranges.overlapping(whole, func(s span[string]) bool {
		pool := c.pools.byName[s.owner]
		if pool.pool.Subnet == subnet.CIDR && side.loses(kindPool, pool.stamp) && !subnet.Addresses.ContainsRange(s.IPRange) {
			review.refuse(spec.Child("ips"), written, "lacks addresses that pool %s of this CIDR has: want %s in it", s.owner, formatRange(s.IPRange))
		}
		return len(review.Errors) < maxListed
	})
	return review
}

// reviewSubnetRemoval refuses to take addresses that pools hold.
func (c *Catalog) reviewSubnetRemoval(removed *netipx.IPSet, before Subnet) Review {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var review Review
	for _, r := range removed.Ranges() {
		c.pools.ranges.overlapping(r, func(s span[string]) bool {
			if c.pools.byName[s.owner].pool.Subnet == before.CIDR {
				review.forbid(field.NewPath("spec", "ips"), "pool %s has %s: take them from the pool first, or keep them here", s.owner, formatRange(common(r, s.IPRange)))
			}
			return len(review.Errors) < maxListed
		})
		if len(review.Errors) >= maxListed {
			break
		}
	}
	return review
}

// reviewSubnetDelete refuses to delete a subnet with pools, if the
// configuration says so.
func reviewSubnetDelete(c *Catalog, obj *v2beta1.SpiderSubnet) Review {
	var review Review
	c.mu.RLock()
	defer c.mu.RUnlock()
	cidr, err := parsePrefix(obj.Spec.Subnet)
	if err != nil || !c.config.RefuseDeleteInUse || !c.config.EnableSpiderSubnet {
		return review
	}
	if pools := c.pools.of(cidr); len(pools) > 0 {
		review.forbid(field.NewPath("metadata", "name"), "SpiderSubnet %s has %d pools, such as %s: delete them first, or set enableValidatingResourcesDeletedWebhook: false in the ConfigMap %s to have it go when they do",
			obj.Name, len(pools), pools[0], ConfigMapName)
	}
	return review
}
