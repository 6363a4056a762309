package granter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// lease is one version of a lease, parsed once.
type lease struct {
	object *v1alpha1.AddressLease // never changed
	name   string
	// before is versions that this one follows: a cache that still shows one is old.
	before []string

	wants     []v1alpha1.Want
	exact     map[string][]netipx.IPRange
	returns   []giveBack
	returning map[string][]netipx.IPRange // addresses that returns name, of any epoch
	shown     map[string][]grant          // what the status grants, by pool
	begun     bool                        // it was seen when its node held nothing yet
	problem   error                       // parts of it that cannot be parsed, which are left out

	// Of this round:
	standing  standing
	why       string // of a standing that takes its addresses
	reason    string // of its status
	lost      bool   // a write of its status may have arrived or not (R8)
	withdrawn bool   // its status was emptied in this round, so what it holds can be taken
	entries   []entry
	rest      *rest // of what rounds found it to be at rest; nil: something was to be done
	resting   bool  // in this round
}

// versionsKept is how many old versions of a lease are recognised: a cache is
// behind our own writes by one or two.
const versionsKept = 8

// giveBack is one item of spec.returns.
type giveBack struct {
	pool       string
	epoch      int64
	ranges     []netipx.IPRange
	quarantine string
}

// readLeases takes the leases of the view, or what this granter itself made of
// them since: a cache may be behind.
func (r *round) readLeases() {
	here := make(map[string]*lease, len(r.view.Leases))
	for _, object := range r.view.Leases {
		l := r.Granter.leases[object.Name]
		if l == nil || l.lost || !l.follows(object) {
			l = parseLease(object, l)
		}
		if l.problem != nil {
			r.errs = append(r.errs, l.problem)
		}
		l.withdrawn = false
		here[l.name] = l
		r.leases = append(r.leases, l)
	}
	r.Granter.leases, r.byNode = here, here
	r.stand()
}

// follows says whether a lease is the version shown, or a later one.
func (l *lease) follows(shown *v1alpha1.AddressLease) bool {
	if l.object.UID != shown.UID {
		return false
	}
	return l.object.ResourceVersion == shown.ResourceVersion || slices.Contains(l.before, shown.ResourceVersion)
}

// parseLease parses a version of a lease, which follows another one if that is known.
func parseLease(object *v1alpha1.AddressLease, before *lease) *lease {
	l := &lease{object: object, name: object.Name}
	if before != nil && before.object.UID == object.UID {
		l.begun = before.begun
		l.before = append(slices.Clone(before.before), before.object.ResourceVersion)
		l.before = l.before[max(0, len(l.before)-versionsKept):]
	}
	var errs []error
	errs = append(errs, l.parseSpec()...)
	errs = append(errs, l.parseStatus()...)
	if err := errors.Join(errs...); err != nil {
		l.problem = fmt.Errorf("lease %s: %w", l.name, err)
	}
	return l
}

func (l *lease) parseSpec() []error {
	var errs []error
	spec := &l.object.Spec
	l.wants = slices.Clone(spec.Wants)
	slices.SortFunc(l.wants, func(a, b v1alpha1.Want) int { return cmp.Compare(a.Pool, b.Pool) })
	l.exact = map[string][]netipx.IPRange{}
	for i, e := range spec.Exact {
		set, err := ipam.ParseRanges(e.Addresses)
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.exact[%d]: %w", i, err))
			continue
		}
		l.exact[e.Pool] = ipam.Merged(slices.Concat(l.exact[e.Pool], set.Ranges()))
	}
	l.returning = map[string][]netipx.IPRange{}
	for i, b := range spec.Returns {
		set, err := ipam.ParseRanges(b.Addresses)
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.returns[%d]: %w", i, err))
			continue
		}
		l.returns = append(l.returns, giveBack{b.Pool, b.Epoch, set.Ranges(), b.Quarantine})
		l.returning[b.Pool] = ipam.Merged(slices.Concat(l.returning[b.Pool], set.Ranges()))
	}
	return errs
}

func (l *lease) parseStatus() []error {
	var errs []error
	l.shown = make(map[string][]grant, len(l.object.Status.Pools))
	for i := range l.object.Status.Pools {
		p := &l.object.Status.Pools[i]
		var all []grant
		for j, g := range p.Grants {
			for _, text := range g.Addresses {
				addresses, err := ipam.ParseRange(text)
				if err != nil {
					errs = append(errs, fmt.Errorf("status.pools[%d].grants[%d]: %w", i, j, err))
					continue
				}
				all = append(all, grant{addresses, g.Epoch, g.Identity, g.Doubtful})
			}
		}
		l.shown[p.Pool] = joined(all)
	}
	return errs
}

// uid is the node whose addresses the lease tells of.
func (l *lease) uid() types.UID {
	return cmp.Or(l.object.Status.NodeUID, l.object.Spec.NodeUID)
}
