package overview

import (
	"fmt"
	"net/netip"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// take adds what the pod's SpiderEndpoint says that it has.
func (e *Explanation) take(o *PodObjects, books *ledgerBooks) {
	if o.Endpoint == nil {
		return
	}
	current := &o.Endpoint.Status.Current
	if current.UID != string(o.Pod.UID) {
		e.say(fmt.Sprintf("SpiderEndpoint %s/%s is of an earlier pod (UID %s) and not of this one", o.Endpoint.Namespace, o.Endpoint.Name, current.UID))
		return
	}
	for i := range current.IPs {
		at := &current.IPs[i]
		for _, has := range []struct{ pool, text *string }{{at.IPv4Pool, at.IPv4}, {at.IPv6Pool, at.IPv6}} {
			if has.pool == nil || has.text == nil || *has.text == "" {
				continue
			}
			given, kept := givenAs(o, books, *has.pool, *has.text, current.Node)
			nic := e.at(at.Interface)
			nic.Given = append(nic.Given, given)
			if kept != "" {
				e.Warnings = append(e.Warnings, at.Interface+": "+kept)
			}
		}
	}
}

// givenAs says what ledgers and the node's lease say of an address, and how it is
// kept for the pod where that is not by a grant.
func givenAs(o *PodObjects, books *ledgerBooks, pool, text, node string) (g GivenAddress, kept string) {
	g = GivenAddress{Address: text, Pool: pool}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		g.Problem = "is no address with a prefix length"
		return g, ""
	}
	var shown int64
	if o.Lease != nil {
		if grant, ok := grantOf(o.Lease, pool, prefix.Addr()); ok {
			g.Lease, shown = o.Lease.Name, grant.Epoch
		}
	}
	ledger := books.at(use{addr: prefix.Addr(), pool: pool})
	if ledger == nil {
		if books.isWhole(pool) {
			g.Problem = "no ledger knows of it"
		}
		return g, ""
	}
	g.Ledger = ledger.Meta.Name
	run, held := ledger.At(prefix.Addr())
	g.Epoch = run.Epoch
	switch {
	case !held:
		g.Problem = "the ledger has it free"
	case run.Quarantine != nil && run.Quarantine.Pod == o.Endpoint.Namespace+"/"+o.Endpoint.Name:
		return g, fmt.Sprintf("%s is kept for the pod in quarantine (%s): nobody else gets it, and it is free when the pod is gone", prefix.Addr(), run.Quarantine.Reason)
	case node == "" && run.Parked(): // it waits for the next pod of its identity
	case !run.On(node):
		g.Problem = "the ledger gives it to " + holderWords(&run)
	case o.LeaseRead && g.Lease == "":
		g.Problem = "the AddressLease of node " + o.PodNode.Name + " does not show it"
	case g.Lease != "" && shown != run.Epoch:
		g.Problem = fmt.Sprintf("the AddressLease shows it by epoch %d", shown)
	}
	return g, ""
}

// grantOf is the grant of a lease that has an address.
func grantOf(lease *v1alpha1.AddressLease, pool string, addr netip.Addr) (v1alpha1.Grant, bool) {
	for _, p := range lease.Status.Pools {
		if p.Pool != pool {
			continue
		}
		for _, g := range p.Grants {
			if set, err := ipam.ParseRanges(g.Addresses); err == nil && set.Contains(addr) {
				return g, true
			}
		}
	}
	return v1alpha1.Grant{}, false
}
