package address

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
)

// Ready returns why no pod can be given addresses now; nil where one can. That
// the API server is away is no reason while the journal is intact: pods are given
// what the node has.
func (s *Service) Ready() error {
	if s.hasEnded() {
		return errEnded
	}
	if !s.isOpen() {
		return s.whyNotOpen()
	}
	err := s.holder.Ready()
	if err == nil {
		return nil
	}
	for _, why := range []error{s.blocked(), s.whyBlind()} {
		if why != nil {
			err = fmt.Errorf("%w; %w", err, why)
		}
	}
	return err
}

// inUse asks which addresses are in use, and notes why that cannot be told.
func (s *Service) inUse() (map[netip.Addr]string, error) {
	used, err := s.config.InUse()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking = err
	return used, err
}

// whyBlind says why it is not known which addresses are in use; nil if it is.
func (s *Service) whyBlind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looking
}

// isOpen tells whether the journal was read.
func (s *Service) isOpen() bool {
	select {
	case <-s.opened:
		return true
	default:
		return false
	}
}

// whyNotOpen says why it was not.
func (s *Service) whyNotOpen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opening == nil {
		return errNotOpen
	}
	return s.opening
}

// errNotOpen says that the journal was not read yet.
var errNotOpen = errors.New("the journal of addresses was not read yet")

// AwaitReady waits until Ready returns nil. Its error is why it does not when
// ctx or Run ends.
func (s *Service) AwaitReady(ctx context.Context) error {
	if err := s.awaitOpen(ctx); err != nil {
		return err
	}
	for {
		changed := s.holder.Changed()
		err := s.Ready()
		if err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-s.ended:
			return errEnded
		case <-ctx.Done():
			return err
		}
	}
}

// awaitOpen waits until the journal was read. Its error is why it was not when
// ctx or Run ends.
func (s *Service) awaitOpen(ctx context.Context) error {
	select {
	case <-s.opened:
		return nil
	case <-s.ended:
		return errEnded
	case <-ctx.Done():
		return s.Ready()
	}
}
