package address

import "railhead/internal/ipam/holder"

// Waiting says what a pod waits for that is in [Service.Assign] now: the pools that
// have no address for it and why, that the controller was asked, or why it cannot
// be. nil where the pod does not wait.
func (s *Service) Waiting(key holder.Key) error {
	s.mu.Lock()
	why := s.waiting[key]
	s.mu.Unlock()
	if why == nil {
		return nil
	}
	return why()
}

// waits notes what a pod waits for from now on.
func (s *Service) waits(key holder.Key, why func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[key] = why
}

// waitsNoMore notes that a pod has its answer.
func (s *Service) waitsNoMore(key holder.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, key)
}
