package holder

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// wait is a pod that needs addresses and has none yet.
type wait struct {
	Request
	given  []NIC    // as it was asked for, before Request put pools first (homed)
	asked  bool     // Assign was called, and not just Expect
	passed []int    // of each choice: so many pools said that they are short
	since  []uint64 // of each choice: the change from which its pool was waited for
}

// Expect tells of a pod on its way here, so that its addresses are fetched.
func (h *Holder) Expect(r Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pods[r.PodUID] == nil && h.waits[r.PodUID] == nil {
		h.expect(h.homed(r)).given = r.NICs
	}
}

// Abandon tells that a pod comes no more, or that an attempt is over. Without a
// sandbox it is all attempts of the pod.
func (h *Holder) Abandon(key Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waits[key.PodUID]
	if w == nil || key.Sandbox != "" && w.Sandbox != "" && w.Sandbox != key.Sandbox {
		return
	}
	delete(h.waits, key.PodUID)
	h.touch()
}

// expect begins to wait. What an earlier request of the pod waited for is kept
// where it asked for the same.
func (h *Holder) expect(r Request) *wait {
	for i := range r.NICs {
		for _, c := range r.NICs[i].Choices {
			for _, ref := range c.Pools {
				h.learn(ref)
			}
		}
	}
	w := h.waits[r.PodUID]
	if w != nil && sameNeeds(&w.Request, &r) {
		w.Request = r
		return w
	}
	h.touch()
	n := len(r.picks())
	w = &wait{Request: r, passed: make([]int, n), since: slices.Repeat([]uint64{h.changes}, n)}
	h.waits[r.PodUID] = w
	return w
}

// ask begins to wait in earnest.
func (h *Holder) ask(r Request) *wait {
	w := h.expect(r)
	w.asked = true
	return w
}

// sameNeeds says whether two requests are for the same addresses.
func sameNeeds(a, b *Request) bool {
	return a.Identity == b.Identity && a.Migration == b.Migration && sameNICs(a.NICs, b.NICs)
}

func sameNICs(a, b []NIC) bool {
	return slices.EqualFunc(a, b, func(x, y NIC) bool {
		return x.Interface == y.Interface && slices.EqualFunc(x.Choices, y.Choices, func(c, d Choice) bool {
			return c.Exact == d.Exact && slices.Equal(c.Pools, d.Pools)
		})
	})
}

// answeredShort says whether the controller knew of a need and says that the
// pool cannot meet it.
func (h *Holder) answeredShort(name string, since uint64) bool {
	return h.wrote >= since && h.lease != nil && h.seen != nil && h.seen.NodeUID == h.options.UID &&
		h.lease.Status.ObservedGeneration >= h.lease.Generation &&
		h.pools[name] != nil && h.pools[name].lent.Short != ""
}

// waited is a choice that a pod waits for, and its pool.
type waited struct {
	*wait
	choice *Choice
	pool   string
}

// waiting lists all choices that are waited for, in order of pods.
func (h *Holder) waiting() []waited {
	var all []waited
	for _, uid := range h.waitingPods() {
		w := h.waits[uid]
		for i, p := range w.picks() {
			if len(p.choice.Pools) > 0 {
				all = append(all, waited{w, p.choice, p.choice.pool(w.passed[i])})
			}
		}
	}
	return all
}

// pool is the pool that is waited for after so many were passed over.
func (c *Choice) pool(passed int) string {
	if c.Exact.IsValid() {
		for _, ref := range c.Pools[min(passed, len(c.Pools)-1):] {
			if ref.Subnet.Contains(c.Exact) {
				return ref.Name
			}
		}
	}
	return c.Pools[min(passed, len(c.Pools)-1)].Name
}

func (h *Holder) waitingPods() []types.UID {
	uids := make([]types.UID, 0, len(h.waits))
	for uid := range h.waits {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}
