package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// create plans a new pool in the first subnet with room. It says whether the
// claim is served, as one that wants no address yet is.
func (p *planner) create(path *field.Path, subnets []Subnet, names []string, want ownPool, count int64) bool {
	if count == 0 {
		return true
	}
	var short []string
	for _, subnet := range subnets {
		if subnet.Deleting {
			short = append(short, subnet.Name+" is being deleted")
			continue
		}
		free := p.free(subnet)
		if has := Count(free); has < count {
			short = append(short, fmt.Sprintf("%s has %d free", subnet.Name, has))
			continue
		}
		want.subnet = subnet.Name
		pool := want.object(p.freeName(autoPoolName(p.app, want.nic, want.version)), subnet)
		pool.Spec.IPs = FormatRanges(p.take(lowest(free, count)))
		p.plan.Create = append(p.plan.Create, pool)
		return true
	}
	if len(subnets) > 0 {
		p.refuse(ReasonSubnetExhausted, path, names, fmt.Sprintf("the pool of %s wants %s, and %s: %s",
			want.nic, AddressWord(count), joined(short), wantRoom))
	}
	return false
}

// wantRoom is what helps where a subnet has too few addresses.
const wantRoom = "add addresses to a subnet, name a further one, or want fewer by " + v2beta1.AnnotationPoolNumber

// fit plans a pool that exists to have as many addresses as are wanted.
func (p *planner) fit(path *field.Path, object *v2beta1.SpiderIPPool, subnet Subnet, want ownPool, count int64) {
	p.kept[object.Name] = true
	pool, _ := PoolOf(object)
	has := orEmpty(pool.Addresses)
	used := p.used(object.Name)
	// What was reserved meanwhile serves nobody, unless a pod has it already.
	fitted := union(difference(has, p.reserved(want.version)), both(has, used))
	switch n := Count(fitted); {
	case n > count:
		fitted = difference(fitted, setOf(highest(difference(fitted, used), n-count)))
	case n < count:
		free := difference(p.free(subnet), excluded(object))
		if left := Count(free); left < count-n {
			p.refuse(ReasonSubnetExhausted, path, subnet.Name, fmt.Sprintf("pool %s has %s and wants %d more, and %s has %d free: %s",
				object.Name, AddressWord(n), count-n, subnet.Name, left, wantRoom))
			break
		}
		fitted = union(fitted, p.take(lowest(free, count-n)))
	}
	ips, labels, affinity := object.Spec.IPs, withLabels(object.Labels, want.labels()), p.app.Affinity()
	if !fitted.Equal(has) {
		ips = FormatRanges(fitted)
	}
	isSame := slices.Equal(ips, object.Spec.IPs) && maps.Equal(labels, object.Labels) &&
		object.Spec.PodAffinity != nil && maps.Equal(affinity.MatchLabels, object.Spec.PodAffinity.MatchLabels)
	if isSame {
		return
	}
	changed := object.DeepCopy()
	changed.Labels, changed.Spec.IPs, changed.Spec.PodAffinity = labels, ips, affinity
	p.plan.Update = append(p.plan.Update, changed)
}

// free are the addresses of a subnet that nobody has.
func (p *planner) free(subnet Subnet) *netipx.IPSet {
	if p.taken == nil {
		var build netipx.IPSetBuilder
		for _, object := range p.state.Pools {
			pool, _ := PoolOf(object)
			build.AddSet(orEmpty(pool.Addresses))
		}
		build.AddSet(p.reserved(4))
		build.AddSet(p.reserved(6))
		p.taken = built(&build)
	}
	var build netipx.IPSetBuilder
	build.AddSet(orEmpty(subnet.Addresses))
	build.RemoveSet(p.taken)
	if subnet.Gateway.IsValid() {
		build.Remove(subnet.Gateway)
	}
	return built(&build)
}

// take notes what this plan gives, so that it gives it once.
func (p *planner) take(ranges []netipx.IPRange) *netipx.IPSet {
	set := setOf(ranges)
	p.taken = union(p.taken, set)
	return set
}

// freeName is a name that no pool has: the one given, or with a suffix, as
// while a former pool of that name waits for its last addresses.
func (p *planner) freeName(name string) string {
	isTaken := func(name string) bool {
		has := func(pool *v2beta1.SpiderIPPool) bool { return pool.Name == name }
		return slices.ContainsFunc(p.state.Pools, has) || slices.ContainsFunc(p.plan.Create, has)
	}
	tried := name
	for i := 2; isTaken(tried); i++ {
		tried = name + "-" + strconv.Itoa(i)
	}
	return tried
}

// used are the addresses of a pool that pods have.
func (p *planner) used(pool string) *netipx.IPSet {
	if p.state.Used == nil {
		return &netipx.IPSet{}
	}
	return orEmpty(p.state.Used(pool))
}

// reserved are the addresses of a family that no pod gets.
func (p *planner) reserved(version int64) *netipx.IPSet {
	if p.state.Reserved == nil {
		return &netipx.IPSet{}
	}
	return orEmpty(p.state.Reserved(version))
}

// excluded are addresses that an administrator took from a pool.
func excluded(pool *v2beta1.SpiderIPPool) *netipx.IPSet {
	var build netipx.IPSetBuilder
	for _, item := range pool.Spec.ExcludeIPs {
		if r, err := parseRange(item); err == nil {
			build.AddRange(r)
		}
	}
	return built(&build)
}

// orEmpty is a set, for one that is not there an empty one.
func orEmpty(set *netipx.IPSet) *netipx.IPSet {
	if set == nil {
		return &netipx.IPSet{}
	}
	return set
}

// union is what either of two sets has.
func union(a, b *netipx.IPSet) *netipx.IPSet {
	var build netipx.IPSetBuilder
	build.AddSet(a)
	build.AddSet(b)
	return built(&build)
}

// both is what two sets have in common.
func both(a, b *netipx.IPSet) *netipx.IPSet {
	var build netipx.IPSetBuilder
	build.AddSet(a)
	build.Intersect(b)
	return built(&build)
}

// setOf is the set of ranges.
func setOf(ranges []netipx.IPRange) *netipx.IPSet {
	var build netipx.IPSetBuilder
	for _, r := range ranges {
		build.AddRange(r)
	}
	return built(&build)
}

// joined is a list in words.
func joined(names []string) string { return strings.Join(names, ", ") }
