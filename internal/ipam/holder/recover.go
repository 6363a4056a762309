package holder

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/ipam/journal"
)

// journalName is the file's name.
const journalName = "addresses.journal"

// Open reads the journal of a node. If it is whole and of this boot, the holder
// serves at once; else see Ready. The error is of reading alone: a disk that
// cannot be written refuses assignments later.
func Open(d journal.Disk, o Options) (*Holder, error) {
	j, records, damage, err := journal.Open[record](d, journalName)
	if err != nil {
		return nil, err
	}
	h := empty(o, j)
	h.why = h.unusable(records, damage)
	if h.why == "" {
		for _, r := range records {
			h.apply(r)
		}
	}
	if h.why == "" && h.ready { // R7: it knows all that was ever answered
		h.told, h.announced = true, true
		return h, nil
	}
	if h.why == "" {
		h.why = "an earlier run of this boot lost the journal, and did not come to use addresses"
	}
	fresh := empty(o, j)
	fresh.why, fresh.session = h.why, o.Session
	fresh.behind = true
	_ = fresh.compact() // if it fails, it is tried again before anything is assigned
	return fresh, nil
}

// empty is a holder of nothing.
func empty(o Options, j *journal.Journal[record]) *Holder {
	return &Holder{
		options: o, journal: j, unread: true, compactAt: compactFrom,
		limbo: map[string]map[netip.Addr]bool{}, pools: map[string]*pool{}, pods: map[types.UID]*entry{},
		strays: map[netip.Addr]string{}, waits: map[types.UID]*wait{}, subnets: map[string]netip.Prefix{},
		excess: map[string]time.Time{},
	}
}

// unusable says why records are not of this boot of this node, or not all.
func (h *Holder) unusable(records []record, damage journal.Damage) string {
	if damage == journal.DamageCorrupt {
		return "the journal is corrupt"
	}
	if len(records) == 0 || records[0].Opened == nil {
		return "there is no journal"
	}
	switch of := records[0].Opened; {
	case of.NodeUID != h.options.UID || of.Node != h.options.Node:
		return fmt.Sprintf("the journal is of node %s with UID %s", of.Node, of.NodeUID)
	case of.BootID != h.options.BootID:
		return "the node was started since"
	}
	return ""
}

// Ready returns nil if the holder may assign, else ErrNotReady and what is
// missing.
func (h *Holder) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.notReady()
}

func (h *Holder) notReady() error {
	switch {
	case h.ready:
		return nil
	case !h.announced:
		return fmt.Errorf("%w: %s, and the API server has not heard of it yet", ErrNotReady, h.why)
	case !h.told:
		return fmt.Errorf("%w: %s, and which addresses pods use is not known yet", ErrNotReady, h.why)
	}
	return fmt.Errorf("%w: %w", ErrNotReady, ErrDisk)
}

// begin lets the holder assign once both conditions of R7 are met.
func (h *Holder) begin() {
	if h.ready || !h.announced || !h.told {
		return
	}
	if _, err := h.commit(record{Ready: true}); err == nil {
		h.notify()
	}
}

// Occupied tells which addresses are in pods' namespaces, and where: all of
// them. What no assignment names is held back, until a later call lacks it.
func (h *Holder) Occupied(inUse map[netip.Addr]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := maps.Clone(inUse)
	for _, e := range h.pods {
		for _, given := range e.Addresses {
			delete(found, given.Prefix.Addr())
		}
	}
	if found == nil {
		found = map[netip.Addr]string{}
	}
	if !maps.Equal(found, h.strays) {
		if _, err := h.commitAnyway(record{Strays: &strays{found}}); err == nil {
			h.notify()
		}
	}
	h.told = true
	h.begin()
}

// Adopt takes an assignment from what was published of a pod. One that the
// holder knows already is left as it is.
func (h *Holder) Adopt(a Assignment) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pods[a.PodUID] != nil {
		return nil
	}
	var errs []error
	for _, given := range a.Addresses {
		if !given.Prefix.IsValid() || given.Pool == "" {
			errs = append(errs, fmt.Errorf("pod %s: interface %s: %q of pool %q is no address with a length of a pool", a.Pod, given.Interface, given.Prefix, given.Pool))
			continue
		}
		if p := h.pools[given.Pool]; p != nil {
			if s := p.slots[given.Prefix.Addr()]; s != nil && s.user != nil {
				errs = append(errs, fmt.Errorf("pod %s: %s of pool %s is in use by pod %s", a.Pod, given.Prefix.Addr(), given.Pool, s.user.Pod))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return h.adopt(a)
}

func (h *Holder) adopt(a Assignment) error {
	if a.Sequence == 0 {
		a.Sequence = h.sequence + 1
	}
	left := maps.Clone(h.strays)
	for _, given := range a.Addresses {
		delete(left, given.Prefix.Addr())
	}
	r := record{Assigned: &a}
	if len(left) != len(h.strays) {
		r.Strays = &strays{left}
	}
	_, err := h.commitAnyway(r)
	return err
}
