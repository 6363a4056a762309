package overview

import (
	"cmp"
	"slices"
	"strings"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Pool is a SpiderIPPool. Counts that nobody knows are nil; those beyond 2^63-1
// are that.
type Pool struct {
	Name     string `json:"name"`
	Family   int64  `json:"family,omitempty"` // 4 or 6; 0 where the subnet cannot be parsed
	Subnet   string `json:"subnet"`
	Gateway  string `json:"gateway,omitempty"`
	Total    *int64 `json:"total,omitempty"`    // addresses of the pool
	Reserved *int64 `json:"reserved,omitempty"` // of these, reserved by SpiderReservedIPs
	Used     *int64 `json:"used,omitempty"`     // that pods have
	// Held are those that nodes or identities have by its ledgers, and Quarantined
	// those that nobody has for now, be the addresses the pool's still or not.
	Held        *int64 `json:"held,omitempty"`
	Quarantined *int64 `json:"quarantined,omitempty"`
	// Free are those that can be granted: not reserved, held, in quarantine, in use
	// since before there were ledgers, or of another pool's ledger, too.
	Free *int64 `json:"free,omitempty"`

	Default  bool     `json:"default"`
	Disabled bool     `json:"disabled"`
	Deleting bool     `json:"deleting,omitempty"`
	For      []string `json:"for,omitempty"` // who may use it, all of these; empty for everybody
	// Ready is what the controller says; nil where it said nothing.
	Ready *bool `json:"ready,omitempty"`
	// Why it gives no addresses, where it does not.
	Why string `json:"why,omitempty"`
}

// Pools shows the pools by name. The errors name ledgers that cannot be
// understood; what is held of their pools is not known.
func Pools(o *Objects) ([]Pool, []error) {
	c := o.catalog()
	ledgers, errs := ledgersOf(o)
	pools := make([]Pool, 0, len(o.Pools))
	for _, obj := range o.Pools {
		pools = append(pools, poolOf(c, o, &ledgers, obj))
	}
	slices.SortFunc(pools, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	return pools, errs
}

// FullestFirst orders pools by the part of their addresses that is in use, and
// then by name. Those that cannot be told come last.
func FullestFirst(pools []Pool) {
	part := func(p *Pool) float64 {
		if p.Total == nil || p.Used == nil {
			return -1
		}
		return float64(*p.Used) / float64(max(1, *p.Total))
	}
	slices.SortStableFunc(pools, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(part(&b), part(&a)), strings.Compare(a.Name, b.Name))
	})
}

func poolOf(c *policy.Catalog, o *Objects, ledgers *ledgerBooks, obj *v2beta1.SpiderIPPool) Pool {
	filled := obj.DeepCopy()
	c.Default(filled)
	parsed, review := policy.PoolOf(filled)
	p := Pool{
		Name: obj.Name, Subnet: obj.Spec.Subnet, Default: parsed.Default, Disabled: parsed.Disabled, Deleting: parsed.Deleting,
		For: affinity(&obj.Spec, parsed.Owner), Total: obj.Status.TotalIPCount, Used: obj.Status.AllocatedIPCount,
	}
	if parsed.Subnet.IsValid() {
		p.Family, p.Subnet = parsed.Version(), parsed.Subnet.String()
	}
	if parsed.Gateway.IsValid() {
		p.Gateway = parsed.Gateway.String()
	}
	if o.Endpoints != nil {
		p.Used = new(c.Usage(obj.Name))
	}
	if ledgers.isWhole(obj.Name) {
		p.Held = new(policy.Count(c.Kept(obj.Name)))
		p.Quarantined = new(policy.Count(without(c.Held(obj.Name), c.Kept(obj.Name))))
	}
	if review.OK() { // otherwise only the controller knows what it made of it
		p.count(parsed, o, ledgers, c)
	}
	p.Ready, p.Why = readiness(obj.Status.Conditions)
	if p.Ready == nil { // the controller knows the cluster's configuration, and is right where it said something
		if review = c.Review(filled, nil); !review.OK() {
			p.Ready, p.Why = new(false), review.Errors.ToAggregate().Error()
		}
	}
	return p
}

// count counts addresses: those of a pool that can be parsed are what they are,
// whatever the controller counted last.
func (p *Pool) count(parsed policy.Pool, o *Objects, ledgers *ledgerBooks, c *policy.Catalog) {
	p.Total = new(policy.Count(parsed.Addresses))
	if o.Reserved == nil {
		return
	}
	givable := without(parsed.Addresses, c.Reserved(p.Family))
	p.Reserved = new(*p.Total - policy.Count(givable))
	if o.Endpoints != nil && ledgers.knows(p.Name, parsed.Addresses) {
		free := without(givable, c.Used(p.Name))
		p.Free = new(policy.Count(without(free, ledgers.closed(p.Name, parsed.Addresses))))
	}
}

// without returns the addresses of a set that are not in another.
func without(set, other *netipx.IPSet) *netipx.IPSet {
	var b netipx.IPSetBuilder
	b.AddSet(set)
	b.RemoveSet(other)
	rest, err := b.IPSet()
	if err != nil { // of invalid ranges, which sets have none of
		return set
	}
	return rest
}

// affinity says in short who may use a pool: an application its own, whatever
// selector says so.
func affinity(spec *v2beta1.IPPoolSpec, owner *policy.Application) []string {
	var list []string
	add := func(label string, names []string, selector *metav1.LabelSelector) {
		switch {
		case len(names) > 0:
			list = append(list, label+" "+strings.Join(names, ","))
		case selector != nil:
			list = append(list, label+" "+metav1.FormatLabelSelector(selector))
		}
	}
	if owner != nil {
		list = append(list, owner.Kind+" "+owner.Namespace+"/"+owner.Name)
	} else {
		add("pods", nil, spec.PodAffinity)
	}
	add("namespaces", spec.NamespaceName, spec.NamespaceAffinity)
	add("nodes", spec.NodeName, spec.NodeAffinity)
	add("networks", spec.MultusName, nil)
	return list
}
