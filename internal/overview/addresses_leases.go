package overview

import (
	"fmt"
	"maps"
	"slices"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// byEpoch are addresses by the epoch of their grant, in any order.
type byEpoch map[int64][]netipx.IPRange

// ofLeases finds what leases show otherwise than ledgers.
func ofLeases(leases []*v1alpha1.AddressLease, ledgers map[string][]*ipam.Ledger) []Conflict {
	given := givenByNode(ledgers)
	var conflicts []Conflict
	for _, lease := range leases {
		shown, wrong := shownBy(lease)
		conflicts = append(conflicts, wrong...)
		pools := slices.Collect(maps.Keys(shown))
		pools = append(pools, slices.Collect(maps.Keys(given[lease.Name]))...)
		slices.Sort(pools)
		for _, pool := range slices.Compact(pools) {
			conflicts = append(conflicts, differ(lease.Name, pool, shown[pool], given[lease.Name][pool])...)
		}
		delete(given, lease.Name)
	}
	for _, node := range slices.Sorted(maps.Keys(given)) {
		for _, pool := range slices.Sorted(maps.Keys(given[node])) {
			conflicts = append(conflicts, leaseConflicts(node, pool, all(given[node][pool]),
				fmt.Sprintf("the ledger gives it to node %s, and there is no AddressLease %s", node, node))...)
		}
	}
	return conflicts
}

// givenByNode is what ledgers give, by node and pool.
func givenByNode(ledgers map[string][]*ipam.Ledger) map[string]map[string]byEpoch {
	given := map[string]map[string]byEpoch{}
	for pool, list := range ledgers {
		for _, l := range list {
			for run := range l.Runs() {
				for _, node := range nodesOnce(run.Node, run.Target) {
					if given[node] == nil {
						given[node] = map[string]byEpoch{}
					}
					if given[node][pool] == nil {
						given[node][pool] = byEpoch{}
					}
					given[node][pool][run.Epoch] = append(given[node][pool][run.Epoch], run.IPRange)
				}
			}
		}
	}
	return given
}

// shownBy is what a lease's status grants, by pool.
func shownBy(lease *v1alpha1.AddressLease) (map[string]byEpoch, []Conflict) {
	var wrong []Conflict
	shown := map[string]byEpoch{}
	for _, pool := range lease.Status.Pools {
		for _, g := range pool.Grants {
			set, err := ipam.ParseRanges(g.Addresses)
			if err != nil {
				wrong = append(wrong, Conflict{
					Kind: ConflictLease, Pool: pool.Pool, Nodes: []string{lease.Name},
					Message: fmt.Sprintf("the status of AddressLease %s cannot be understood: %v", lease.Name, err),
				})
				continue
			}
			if shown[pool.Pool] == nil {
				shown[pool.Pool] = byEpoch{}
			}
			shown[pool.Pool][g.Epoch] = append(shown[pool.Pool][g.Epoch], set.Ranges()...)
		}
	}
	return shown, wrong
}

// differ says in what a lease and the ledgers of a pool differ.
func differ(node, pool string, shown, given byEpoch) []Conflict {
	conflicts := leaseConflicts(node, pool, ipam.Without(all(shown), all(given)),
		fmt.Sprintf("AddressLease %s shows it, and the ledger does not give it to node %s", node, node))
	conflicts = append(conflicts, leaseConflicts(node, pool, ipam.Without(all(given), all(shown)),
		fmt.Sprintf("the ledger gives it to node %s, and AddressLease %s does not show it", node, node))...)
	for _, epoch := range slices.Sorted(maps.Keys(shown)) {
		inBoth := ipam.Common(ipam.Merged(shown[epoch]), all(given))
		conflicts = append(conflicts, leaseConflicts(node, pool, ipam.Without(inBoth, ipam.Merged(given[epoch])),
			fmt.Sprintf("AddressLease %s shows it by epoch %d, and the ledger gives it by another", node, epoch))...)
	}
	return conflicts
}

// all are the addresses of all epochs, merged and in order.
func all(ranges byEpoch) []netipx.IPRange {
	return ipam.Merged(slices.Concat(slices.Collect(maps.Values(ranges))...))
}

func leaseConflicts(node, pool string, ranges []netipx.IPRange, message string) []Conflict {
	conflicts := make([]Conflict, len(ranges))
	for i, r := range ranges {
		conflicts[i] = Conflict{Kind: ConflictLease, Pool: pool, Addresses: ipam.FormatRange(r), Nodes: []string{node}, Message: message}
	}
	return conflicts
}
