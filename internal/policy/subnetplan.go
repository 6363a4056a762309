package policy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// AutoPoolState is what a plan is made from. Nothing of it is changed.
type AutoPoolState struct {
	Subnets []Subnet
	// Pools are all that exist, of whoever: what any of them has is not given again.
	Pools []*v2beta1.SpiderIPPool
	// Reserved are the addresses of a family that no pod gets; nil: none.
	Reserved func(version int64) *netipx.IPSet
	// Used are the addresses of a pool that pods have; nil: none.
	Used func(pool string) *netipx.IPSet
}

// AutoPoolPlan is what makes the pools of one application as they should be.
// Objects to update are changed copies, with the resource version they had.
type AutoPoolPlan struct {
	Create, Update, Delete []*v2beta1.SpiderIPPool
	Problems               []Problem
}

// Chooses says whether the plan takes addresses out of a subnet.
func (p AutoPoolPlan) Chooses() bool { return len(p.Create)+len(p.Update) > 0 }

// Problem is why an application is not served, or not as it asks.
type Problem struct {
	*field.Error

	Reason string // one of the constants below
}

// Reasons of problems, as Events and metrics have them.
const (
	ReasonBadAnnotation   = "BadAnnotation"
	ReasonUnknownSubnet   = "UnknownSubnet"
	ReasonWrongFamily     = "WrongFamily"
	ReasonSubnetExhausted = "SubnetExhausted"
)

// PlanAutoPools says which pools an application with so many pods should have:
// for each interface and family that it claims one, with the addresses that it
// claims. A nil claim is of an application that wants none; an application that
// is gone has no UID either, and leaves the pools that are not reclaimed.
//
// A pool keeps the addresses it has: it grows by the lowest free ones of its
// subnet, and shrinks by the highest that no pod has. Where a subnet has fewer
// than are wanted nothing of it is taken, and a problem says so.
func PlanAutoPools(app Application, claim *Claim, pods int64, state AutoPoolState) AutoPoolPlan {
	p := planner{app: app, state: state, kept: map[string]bool{}, replaced: map[[2]string]bool{}}
	for _, pool := range state.Pools {
		if own, ok := ownPoolOf(pool); ok && pool.DeletionTimestamp == nil && own.app.isOf(app) {
			p.own = append(p.own, existingPool{own, pool})
		}
	}
	slices.SortFunc(p.own, func(a, b existingPool) int { return cmp.Compare(a.object.Name, b.object.Name) })
	if claim != nil {
		for _, c := range claim.Interfaces {
			p.serve(claim, c, 4, c.IPv4, pods)
			p.serve(claim, c, 6, c.IPv6, pods)
		}
	}
	p.drop()
	return p.plan
}

// planner makes one plan.
type planner struct {
	app   Application
	state AutoPoolState
	own   []existingPool
	plan  AutoPoolPlan

	kept     map[string]bool    // names of own pools that stay
	replaced map[[2]string]bool // interface and family that another pool serves now
	taken    *netipx.IPSet      // what all pools and this plan have; nil until asked for
}

// existingPool is a pool of the application, and what its labels say.
type existingPool struct {
	ownPool

	object *v2beta1.SpiderIPPool
}

// serve sees to the pool of one interface and family.
func (p *planner) serve(claim *Claim, c InterfaceClaim, version int64, names []string, pods int64) {
	if len(names) == 0 {
		return
	}
	path := c.path.Child("ipv" + strconv.FormatInt(version, 10))
	subnets := p.candidates(path, version, names)
	want := ownPool{app: p.app, nic: c.Interface, version: version, isReclaimed: claim.Reclaim}
	count := claim.Number.For(pods)
	var isServed bool
	if pool, subnet, ok := p.existing(want, subnets); ok {
		want.subnet = subnet.Name
		p.fit(path, pool.object, subnet, want, count)
		isServed = true
	} else {
		isServed = p.create(path, subnets, names, want, count)
	}
	if isServed {
		p.replaced[want.place()] = true
		return
	}
	// Better the old pool than none, until the new one can be made.
	for _, pool := range p.own {
		if pool.place() == want.place() && pool.app.UID == p.app.UID {
			p.kept[pool.object.Name] = true
		}
	}
}

// place is the interface and family that a pool is for.
func (o ownPool) place() [2]string {
	return [2]string{o.nic, strconv.FormatInt(o.version, 10)}
}

// candidates are the subnets that names stand for and that may serve a family.
func (p *planner) candidates(path *field.Path, version int64, names []string) []Subnet {
	var subnets []Subnet
	for i, name := range names {
		at := slices.IndexFunc(p.state.Subnets, func(s Subnet) bool { return s.Name == name })
		switch {
		case at < 0:
			p.refuse(ReasonUnknownSubnet, path.Index(i), name, "no SpiderSubnet that keeps the rules has this name: "+p.namesOf(version))
		case versionOf(p.state.Subnets[at].CIDR.Addr()) != version:
			p.refuse(ReasonWrongFamily, path.Index(i), name, "the SpiderSubnet is "+p.state.Subnets[at].CIDR.String()+": "+p.namesOf(version))
		default:
			subnets = append(subnets, p.state.Subnets[at])
		}
	}
	return subnets
}

// namesOf says which subnets of a family there are.
func (p *planner) namesOf(version int64) string {
	const most = 8
	var names []string
	for _, s := range p.state.Subnets {
		if versionOf(s.CIDR.Addr()) == version {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	family := "IPv" + strconv.FormatInt(version, 10)
	switch {
	case len(names) == 0:
		return "there is none of " + family + ": create one"
	case len(names) > most:
		names = append(names[:most], "...")
	}
	return "want one of " + family + ", which are " + joined(names)
}

// existing is the pool that goes on serving a claim: the application's own in
// the first of the subnets, or else one that was kept for its return.
func (p *planner) existing(want ownPool, subnets []Subnet) (existingPool, Subnet, bool) {
	for _, isReturn := range []bool{false, true} {
		for _, subnet := range subnets {
			for _, pool := range p.own {
				isOther := pool.app.UID != p.app.UID
				serves := pool.subnet == subnet.Name && pool.place() == want.place() && !p.kept[pool.object.Name]
				if serves && isOther == isReturn && (!isOther || !pool.isReclaimed) {
					return pool, subnet, true
				}
			}
		}
	}
	return existingPool{}, Subnet{}, false
}

// drop deletes own pools that nothing wants any more.
func (p *planner) drop() {
	for _, pool := range p.own {
		isOther := pool.app.UID != p.app.UID
		waits := isOther && !pool.isReclaimed && !p.replaced[pool.place()]
		if !p.kept[pool.object.Name] && !waits {
			p.plan.Delete = append(p.plan.Delete, pool.object)
		}
	}
}

// refuse adds a problem.
func (p *planner) refuse(reason string, path *field.Path, value any, detail string) {
	p.plan.Problems = append(p.plan.Problems, Problem{Error: field.Invalid(path, value, detail), Reason: reason})
}

// withLabels is a pool's labels with those that we set; the same map if all are right already.
func withLabels(labels, ours map[string]string) map[string]string {
	for key, value := range ours {
		if labels[key] != value {
			all := maps.Clone(labels)
			maps.Copy(all, ours)
			return all
		}
	}
	return labels
}
