package overview

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/ipam"
)

// Books are who has which addresses, by ledgers, leases and SpiderEndpoints.
type Books struct {
	Nodes     []NodeAddresses `json:"nodes"` // by pool and node
	Runs      []AddressRun    `json:"runs"`  // by pool and address
	Conflicts []Conflict      `json:"conflicts"`
}

// NodeAddresses is how many addresses of a pool a node has by the ledgers, or
// no node. Counts that nobody knows are nil.
type NodeAddresses struct {
	Pool string `json:"pool"`
	Node string `json:"node,omitempty"` // empty for what no node has
	Held int64  `json:"held"`           // by the node
	// Used are those that pods of it have, and Reserve those that are for any pod to come.
	Used    *int64 `json:"used,omitempty"`
	Reserve *int64 `json:"reserve,omitempty"`
	// Pinned are kept for identities, whether these use them or not.
	Pinned      int64 `json:"pinned"`
	Quarantined int64 `json:"quarantined"`
	// Short is why the node has less than it needs, as its lease says; empty if it has enough.
	Short string `json:"short,omitempty"`
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

// Addresses shows who has which addresses. The errors name ledgers and addresses
// that cannot be understood; the others are shown. About a pool with such a
// ledger nothing is said to contradict it.
func Addresses(o *Objects) (Books, []error) {
	var (
		books  Books
		byPool = map[string][]*ipam.Ledger{}
		broken = map[string]bool{}
	)
	uses, errs := usesOf(o.Endpoints)
	for _, obj := range o.Ledgers {
		ledger, err := ipam.LedgerOf(obj)
		if err != nil {
			errs, broken[obj.Spec.Pool] = append(errs, err), true
			continue
		}
		byPool[obj.Spec.Pool] = append(byPool[obj.Spec.Pool], ledger)
		books.Runs = append(books.Runs, runsOf(ledger, uses[obj.Spec.Pool], o.Endpoints != nil)...)
	}
	books.Runs = append(books.Runs, unheld(uses, byPool)...)
	slices.SortStableFunc(books.Runs, func(a, b AddressRun) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), firstOf(a.Addresses).Compare(firstOf(b.Addresses)), strings.Compare(a.Pod, b.Pod))
	})
	books.Nodes = nodesOf(books.Runs, o)
	books.Conflicts = slices.DeleteFunc(conflictsOf(o, byPool, uses), func(c Conflict) bool {
		return broken[c.Pool] && c.Kind == ConflictLease
	})
	return books, errs
}

// Of are the books of a pool and a node alone; "" for all.
func (b *Books) Of(pool, node string) Books {
	is := func(p string, nodes ...string) bool {
		return (pool == "" || p == pool) && (node == "" || slices.Contains(nodes, node))
	}
	of := Books{Nodes: []NodeAddresses{}, Runs: []AddressRun{}, Conflicts: []Conflict{}} // and never null in JSON
	for _, n := range b.Nodes {
		if is(n.Pool, n.Node) {
			of.Nodes = append(of.Nodes, n)
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

// nodesOf counts runs by pool and node, and adds what leases say of needs.
func nodesOf(runs []AddressRun, o *Objects) []NodeAddresses {
	type place struct{ pool, node string }
	rows := map[place]*NodeAddresses{}
	row := func(pool, node string) *NodeAddresses {
		at := place{pool, node}
		if rows[at] == nil {
			rows[at] = &NodeAddresses{Pool: pool, Node: node}
			if o.Endpoints != nil {
				rows[at].Used, rows[at].Reserve = new(int64), new(int64)
			}
		}
		return rows[at]
	}
	for i := range runs {
		row(runs[i].Pool, runs[i].Node).count(&runs[i])
	}
	for _, lease := range o.Leases {
		for _, pool := range lease.Status.Pools {
			if pool.Short != "" {
				row(pool.Pool, lease.Name).Short = pool.Short
			}
		}
	}
	var list []NodeAddresses
	for _, r := range rows {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b NodeAddresses) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Node, b.Node))
	})
	return list
}

// count adds a run to the row of its pool and node.
func (n *NodeAddresses) count(r *AddressRun) {
	if r.Epoch != 0 && r.Node != "" {
		n.Held += r.Count
	}
	if r.Identity != "" {
		n.Pinned += r.Count
	}
	switch r.State {
	case StateUsed:
		*n.Used += r.Count
	case StateReserve:
		*n.Reserve += r.Count
	case StateQuarantined:
		n.Quarantined += r.Count
	case StatePinned, StateHeld:
	}
}
