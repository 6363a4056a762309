package holder

import (
	"maps"
	"slices"
)

// Stats is counts for metrics.
type Stats struct {
	Pools        []PoolStats // by name
	Assignments  int
	Waiting      int // pods that asked and got nothing yet
	Strays       int // addresses in pods' namespaces that no assignment names
	JournalBytes int64
}

// PoolStats counts addresses of a pool.
type PoolStats struct {
	Pool      string
	Granted   int
	Used      int
	Free      int // may be assigned now
	Pinned    int // granted to identities, in use or not
	Returning int
	// Conflicts are in use without a grant: the store was set back, or the node
	// was fenced while it ran.
	Conflicts int
	Reserve   int64
	Recall    int64
	Short     string
}

// Stats returns counts of this moment.
func (h *Holder) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Stats{Assignments: len(h.pods), Strays: len(h.strays), JournalBytes: h.journal.Size()}
	for _, w := range h.waits {
		if w.asked {
			s.Waiting++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.pools)) {
		s.Pools = append(s.Pools, h.pools[name].stats())
	}
	return s
}

// stats counts addresses of a pool.
func (p *pool) stats() PoolStats {
	s := PoolStats{Pool: p.name, Free: len(p.free), Reserve: p.lent.Reserve, Recall: p.lent.Recall, Short: p.lent.Short}
	for _, a := range p.slots {
		s.Granted += count(a.granted())
		s.Used += count(a.user != nil)
		s.Pinned += count(a.granted() && a.identity != "")
		s.Returning += count(a.returning)
		s.Conflicts += count(a.user != nil && !a.granted())
	}
	return s
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
