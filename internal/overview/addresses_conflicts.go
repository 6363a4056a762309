package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go4.org/netipx"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam"
	"railhead/internal/policy"
)

// ConflictKind is what contradicts what.
type ConflictKind string

// Kinds of conflicts.
const (
	ConflictPods    ConflictKind = "pods"    // two interfaces of pods name one address
	ConflictLedgers ConflictKind = "ledgers" // two ledgers give one address
	ConflictNode    ConflictKind = "node"    // a pod's address is another node's, or free
	ConflictLease   ConflictKind = "lease"   // a lease shows what the ledger does not say
)

// Conflict is addresses about which two objects contradict each other. While
// objects are written one after the other, some do for a moment: see [Persisting].
type Conflict struct {
	Kind      ConflictKind `json:"kind"`
	Pool      string       `json:"pool"`
	Addresses string       `json:"addresses"` // "first" or "first-last"
	Nodes     []string     `json:"nodes,omitempty"`
	Message   string       `json:"message"`
}

// Persisting are the conflicts of a second look that the first one had about
// the same addresses.
func Persisting(first, second []Conflict) []Conflict {
	return slices.DeleteFunc(slices.Clone(second), func(c Conflict) bool {
		return !slices.ContainsFunc(first, func(f Conflict) bool {
			return f.Kind == c.Kind && f.Pool == c.Pool && overlaps(f.Addresses, c.Addresses)
		})
	})
}

func overlaps(a, b string) bool {
	x, errX := ipam.ParseRange(a)
	y, errY := ipam.ParseRange(b)
	return a == b || errX == nil && errY == nil && x.Overlaps(y)
}

// conflictsOf finds all conflicts, by pool and address. A pool whose ledgers are
// not all known is said to contradict nothing that may be in one of them.
func conflictsOf(o *Objects, ledgers *ledgerBooks, uses map[string][]use) []Conflict {
	conflicts := slices.Concat(betweenPods(uses), betweenLedgers(ledgers.byPool))
	gives := addressesOf(o.Pools)
	for _, list := range uses {
		for _, u := range list {
			if c, ok := elsewhere(u, ledgers, gives[u.pool]); ok {
				conflicts = append(conflicts, c)
			}
		}
	}
	if o.Leases != nil {
		conflicts = append(conflicts, slices.DeleteFunc(ofLeases(o.Leases, ledgers.byPool), func(c Conflict) bool { return !ledgers.isWhole(c.Pool) })...)
	}
	slices.SortStableFunc(conflicts, func(a, b Conflict) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), firstOf(a.Addresses).Compare(firstOf(b.Addresses)), strings.Compare(a.Message, b.Message))
	})
	return conflicts
}

// betweenPods finds addresses that several interfaces have, of whichever pools.
func betweenPods(uses map[string][]use) []Conflict {
	var all []use
	for _, pool := range slices.Sorted(maps.Keys(uses)) {
		all = append(all, uses[pool]...)
	}
	slices.SortStableFunc(all, func(a, b use) int { return cmp.Or(a.addr.Compare(b.addr), strings.Compare(a.pod, b.pod)) })
	var conflicts []Conflict
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.addr != b.addr {
			continue
		}
		conflicts = append(conflicts, Conflict{
			Kind: ConflictPods, Pool: b.pool, Addresses: b.addr.String(), Nodes: nodesOnce(a.node, b.node),
			Message: fmt.Sprintf("SpiderEndpoint %s has it for %s on node %s, and SpiderEndpoint %s for %s on node %s", a.pod, a.nic, a.node, b.pod, b.nic, b.node),
		})
	}
	return conflicts
}

// given is a run and the ledger that it is of.
type given struct {
	ipam.Run

	ledger *ipam.Ledger
}

// betweenLedgers finds addresses that two ledgers give, as of pools that overlap.
func betweenLedgers(ledgers map[string][]*ipam.Ledger) []Conflict {
	var all []given
	for _, pool := range slices.Sorted(maps.Keys(ledgers)) {
		for _, l := range ledgers[pool] {
			for run := range l.Runs() {
				all = append(all, given{run, l})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b given) int { return a.From().Compare(b.From()) })
	var conflicts []Conflict
	reach := 0 // the run so far that goes on furthest
	for i := 1; i < len(all); i++ {
		a, b := &all[reach], &all[i]
		if a.To().Less(b.To()) {
			reach = i
		}
		if !a.Overlaps(b.IPRange) {
			continue
		}
		both := ipam.Common([]netipx.IPRange{a.IPRange}, []netipx.IPRange{b.IPRange})
		conflicts = append(conflicts, Conflict{
			Kind: ConflictLedgers, Pool: b.ledger.Pool, Addresses: ipam.FormatRange(both[0]), Nodes: nodesOnce(a.Node, a.Target, b.Node, b.Target),
			Message: fmt.Sprintf("%s gives it to %s, and %s to %s", ledgerWords(a.ledger), holderWords(&a.Run), ledgerWords(b.ledger), holderWords(&b.Run)),
		})
	}
	return conflicts
}

// addressesOf is which addresses pools have, as far as they can be parsed.
func addressesOf(pools []*v2beta1.SpiderIPPool) map[string]*netipx.IPSet {
	gives := map[string]*netipx.IPSet{}
	for _, obj := range pools {
		parsed, _ := policy.PoolOf(obj)
		gives[obj.Name] = parsed.Addresses
	}
	return gives
}

// elsewhere says that the address of a pod is another node's, or free: gives is
// what its pool has. What is in quarantine, or of no pool, is nobody else's.
func elsewhere(u use, ledgers *ledgerBooks, gives *netipx.IPSet) (Conflict, bool) {
	c := Conflict{Kind: ConflictNode, Pool: u.pool, Addresses: u.addr.String(), Nodes: nodesOnce(u.node)}
	says := fmt.Sprintf("SpiderEndpoint %s has it for %s on node %s", u.pod, u.nic, u.node)
	l := ledgers.at(u)
	if l == nil {
		// What no agent of ours wrote is of before Railhead: a ledger that is made takes it over.
		if !u.published || gives == nil || !gives.Contains(u.addr) || !ledgers.isWhole(u.pool) {
			return Conflict{}, false
		}
		c.Message = says + ", and no PoolLedger of the pool is about it: it is held by no node"
		return c, true
	}
	run, held := l.At(u.addr)
	switch {
	case !held:
		c.Message = says + ", and by " + ledgerWords(l) + " it is free"
	case run.Quarantine == nil && !run.On(u.node):
		c.Nodes = nodesOnce(u.node, run.Node, run.Target)
		c.Message = fmt.Sprintf("%s, and %s gives it to %s", says, ledgerWords(l), holderWords(&run))
	}
	return c, c.Message != ""
}

func ledgerWords(l *ipam.Ledger) string {
	return fmt.Sprintf("PoolLedger %s (epoch %d)", l.Meta.Name, l.Epoch)
}

// holderWords names who has a run.
func holderWords(r *ipam.Run) string {
	switch {
	case r.Quarantine != nil:
		return "nobody (in quarantine: " + r.Quarantine.Reason + ")"
	case r.Parked():
		return r.Identity
	case r.Identity != "":
		return "node " + r.Node + " for " + r.Identity
	}
	return "node " + r.Node
}

// nodesOnce are the nodes that are named, each once.
func nodesOnce(nodes ...string) []string {
	slices.Sort(nodes)
	return slices.DeleteFunc(slices.Compact(nodes), func(n string) bool { return n == "" })
}
