package overview

import (
	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// Why a node lacks addresses, where its lease does not say so of the pool.
const (
	whySeeLeases  = "see leases" // where [LeaseNotice] has it
	whyUnanswered = "not answered yet"
)

// need is what a node's lease says of one pool.
type need struct {
	wants    int64
	recalled int64
	short    *int64 // nil where it is not known what the node holds
	why      string
}

// isNothing says that a node wants nothing of the pool and is asked for nothing.
func (n *need) isNothing() bool { return n.wants == 0 && n.recalled == 0 && n.why == "" }

// needsOf is what leases say, by pool and node.
func needsOf(o *Objects, ledgers *ledgerBooks) map[place]need {
	needs := map[place]need{}
	held := heldByPlace(ledgers)
	for _, lease := range o.Leases {
		told := map[string]*v1alpha1.LeasedPool{}
		for i := range lease.Status.Pools {
			told[lease.Status.Pools[i].Pool] = &lease.Status.Pools[i]
		}
		asked := askedBy(lease)
		for pool := range told {
			asked[pool] = append(asked[pool], ask{})
		}
		for pool, asks := range asked {
			at := place{pool, lease.Name}
			n := need{}
			n.count(asks, held[at], ledgers.isWhole(pool))
			n.told(lease, told[pool])
			needs[at] = n
		}
	}
	return needs
}

// ask is addresses that a node needs: so many, of an identity or of none, or
// the very ones that are named.
type ask struct {
	identity string
	amount   int64
	exact    []netipx.IPRange
}

// askedBy is what a lease's spec asks for, by pool.
func askedBy(lease *v1alpha1.AddressLease) map[string][]ask {
	asked := map[string][]ask{}
	for _, want := range lease.Spec.Wants {
		asked[want.Pool] = append(asked[want.Pool], ask{amount: want.Addresses})
	}
	for _, pin := range lease.Spec.Pins {
		for _, want := range pin.Wants {
			asked[want.Pool] = append(asked[want.Pool], ask{identity: pin.Identity, amount: want.Addresses})
		}
	}
	for _, exact := range lease.Spec.Exact {
		if set, err := ipam.ParseRanges(exact.Addresses); err == nil { // the controller says what is wrong with it
			asked[exact.Pool] = append(asked[exact.Pool], ask{exact: set.Ranges()})
		}
	}
	return asked
}

// count counts what is asked for, and what of it is not held. What is asked for
// by its address counts until it is held: from then on it is among the others.
func (n *need) count(asks []ask, held map[string][]netipx.IPRange, isKnown bool) {
	var all []netipx.IPRange
	for _, ranges := range held {
		all = append(all, ranges...)
	}
	all = ipam.Merged(all)
	var short int64
	for _, a := range asks {
		missing := ipam.CountList(ipam.Without(a.exact, all))
		n.wants += a.amount + missing
		short += missing + max(0, a.amount-ipam.CountList(held[a.identity]))
	}
	if isKnown {
		n.short = &short
	}
}

// told adds what the controller says in the lease's status.
func (n *need) told(lease *v1alpha1.AddressLease, pool *v1alpha1.LeasedPool) {
	if pool != nil {
		n.why, n.recalled = pool.Short, pool.Recall
		if set, err := ipam.ParseRanges(pool.Revoke); err == nil {
			n.recalled += ipam.Count(set)
		}
	}
	if n.why != "" || n.short == nil || *n.short == 0 {
		return
	}
	switch {
	case lease.Status.Reason != "":
		n.why = whySeeLeases
	case unanswered(lease) != "":
		n.why = whyUnanswered
	}
}

// fill adds what a lease says to a row.
func (n *need) fill(row *NodeAddresses) {
	row.Wants, row.Recalled, row.Short, row.Why = &n.wants, &n.recalled, n.short, n.why
}

// heldByPlace is what nodes hold by the ledgers, by identity and "" for none.
func heldByPlace(ledgers *ledgerBooks) map[place]map[string][]netipx.IPRange {
	held := map[place]map[string][]netipx.IPRange{}
	for pool, list := range ledgers.byPool {
		for _, l := range list {
			for run := range l.Runs() {
				for _, node := range nodesOnce(run.Node, run.Target) {
					at := place{pool, node}
					if held[at] == nil {
						held[at] = map[string][]netipx.IPRange{}
					}
					held[at][run.Identity] = append(held[at][run.Identity], run.IPRange)
				}
			}
		}
	}
	for _, of := range held {
		for identity, ranges := range of {
			of[identity] = ipam.Merged(ranges)
		}
	}
	return held
}
