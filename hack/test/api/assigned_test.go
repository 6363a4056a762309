package api

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"railhead/internal/ipam/holder"
)

// assigned is the test's own record of the addresses that pods were told that they
// have. It knows nothing of ledgers, leases and journals.
type assigned struct {
	mu   sync.Mutex
	has  map[netip.Addr]string // pod
	most int                   // addresses at once
}

func newAssigned() *assigned { return &assigned{has: map[netip.Addr]string{}} }

// assign notes what a pod was told, which is an error if another pod was told the
// same and did not begin to end since.
func (b *assigned) assign(t *testing.T, pod string, addresses ...netip.Addr) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range addresses {
		if other, isHeld := b.has[a]; isHeld && other != pod {
			t.Errorf("%s was given to %s while %s has it", a, pod, other)
		}
		b.has[a] = pod
	}
	b.most = max(b.most, len(b.has))
}

// unassign strikes out what a pod has. It is called before anybody is told that the pod ends.
func (b *assigned) unassign(pod string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.has, func(_ netip.Addr, other string) bool { return other == pod })
}

// addressesOf are the addresses of an assignment.
func addressesOf(a holder.Assignment) []netip.Addr {
	var all []netip.Addr
	for _, g := range a.Addresses {
		all = append(all, g.Prefix.Addr())
	}
	return all
}

// all are the addresses that pods have, with the pods.
func (b *assigned) all() map[netip.Addr]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.has)
}

// inNamespaces are the addresses in the namespaces of a directory, with the
// namespaces. An address in two of them is an error.
func inNamespaces(t *testing.T, dir string) map[netip.Addr]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[netip.Addr]string{}
	for _, file := range files {
		addresses, err := addressesIn(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			if other, isThere := found[a]; isThere {
				t.Errorf("%s is in the namespaces %s and %s", a, other, file)
			}
			found[a] = filepath.Base(file)
		}
	}
	return found
}

func sortedAddresses[V any](m map[netip.Addr]V) []string {
	var list []string
	for _, a := range slices.SortedFunc(maps.Keys(m), netip.Addr.Compare) {
		list = append(list, fmt.Sprint(a))
	}
	return list
}
