package modeltest

import (
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
	"railhead/internal/ipam/holder"
)

// wellFormedRuns is what the CRD and its documentation ask, by other code than
// that of the product.
func wellFormedRuns(l *v1alpha1.PoolLedger) error {
	part, err := netipx.ParseIPRange(l.Spec.Part)
	if err != nil {
		return fmt.Errorf("part %q: %w", l.Spec.Part, err)
	}
	if len(l.Spec.Runs) > ipam.PartSize {
		return fmt.Errorf("%d runs", len(l.Spec.Runs))
	}
	var last netip.Addr
	for i, r := range l.Spec.Runs {
		at, err := ipam.ParseRange(r.Addresses)
		switch {
		case err != nil:
			return fmt.Errorf("run %d: %w", i, err)
		case !part.Contains(at.From()) || !part.Contains(at.To()):
			return fmt.Errorf("run %s is out of part %s", r.Addresses, l.Spec.Part)
		case last.IsValid() && !last.Less(at.From()):
			return fmt.Errorf("run %s is not behind %s", r.Addresses, last)
		case r.Epoch > l.Spec.Epoch:
			return fmt.Errorf("run %s has epoch %d", r.Addresses, r.Epoch)
		case r.Quarantine != nil && (r.Node != "" || r.Identity != ""), r.Quarantine == nil && r.Node == "" && r.Identity == "":
			return fmt.Errorf("run %s has no holder, or two kinds", r.Addresses)
		case r.Target != "" && r.Identity == "":
			return fmt.Errorf("run %s has a target and no identity", r.Addresses)
		}
		last = at.To()
	}
	return nil
}

// checkAnswer holds an answer against what was asked.
func (w *world) checkAnswer(r *podRun, q holder.Request, a holder.Assignment) {
	if bad := w.badAnswer(r, q, a); bad != nil {
		w.fail(fmt.Errorf("answer to %s on %s, %v: %w", q.Pod, r.m, a.Addresses, bad))
	}
}

func (w *world) badAnswer(r *podRun, q holder.Request, a holder.Assignment) error {
	if a.Key != q.Key || a.Pod != q.Pod {
		return fmt.Errorf("it is for %v of %s", a.Key, a.Pod)
	}
	left := slices.Clone(a.Addresses)
	seen := map[netip.Addr]bool{}
	for _, nic := range q.NICs {
		for _, ch := range nic.Choices {
			i := slices.IndexFunc(left, func(g holder.Assigned) bool { return g.Interface == nic.Interface && fits(g, ch) })
			if i < 0 {
				return fmt.Errorf("%s has nothing of %v", nic.Interface, ch.Pools)
			}
			g := left[i]
			left = slices.Delete(left, i, i+1)
			addr := g.Prefix.Addr()
			switch {
			case seen[addr]:
				return fmt.Errorf("%s has %s, and another interface, too", nic.Interface, addr)
			case ch.Exact.IsValid() && addr != ch.Exact:
				return fmt.Errorf("%s has %s, and not %s", nic.Interface, addr, ch.Exact)
			case !w.cluster.ever[g.Pool].Contains(addr):
				return fmt.Errorf("%s was never in pool %s", addr, g.Pool)
			}
			seen[addr] = true
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("nobody asked for %v", left)
	}
	if b := r.answer; b != nil && b.Key == a.Key && r.losses == r.m.losses && !slices.Equal(places(*b), places(a)) {
		return fmt.Errorf("a repeated ADD got %v before", b.Addresses)
	}
	return nil
}

func fits(g holder.Assigned, ch holder.Choice) bool {
	return slices.ContainsFunc(ch.Pools, func(p holder.PoolRef) bool {
		return p.Name == g.Pool && p.Subnet.Contains(g.Prefix.Addr()) && p.Subnet.Bits() == g.Prefix.Bits()
	})
}

func places(a holder.Assignment) []string {
	var all []string
	for _, g := range a.Addresses {
		all = append(all, fmt.Sprint(g.Interface, g.Pool, g.Prefix))
	}
	slices.Sort(all)
	return all
}

// choosy says whether a pod may have another pool next time.
func choosy(pod *podObject) bool {
	return slices.ContainsFunc(pod.nics, func(n holder.NIC) bool {
		return slices.ContainsFunc(n.Choices, func(c holder.Choice) bool { return len(c.Pools) > 1 })
	})
}

// checkPins holds what an identity got against what it had. A pool that it
// has nothing of anymore is one that it could choose not to take.
func (w *world) checkPins(pod *podObject, before, now map[string][]netip.Addr) {
	for _, pool := range sorted(before) {
		if choosy(pod) && len(now[pool]) == 0 {
			continue
		}
		if !slices.Equal(before[pool], now[pool]) {
			w.fail(fmt.Errorf("%s of %s has %v of pool %s, and had %v", pod.identity, pod.name, now[pool], pool, before[pool]))
		}
	}
}

// publish writes the endpoint of a pod, now or later.
func (w *world) publish(m *machine, a holder.Assignment) {
	put := func() {
		if p := w.api.pods.live[a.Pod.String()]; p != nil && p.uid == a.PodUID {
			w.api.uses.put(a.Pod.String(), &use{pod: a.Pod, node: m.name, given: a})
		}
	}
	if m.agent.cut || w.api.down || w.chance(30) {
		w.later(put)
		return
	}
	put()
}

// checkBooks holds what a new run of the agent knows, if it says that it knows
// all, against the kernel: nothing that was answered is forgotten.
func (m *machine) checkBooks(h *holder.Holder) {
	if h.Ready() != nil {
		return
	}
	known := map[netip.Addr]types.UID{} // pods: a sandbox that never came up may have taken over
	for _, a := range h.Assignments() {
		for _, g := range a.Addresses {
			known[g.Prefix.Addr()] = a.PodUID
		}
	}
	for _, s := range m.boxes {
		for _, addr := range s.addresses {
			if known[addr] != s.pod.uid && s.losses == m.losses {
				m.w.fail(fmt.Errorf("%s was answered to %s, and the journal says %q has it", addr, s, known[addr]))
			}
		}
	}
}
