package holder

// Forget has the next Sync read the lease live: it was deleted, or what is known
// of it may be wrong for another reason (R8).
func (h *Holder) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unread = true
}
