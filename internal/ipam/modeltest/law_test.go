package modeltest

import (
	"fmt"
	"net/netip"
	"slices"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// stored carries out a write of a ledger, and holds it against the law: it is
// well-formed, every address that leaves a node leaves it for a reason, and
// every grant has an epoch that the address never had before.
func (w *world) stored(before, l *v1alpha1.PoolLedger, write func(*v1alpha1.PoolLedger) (*v1alpha1.PoolLedger, error)) (*v1alpha1.PoolLedger, error) {
	now, err := write(l)
	if err != nil {
		return now, err
	}
	bad := wellFormedRuns(now)
	if bad == nil {
		bad = w.lawful(before, now)
	}
	if bad != nil {
		w.fail(fmt.Errorf("ledger %s at epoch %d: %w", l.Name, l.Spec.Epoch, bad))
	}
	return now, nil
}

func byAddress(l *v1alpha1.PoolLedger) map[netip.Addr]v1alpha1.Run {
	all := map[netip.Addr]v1alpha1.Run{}
	if l == nil {
		return all
	}
	for _, r := range l.Spec.Runs {
		at, err := ipam.ParseRange(r.Addresses)
		if err != nil {
			continue
		}
		for addr := at.From(); ; addr = addr.Next() {
			if all[addr] = r; addr == at.To() {
				break
			}
		}
	}
	return all
}

func (w *world) lawful(before, now *v1alpha1.PoolLedger) error {
	old, to := byAddress(before), byAddress(now)
	addresses := sortedAddrs(to)
	for _, addr := range sortedAddrs(old) {
		if _, ok := to[addr]; !ok {
			addresses = append(addresses, addr)
		}
	}
	for _, addr := range addresses {
		a, b := old[addr], to[addr]
		for _, node := range []string{a.Node, a.Target} {
			if node == "" || node == b.Node || node == b.Target {
				continue
			}
			if b.Quarantine == nil && !b.Doubtful && !w.mayTake(now.Spec.Pool, node, addr, a.Epoch) {
				return fmt.Errorf("%s is taken from %s, which neither returned it with epoch %d nor was fenced", addr, node, a.Epoch)
			}
		}
		for _, node := range []string{b.Node, b.Target} {
			if node == "" || node == a.Node || node == a.Target {
				continue
			}
			if most := w.epochs[addr]; b.Epoch <= most && before != nil {
				return fmt.Errorf("%s is granted to %s with epoch %d, and had %d before", addr, node, b.Epoch, most)
			}
		}
		if b.Node != "" {
			w.epochs[addr] = max(w.epochs[addr], b.Epoch)
		}
	}
	return nil
}

func sortedAddrs(m map[netip.Addr]v1alpha1.Run) []netip.Addr {
	all := make([]netip.Addr, 0, len(m))
	for addr := range m {
		all = append(all, addr)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// mayTake says whether an address may be taken from a node: it ever returned it
// with the epoch, or was fenced.
func (w *world) mayTake(pool, node string, addr netip.Addr, epoch int64) bool {
	for _, e := range slices.Backward(w.api.leases.events) {
		if e.name != node || e.gone {
			continue
		}
		if e.to.Annotations[v1alpha1.AnnotationFenced] != "" {
			return true
		}
		for _, r := range e.to.Spec.Returns {
			set, err := ipam.ParseRanges(r.Addresses)
			if err == nil && r.Pool == pool && r.Epoch == epoch && set.Contains(addr) {
				return true
			}
		}
	}
	return slices.ContainsFunc(w.api.nodes.events, func(e event[*nodeObject]) bool {
		return e.name == node && !e.gone && e.to.fenced
	})
}

// forgetEpochs is the end of a ledger: one made again counts anew.
func (w *world) forgetEpochs(l *v1alpha1.PoolLedger) {
	part, err := ipam.ParseRange(l.Spec.Part)
	if err != nil {
		w.fail(err)
		return
	}
	for addr := range w.epochs {
		if part.Contains(addr) {
			delete(w.epochs, addr)
		}
	}
}
