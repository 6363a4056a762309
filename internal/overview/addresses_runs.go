package overview

import (
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam"
)

// use is an address that a pod has by its SpiderEndpoint.
type use struct {
	addr                 netip.Addr
	pod, nic, node, pool string

	published bool // by an agent
}

// usesOf are the addresses that pods have, by pool and in order. A
// SpiderEndpoint that names no node is of a pod that is gone and may come back:
// it has nothing now. Addresses that cannot be understood are errors.
func usesOf(endpoints []*v2beta1.SpiderEndpoint) (map[string][]use, []error) {
	var errs []error
	uses := map[string][]use{}
	for _, e := range endpoints {
		current := &e.Status.Current
		if current.Node == "" {
			continue
		}
		published := e.Annotations[v1alpha1.AnnotationSandbox] != ""
		for i := range current.IPs {
			at := &current.IPs[i]
			for _, has := range []struct{ pool, text *string }{{at.IPv4Pool, at.IPv4}, {at.IPv6Pool, at.IPv6}} {
				if has.pool == nil || has.text == nil || *has.pool == "" {
					continue
				}
				prefix, err := netip.ParsePrefix(*has.text)
				if err != nil {
					errs = append(errs, fmt.Errorf("SpiderEndpoint %s/%s: interface %s: %q: want an address with its prefix length", e.Namespace, e.Name, at.Interface, *has.text))
					continue
				}
				uses[*has.pool] = append(uses[*has.pool], use{prefix.Addr(), e.Namespace + "/" + e.Name, at.Interface, current.Node, *has.pool, published})
			}
		}
	}
	for _, list := range uses {
		slices.SortStableFunc(list, func(a, b use) int { return a.addr.Compare(b.addr) })
	}
	return uses, errs
}

// within are the uses of a range, of a list in order.
func within(uses []use, r netipx.IPRange) []use {
	byAddr := func(u use, addr netip.Addr) int { return u.addr.Compare(addr) }
	first, _ := slices.BinarySearchFunc(uses, r.From(), byAddr)
	end := first
	for end < len(uses) && uses[end].addr.Compare(r.To()) <= 0 {
		end++
	}
	return uses[first:end]
}

// runsOf shows the runs of a ledger, each use of an address by itself.
func runsOf(ledger *ipam.Ledger, uses []use, known bool) []AddressRun {
	var runs []AddressRun
	for run := range ledger.Runs() {
		next := run.From() // first that is not shown yet; invalid beyond the run
		for _, u := range within(uses, run.IPRange) {
			if run.Quarantine != nil {
				break
			}
			if next.IsValid() && next.Less(u.addr) {
				runs = append(runs, shown(ledger, &run, netipx.IPRangeFrom(next, u.addr.Prev()), known))
			}
			used := shown(ledger, &run, netipx.IPRangeFrom(u.addr, u.addr), known)
			used.State, used.Pod, used.Interface = StateUsed, u.pod, u.nic
			runs = append(runs, used)
			if next = u.addr.Next(); u.addr == run.To() {
				next = netip.Addr{}
			}
		}
		if next.IsValid() {
			runs = append(runs, shown(ledger, &run, netipx.IPRangeFrom(next, run.To()), known))
		}
	}
	return runs
}

// shown is a part of a run that no pod has.
func shown(ledger *ipam.Ledger, run *ipam.Run, part netipx.IPRange, known bool) AddressRun {
	r := AddressRun{
		Pool: ledger.Pool, Addresses: ipam.FormatRange(part), Count: ipam.Size(part), State: StateReserve,
		Node: run.Node, Target: run.Target, Identity: run.Identity, Doubtful: run.Doubtful, Epoch: run.Epoch,
	}
	switch {
	case run.Quarantine != nil:
		r.State, r.Reason, r.Since, r.Pod = StateQuarantined, run.Quarantine.Reason, &run.Quarantine.Since, run.Quarantine.Pod
	case !known && run.Node != "":
		r.State = StateHeld
	case run.Identity != "":
		r.State = StatePinned
	}
	return r
}

// unheld are addresses that pods have and no ledger knows of, as those of before
// there were ledgers.
func unheld(uses map[string][]use, ledgers map[string][]*ipam.Ledger) []AddressRun {
	var runs []AddressRun
	for pool, list := range uses {
		for _, u := range list {
			isAt := func(l *ipam.Ledger) bool {
				_, ok := l.At(u.addr)
				return ok
			}
			if slices.ContainsFunc(ledgers[pool], isAt) {
				continue
			}
			runs = append(runs, AddressRun{
				Pool: pool, Addresses: u.addr.String(), Count: 1, State: StateUsed, Node: u.node, Pod: u.pod, Interface: u.nic,
			})
		}
	}
	return runs
}

// firstOf is the first address of a range that was formatted.
func firstOf(addresses string) netip.Addr {
	r, err := ipam.ParseRange(addresses)
	if err != nil { // it was formatted of one
		return netip.Addr{}
	}
	return r.From()
}
