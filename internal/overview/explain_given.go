package overview

import (
	"fmt"
	"net/netip"
	"slices"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
	"railhead/internal/ipam/selection"
)

// take adds what the pod's SpiderEndpoint says that it has.
func (e *Explanation) take(o *PodObjects, books []*ipam.Ledger) {
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
			nic := e.at(at.Interface)
			nic.Given = append(nic.Given, givenAs(o, books, *has.pool, *has.text, current.Node))
		}
	}
}

// givenAs says what ledgers and the node's lease say of an address.
func givenAs(o *PodObjects, books []*ipam.Ledger, pool, text, node string) GivenAddress {
	g := GivenAddress{Address: text, Pool: pool}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		g.Problem = "is no address with a prefix length"
		return g
	}
	var shown int64
	if o.Lease != nil {
		if grant, ok := grantOf(o.Lease, pool, prefix.Addr()); ok {
			g.Lease, shown = o.Lease.Name, grant.Epoch
		}
	}
	i := slices.IndexFunc(books, func(l *ipam.Ledger) bool { return l.Pool == pool && l.Part.Contains(prefix.Addr()) })
	if i < 0 {
		if o.Ledgers != nil {
			g.Problem = "no ledger knows of it"
		}
		return g
	}
	g.Ledger = books[i].Meta.Name
	run, held := books[i].At(prefix.Addr())
	g.Epoch = run.Epoch
	switch {
	case !held:
		g.Problem = "the ledger has it free"
	case !run.On(node):
		g.Problem = "the ledger gives it to " + holderWords(&run)
	case o.LeaseRead && g.Lease == "":
		g.Problem = "the AddressLease of node " + o.PodNode.Name + " does not show it"
	case g.Lease != "" && shown != run.Epoch:
		g.Problem = fmt.Sprintf("the AddressLease shows it by epoch %d", shown)
	}
	return g
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

// waitsFor says why an interface that pools can serve has no address yet.
func waitsFor(o *PodObjects, at *ExplainedInterface) []string {
	switch {
	case o.PodNode.Name == "":
		return []string{"the pod is on no node yet"}
	case !o.LeaseRead:
		return []string{"what node " + o.PodNode.Name + " waits for is not known, since its AddressLease could not be read"}
	case o.Lease == nil:
		return []string{fmt.Sprintf("node %s has no AddressLease: want the agent running there, and the CRDs of Railhead installed", o.PodNode.Name)}
	}
	var reasons []string
	for _, p := range o.Lease.Status.Pools {
		isCandidate := func(c selection.Considered) bool { return c.Pool == p.Pool && c.Why == "" }
		if p.Short != "" && slices.ContainsFunc(at.Considered, isCandidate) {
			reasons = append(reasons, fmt.Sprintf("%s: node %s is short of pool %s: %s", at.Interface, o.PodNode.Name, p.Pool, p.Short))
		}
	}
	if len(reasons) > 0 {
		return reasons
	}
	if answered := o.Lease.Status.ObservedGeneration; answered < o.Lease.Generation {
		return []string{fmt.Sprintf("%s: the controller has not answered AddressLease %s yet (generation %d, answered %d): want a leading controller", at.Interface, o.Lease.Name, o.Lease.Generation, answered)}
	}
	return []string{fmt.Sprintf("%s: node %s is short of nothing: its container runtime has not asked for the pod yet, or what the pod got is not published yet", at.Interface, o.PodNode.Name)}
}
