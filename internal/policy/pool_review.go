package policy

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// reviewPool has every rule of a pool; see Catalog.Review.
func reviewPool(c *Catalog, obj, old *v2beta1.SpiderIPPool) Review {
	if old == nil {
		pool, review := PoolOf(obj)
		if pool.Subnet.IsValid() {
			review.reviewFamily(c.Config(), field.NewPath("spec", "subnet"), obj.Spec.Subnet, pool.Version())
		}
		review.add(c.newPoolConflicts(obj, pool))
		review.warnEmpty(obj)
		return review
	}
	review, settled := reviewChange(obj, old, ownedSpecOf(obj), ownedSpecOf(old))
	if settled {
		return review
	}
	pool, review := PoolOf(obj)
	before, _ := PoolOf(old)
	review.reviewVersionChange("pool", obj.Spec.IPVersion, old.Spec.IPVersion)
	review.reviewSubnetChange("pool", obj.Spec.Subnet, old.Spec.Subnet)
	review.add(c.reviewPoolRemoval(obj, old, difference(before.Addresses, pool.Addresses)))
	review.add(c.changedPoolConflicts(obj, pool, difference(pool.Addresses, before.Addresses)))
	review.warnEmpty(obj)
	return review
}

// warnEmpty says that a pool is of no use yet, if nothing else is wrong with it.
func (r *Review) warnEmpty(obj *v2beta1.SpiderIPPool) {
	if r.OK() && len(obj.Spec.IPs) == 0 {
		r.warn(field.NewPath("spec", "ips"), "is empty: the pool gives no addresses")
	}
}

// ownedSpec is what rules about a pool read: its spec, and the labels that
// name the application whose own pool it is.
type ownedSpec struct {
	Spec  v2beta1.IPPoolSpec
	Owner Application
}

func ownedSpecOf(obj *v2beta1.SpiderIPPool) ownedSpec {
	owned := ownedSpec{Spec: obj.Spec}
	if owner, _ := ownerOfLabels(obj.Labels); owner != nil {
		owned.Owner = *owner
	}
	return owned
}

// maxListed is how many addresses or objects one error or review lists.
const maxListed = 10

// reviewPoolRemoval refuses to take addresses that pods have, which are known
// from SpiderEndpoints, ledgers and the pool's own status. What nodes hold for no
// pod, they are asked to give back.
func (c *Catalog) reviewPoolRemoval(obj, old *v2beta1.SpiderIPPool, removed *netipx.IPSet) Review {
	var review Review
	if len(removed.Ranges()) == 0 {
		return review
	}
	status, err := allocationsOf(old)
	if err != nil {
		review.refuse(field.NewPath("status", "allocatedIPs"), *old.Status.AllocatedIPs, "says which addresses are in use and cannot be read, so none can be removed: %v", err)
		return review
	}
	users := c.notedBefore(obj.Name, status)
	c.addUsers(obj.Name, users)
	maps.DeleteFunc(users, func(addr netip.Addr, _ user) bool { return !removed.Contains(addr) })
	if len(users) == 0 {
		review.add(c.warnHeld(obj.Name, removed))
	}
	addrs := slices.SortedFunc(maps.Keys(users), netip.Addr.Compare)
	for i, addr := range addrs {
		if i == maxListed {
			review.forbid(field.NewPath("spec", "ips"), "%s more in use would be removed", AddressWord(int64(len(addrs)-i)))
			break
		}
		path := field.NewPath("spec", "ips")
		if at := itemWith(obj.Spec.ExcludeIPs, addr); at >= 0 {
			path = field.NewPath("spec", "excludeIPs").Index(at)
		}
		review.forbid(path, "%s is in use by pod %s: delete the pod, or its SpiderEndpoint %[2]s if the pod is gone, or keep the address", addr, users[addr].pod)
	}
	return review
}

// addUsers adds the pods that have addresses of a pool.
func (c *Catalog) addUsers(pool string, users map[netip.Addr]user) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if p := c.uses.byPool[pool]; p != nil {
		for addr, known := range p.users {
			users[addr] = firstOf(known)
		}
	}
}

// warnHeld says that addresses are recalled which a pool loses.
func (c *Catalog) warnHeld(pool string, removed *netipx.IPSet) Review {
	var build netipx.IPSetBuilder
	build.AddSet(removed)
	build.Intersect(c.Held(pool))
	held := built(&build)
	var review Review
	if n := Count(held); n > 0 {
		review.warn(field.NewPath("spec", "ips"), "takes %s back that nodes have in reserve or that pods keep over their lives, as they become free: %s",
			AddressWord(n), someRanges(held))
	}
	return review
}

// someRanges are the ranges of a set, the first of many.
func someRanges(set *netipx.IPSet) string {
	ranges := FormatRanges(set)
	if len(ranges) > maxListed {
		return strings.Join(ranges[:maxListed], ", ") + " and more"
	}
	return strings.Join(ranges, ", ")
}

// reviewPoolDelete refuses to delete a pool in use, if the configuration says so.
func reviewPoolDelete(c *Catalog, obj *v2beta1.SpiderIPPool) Review {
	var review Review
	if !c.Config().RefuseDeleteInUse {
		return review
	}
	used := c.Usage(obj.Name)
	if used == 0 && obj.Status.AllocatedIPCount != nil {
		used = *obj.Status.AllocatedIPCount
	}
	if used > 0 {
		review.forbid(field.NewPath("metadata", "name"), "pods have %s of pool %s: delete the pods first, or set enableValidatingResourcesDeletedWebhook: false in the ConfigMap %s to have it go when they do",
			AddressWord(used), obj.Name, ConfigMapName)
	}
	return review
}

// itemWith is the place of the item of a list that has an address, -1 if none has.
func itemWith(items []string, addr netip.Addr) int {
	return slices.IndexFunc(items, func(item string) bool {
		r, err := parseRange(item)
		return err == nil && r.Contains(addr)
	})
}

// difference is a without b.
func difference(a, b *netipx.IPSet) *netipx.IPSet {
	var build netipx.IPSetBuilder
	build.AddSet(a)
	build.RemoveSet(b)
	set, err := build.IPSet()
	if err != nil { // an IPSetBuilder fails for invalid ranges only, and sets have none
		return a
	}
	return set
}
