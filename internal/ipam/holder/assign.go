package holder

import (
	"fmt"
	"slices"
)

// Assign gives a pod all the addresses of a request or none, and returns once
// that is on disk. The same key gets the same answer again; a new sandbox of
// the pod takes over what the earlier one had.
//
// Errors are *ShortError, ErrNotReady and ErrDisk.
func (h *Holder) Assign(r Request) (Assignment, error) {
	e, err := h.assign(r)
	if err != nil {
		return Assignment{}, err
	}
	// R5: on disk before the answer. Callers share the sync.
	if err := h.journal.Sync(e.position); err != nil {
		h.undo(e)
		return Assignment{}, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return e.answer(), nil
}

// assign gives a request what it asks for, or has it wait.
func (h *Holder) assign(r Request) (*entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.take(h.homed(r))
	if w := h.waits[r.PodUID]; w != nil {
		w.given = r.NICs
	}
	return e, err
}

// take chooses and appends.
func (h *Holder) take(r Request) (*entry, error) {
	if err := h.notReady(); err != nil { // R7
		h.expect(r)
		return nil, err
	}
	old := h.pods[r.PodUID]
	if old != nil && old.Sandbox == r.Sandbox {
		return old, nil
	}
	picks, err := h.choose(r, old)
	if err != nil {
		return nil, err
	}
	a := h.assignment(r, picks)
	position, err := h.commit(record{Assigned: a})
	if err != nil {
		return nil, err
	}
	delete(h.waits, r.PodUID)
	e := h.pods[r.PodUID]
	e.position = position
	if e.before = old; old != nil {
		old.before = nil
	}
	return e, nil
}

// assignment is what was picked, as the pod's.
func (h *Holder) assignment(r Request, picks []pick) *Assignment {
	a := &Assignment{
		Key: r.Key, Pod: r.Pod, Identity: r.Identity, Sequence: h.sequence + 1,
		At: h.options.Now(), Addresses: make([]Assigned, len(picks)),
	}
	for i := range picks {
		a.Addresses[i] = picks[i].assigned()
	}
	return a
}

// undo takes back an assignment that did not reach the disk. The disk may have
// it all the same, so only a journal written anew without it will do, and what
// is free by that is used only then.
func (h *Holder) undo(e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pods[e.PodUID] != e {
		return // released, or taken over meanwhile
	}
	r := record{Released: &released{e.Key, e.Sequence}}
	if e.before != nil {
		r = record{Assigned: e.before.Assignment} // its sandbox may live
	}
	h.behind = true
	h.apply(r)
	_ = h.compact()
}

// answer is the assignment for somebody outside.
func (e *entry) answer() Assignment {
	a := *e.Assignment
	a.Addresses = slices.Clone(a.Addresses)
	return a
}
