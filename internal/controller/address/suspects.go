package address

import "time"

// suspects are things that seem to be gone, by when they first did. One that is
// seen again in between is a suspect no more.
type suspects[K comparable] struct {
	doubt time.Duration
	since map[K]time.Time
	seen  map[K]struct{} // in this look
}

func newSuspects[K comparable](doubt time.Duration) *suspects[K] {
	return &suspects[K]{doubt: doubt, since: map[K]time.Time{}, seen: map[K]struct{}{}}
}

// missing notes that a thing is not there, and says whether it was not there
// long enough for the API server to be asked.
func (s *suspects[K]) missing(key K, now time.Time) bool {
	s.seen[key] = struct{}{}
	first, ok := s.since[key]
	if !ok {
		s.since[key] = now
		return false
	}
	return now.Sub(first) >= s.doubt
}

// there notes that a thing is there after all.
func (s *suspects[K]) there(key K) { delete(s.since, key) }

// looked ends a look: what nobody asked about in it is forgotten.
func (s *suspects[K]) looked() {
	for key := range s.since {
		if _, ok := s.seen[key]; !ok {
			delete(s.since, key)
		}
	}
	clear(s.seen)
}
