package overview

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Books are who has which addresses, by ledgers, leases and SpiderEndpoints.
type Books struct {
	Nodes     []NodeAddresses `json:"nodes"`  // by pool and node
	Runs      []AddressRun    `json:"runs"`   // by pool and address
	Leases    []LeaseNotice   `json:"leases"` // those that have something to say, by node
	Conflicts []Conflict      `json:"conflicts"`
	// Problems are what could not be read or understood, and is missing above.
	Problems []string `json:"problems"`
}

// NodeAddresses is how many addresses of a pool a node has by the ledgers, or
// no node. Counts that nobody knows are nil, such as those of a pool that has a
// ledger which cannot be understood. Each address counts once.
type NodeAddresses struct {
	Pool string `json:"pool"`
	Node string `json:"node,omitempty"` // empty for what no node has
	Held *int64 `json:"held,omitempty"` // by the node
	// Used are those that pods have, and Reserve those that are for any pod to come.
	Used    *int64 `json:"used,omitempty"`
	Reserve *int64 `json:"reserve,omitempty"`
	// Pinned are kept for identities, whether these use them or not.
	Pinned      *int64 `json:"pinned,omitempty"`
	Quarantined *int64 `json:"quarantined,omitempty"`
	// Wants is how many the node needs by its lease, Recalled how many the
	// controller would like back, and Short how many of those it needs it does not
	// hold. They are nil where it has no lease that is known.
	Wants    *int64 `json:"wants,omitempty"`
	Recalled *int64 `json:"recalled,omitempty"`
	Short    *int64 `json:"short,omitempty"`
	// Why it has less than it needs; empty if it has enough.
	Why string `json:"why,omitempty"`
}

// AddressState is what addresses are to who has them.
type AddressState string

// States of addresses.
const (
	StateUsed        AddressState = "used"        // a pod has them
	StateReserve     AddressState = "reserve"     // a node has them for pods to come
	StatePinned      AddressState = "pinned"      // kept for an identity, which does not use them now
	StateQuarantined AddressState = "quarantined" // nobody has them for now
	StateHeld        AddressState = "held"        // a node has them; whether a pod does could not be read
)

// AddressRun is addresses that follow each other, with one holder.
type AddressRun struct {
	Pool      string       `json:"pool"`
	Addresses string       `json:"addresses"` // "first" or "first-last"
	Count     int64        `json:"count"`
	State     AddressState `json:"state"`
	Node      string       `json:"node,omitempty"`
	Target    string       `json:"target,omitempty"` // the node that a virtual machine moves to
	Pod       string       `json:"pod,omitempty"`    // "namespace/name" of the SpiderEndpoint
	Interface string       `json:"interface,omitempty"`
	Identity  string       `json:"identity,omitempty"`
	Doubtful  bool         `json:"doubtful,omitempty"`
	// Reason of a quarantine, and since when.
	Reason string       `json:"reason,omitempty"`
	Since  *metav1.Time `json:"since,omitempty"`
	// Epoch of the ledger's write that granted them; 0 where no ledger knows of them.
	Epoch int64 `json:"epoch"`
}

// Addresses shows who has which addresses. The errors name what cannot be
// understood, such as ledgers; the rest is shown. About a pool with such a ledger
// nothing is said to contradict it.
func Addresses(o *Objects) (Books, []error) {
	var books Books
	ledgers, errs := ledgersOf(o)
	uses, wrong := usesOf(o.Endpoints)
	errs = slices.Concat(wrong, errs, identityErrors(o))
	for pool, list := range ledgers.byPool {
		for _, ledger := range list {
			books.Runs = append(books.Runs, runsOf(ledger, uses[pool], o.Endpoints != nil)...)
		}
	}
	books.Runs = append(books.Runs, unheld(uses, ledgers.byPool)...)
	slices.SortStableFunc(books.Runs, func(a, b AddressRun) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), firstOf(a.Addresses).Compare(firstOf(b.Addresses)), strings.Compare(a.Pod, b.Pod), strings.Compare(a.Node, b.Node))
	})
	books.Nodes = nodesOf(books.Runs, o, &ledgers)
	books.Leases = noticesOf(o.Leases)
	books.Conflicts = conflictsOf(o, &ledgers, uses)
	return books, errs
}

// Of are the books of a pool and a node alone; "" for all.
func (b *Books) Of(pool, node string) Books {
	is := func(p string, nodes ...string) bool {
		return (pool == "" || p == pool) && (node == "" || slices.Contains(nodes, node))
	}
	of := Books{Nodes: []NodeAddresses{}, Runs: []AddressRun{}, Leases: []LeaseNotice{}, Conflicts: []Conflict{}, Problems: []string{}} // and never null in JSON
	ofPool := map[string]bool{}                                                                                                         // nodes that have or want some of it
	for _, n := range b.Nodes {
		if is(n.Pool, n.Node) {
			of.Nodes, ofPool[n.Node] = append(of.Nodes, n), true
		}
	}
	for _, n := range b.Leases {
		if (pool == "" || ofPool[n.Node]) && (node == "" || n.Node == node) {
			of.Leases = append(of.Leases, n)
		}
	}
	for i := range b.Runs {
		if r := &b.Runs[i]; is(r.Pool, r.Node, r.Target) {
			of.Runs = append(of.Runs, *r)
		}
	}
	for i := range b.Conflicts {
		if c := &b.Conflicts[i]; is(c.Pool, c.Nodes...) {
			of.Conflicts = append(of.Conflicts, *c)
		}
	}
	return of
}
