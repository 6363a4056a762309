package holder

import (
	"cmp"
	"net/netip"
	"slices"

	"railhead/api/railhead/v1alpha1"
)

// Release ends an assignment and returns it; false says that there was none, or
// a later one: nothing is freed then. An empty sandbox or a sequence of 0 is
// any. Addresses to quarantine, by reason, are given back and used no more.
//
// The release holds even with ErrDisk, which says that a crash may undo it (R11).
func (h *Holder) Release(key Key, sequence uint64, quarantine map[netip.Addr]string) (Assignment, bool, error) {
	a, position, err := h.release(key, sequence, quarantine)
	if a == nil {
		return Assignment{}, false, nil
	}
	if err == nil {
		err = h.sync(position)
	}
	return *a, true, err
}

// Vouch says that the doubtful addresses of an assignment were probed, and that
// nobody answered. Addresses that were not vouched for stay in doubt when they
// are given back.
func (h *Holder) Vouch(key Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.pods[key.PodUID]
	if e == nil || key.Sandbox != e.Sandbox {
		return
	}
	for _, given := range e.Addresses {
		if p := h.pools[given.Pool]; p != nil && p.slots[given.Prefix.Addr()] != nil {
			s := p.slots[given.Prefix.Addr()]
			s.vouched = s.at
		}
	}
}

// release frees and appends.
func (h *Holder) release(key Key, sequence uint64, quarantine map[netip.Addr]string) (*Assignment, int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.pods[key.PodUID]
	if e == nil || key.Sandbox != "" && key.Sandbox != e.Sandbox || sequence != 0 && sequence != e.Sequence {
		return nil, 0, nil
	}
	position, err := h.commitAnyway(record{
		Released: &released{e.Key, e.Sequence},
		Returned: h.left(e, quarantine),
	})
	h.notify()
	if h.pressed(e) {
		h.balance()
	}
	return e.Assignment, position, err
}

// left is what an assignment leaves that nobody else here may have: what
// is pinned to its identity (R12), and what is in doubt.
func (h *Holder) left(e *entry, quarantine map[netip.Addr]string) []v1alpha1.Return {
	var returns []v1alpha1.Return
	for _, given := range e.Addresses {
		p, s := h.slot(given.Pool, given.Prefix.Addr())
		why := cmp.Or(quarantine[s.addr], s.whyReturned())
		if s.user == e && s.shown && !s.returning && (quarantine[s.addr] != "" || s.identity != "") {
			returns = append(returns, v1alpha1.Return{
				Pool: p.name, Epoch: s.at, Addresses: []string{s.addr.String()}, Quarantine: clipped(why),
			})
		}
	}
	return returns
}

// pressed says whether the controller would like addresses back of pools that
// an assignment had some of.
func (h *Holder) pressed(e *entry) bool {
	return slices.ContainsFunc(e.Addresses, func(given Assigned) bool {
		p := h.pools[given.Pool]
		return p != nil && (p.lent.Recall > 0 || len(p.lent.Revoke) > 0)
	})
}

// clipped is as much of a reason as a lease takes.
func clipped(why string) string {
	const most = 256
	return why[:min(len(why), most)]
}
