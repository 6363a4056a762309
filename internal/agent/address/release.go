package address

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"railhead/internal/ipam/holder"
)

// Vouch says that the doubtful addresses of a pod's sandbox were probed on the
// wire, and that nobody answered: they are in doubt no more when it is released.
func (s *Service) Vouch(key holder.Key) {
	if s.isOpen() {
		s.holder.Vouch(key)
	}
}

// Release takes back what a pod's sandbox has, and returns it. It does nothing
// where that has nothing, or where sequence, unless it is 0, is another than that
// of what it has. Addresses in quarantine are given back, with that reason. It
// asks no API server, and takes no space on the disk. Before the journal was read
// it waits for that, a minute at most.
func (s *Service) Release(ctx context.Context, key holder.Key, sequence uint64, quarantine map[netip.Addr]string) error {
	ctx, cancel := context.WithTimeout(ctx, waitMost)
	defer cancel()
	if err := s.awaitOpen(ctx); err != nil {
		return fmt.Errorf("addresses of pod %s: %w", key.PodUID, err)
	}
	return s.release(key, sequence, quarantine)
}

// release is Release of what is open. Where the disk is full, memory has it: a
// crash would undo it, and then the pod is found to be gone once more.
func (s *Service) release(key holder.Key, sequence uint64, quarantine map[netip.Addr]string) error {
	s.using.RLock()
	defer s.using.RUnlock()
	if s.hasEnded() {
		return errEnded
	}
	a, had, err := s.holder.Release(key, sequence, quarantine)
	if had {
		s.publish.released(&a)
		s.syncer.soon()
	}
	if had && errors.Is(err, holder.ErrDisk) {
		s.log.Warn("a release is not on the disk yet: its addresses are given to nobody until it is", "pod", a.Pod, "error", err)
		return nil
	}
	return err
}
