package address

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/internal/ipam/holder"
)

const (
	// waitMost is how long a pod waits for addresses at most.
	waitMost = time.Minute

	// settleShare of the time that a pod has is kept for pools that come later
	// in its choices, and settleMost at most.
	settleShare = 5
	settleMost  = 2 * time.Second
)

// Assign gives a pod all addresses that it asks for, or none. What is returned
// is synced to the node's disk; for a pod with an identity, it is also published,
// but for a VM that is only on its way here. A repeated request is given the same.
//
// It waits until the controller has granted what the node lacks, at most until
// the deadline of ctx, or for a minute; short of that, the pod gets addresses of
// pools that come later in its choices, where those have some. The error names
// the pod, and for each interface the pools and why they give nothing. It is a
// [*holder.ShortError] where addresses lack. What a pod that keeps its addresses
// was given and could not be published, it has: Release it, or ask again. What was
// released while it was waited for is an error, too, and the pod has nothing.
func (s *Service) Assign(ctx context.Context, request holder.Request) (holder.Assignment, error) {
	ctx, cancel := context.WithTimeout(ctx, waitMost)
	defer cancel()
	began := time.Now()
	s.waits(request.Key, s.Ready)
	defer s.waitsNoMore(request.Key)
	a, waited, err := s.assign(ctx, request)
	if err == nil {
		s.syncer.soon()
		err = s.tell(ctx, a, request.Migration)
	}
	if err != nil {
		s.metrics.failures.WithLabelValues(reasonOf(err)).Inc()
		s.log.Warn("a pod is given no addresses", "pod", request.Pod, "error", err)
		return holder.Assignment{}, fmt.Errorf("addresses of pod %s: %w", request.Pod, err)
	}
	s.metrics.assigned(waited, time.Since(began))
	s.log.Debug("a pod has addresses", "pod", a.Pod, "addresses", addressesOf(&a), "took", time.Since(began))
	return a, nil
}

// tell has an assignment told of; that of an identity before the pod has its
// answer, unless it is still elsewhere.
func (s *Service) tell(ctx context.Context, a holder.Assignment, isMoving bool) error {
	if a.Identity == "" || isMoving {
		return s.publish.assigned(a)
	}
	s.waits(a.Key, func() error {
		return s.hindered(fmt.Errorf("it has %s, which its SpiderEndpoint %s has to say first", addressesOf(&a), endpointName(&a)))
	})
	if err := s.publish.assignedNow(ctx, a); err != nil {
		return fmt.Errorf("it keeps %s: %w", addressesOf(&a), err)
	}
	return nil
}

// assign waits for addresses, and tells whether it did. After an error the pod
// wants none any more.
func (s *Service) assign(ctx context.Context, request holder.Request) (a holder.Assignment, waited bool, err error) {
	if err := s.awaitOpen(ctx); err != nil {
		return a, true, err
	}
	request = s.homed(ctx, request)
	settle := time.NewTimer(untilSettle(ctx))
	defer settle.Stop()
	for {
		changed := s.holder.Changed()
		a, err = s.ask(request)
		if err == nil {
			return a, waited, nil
		}
		if !passes(err) {
			s.holder.Abandon(request.Key)
			return a, waited, err
		}
		waited = true
		why := err
		s.waits(request.Key, func() error { return s.asked(why) })
		s.syncer.now()
		select {
		case <-changed:
		case <-s.ended: // as the next attempt says
		case <-settle.C:
			request.Settle = true
		case <-ctx.Done():
			s.holder.Abandon(request.Key)
			s.syncer.soon()
			return a, waited, s.because(ctx, err)
		}
	}
}

// homed puts the pools first that the identity of a request has addresses of, as
// its SpiderEndpoint says. Where that cannot be read, pools stay in their order:
// what is pinned on this node, the holder knows.
func (s *Service) homed(ctx context.Context, request holder.Request) holder.Request {
	if request.Identity == "" {
		return request
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	name := endpointName(&holder.Assignment{Pod: request.Pod, Identity: request.Identity})
	s.waits(request.Key, func() error {
		return s.hindered(fmt.Errorf("SpiderEndpoint %s has to say first which addresses it keeps", name))
	})
	e, err := s.client.endpoint(ctx, name.Namespace, name.Name)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			s.log.Warn("which pools a pod has pinned addresses of cannot be read, so they are tried in their order", "pod", request.Pod, "error", err)
		}
		return request
	}
	had, err := assignmentOf(e)
	if err != nil {
		s.log.Warn("which pools a pod has pinned addresses of is not understood, so they are tried in their order", "pod", request.Pod, "error", err)
	}
	return request.Home(had.Addresses)
}

// ask asks the holder, while the journal is ours.
func (s *Service) ask(request holder.Request) (holder.Assignment, error) {
	s.using.RLock()
	defer s.using.RUnlock()
	if s.hasEnded() {
		return holder.Assignment{}, errEnded
	}
	return s.holder.Assign(request)
}

// untilSettle is when a pod takes what is there.
func untilSettle(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline() // Assign has set one
	left := time.Until(deadline)
	return left - min(left/settleShare, settleMost)
}

// passes tells whether a pod may be given addresses a little later.
func passes(err error) bool {
	var short *holder.ShortError
	return errors.As(err, &short) || errors.Is(err, holder.ErrNotReady)
}

// because says why a pod waited in vain: the holder's reason, and what is in the
// way of that.
func (s *Service) because(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%w; nobody waits for them any more: %w", err, context.Cause(ctx))
	}
	return s.hindered(err)
}

// asked adds to what a pod waits for what is done about it.
func (s *Service) asked(err error) error {
	if s.blocked() != nil || errors.Is(err, holder.ErrNotReady) {
		return s.hindered(err)
	}
	return fmt.Errorf("%w; the node has asked the controller for more", err)
}

// hindered adds to what a pod waits for what is in the way of that, if anything is.
func (s *Service) hindered(err error) error {
	if blocked := s.blocked(); blocked != nil {
		return fmt.Errorf("%w; the controller cannot be asked: %w", err, blocked)
	}
	if blind := s.whyBlind(); blind != nil && errors.Is(err, holder.ErrNotReady) {
		return fmt.Errorf("%w; %w", err, blind)
	}
	return err
}

// blocked says why the controller cannot be asked; nil where it can.
func (s *Service) blocked() error {
	if err := s.syncer.failure(); err != nil {
		return fmt.Errorf("AddressLease %s cannot be written: %w", s.config.NodeName, err)
	}
	return s.link.failure()
}

// reasonOf is what a failure is counted as.
func reasonOf(err error) string {
	var short *holder.ShortError
	switch {
	case errors.As(err, &short):
		return "short"
	case errors.Is(err, holder.ErrNotReady):
		return "not_ready"
	case errors.Is(err, holder.ErrDisk):
		return "disk"
	case errors.Is(err, errUnpublished):
		return "unpublished"
	}
	return "other"
}

// addressesOf lists the addresses of an assignment for people.
func addressesOf(a *holder.Assignment) string {
	list := make([]string, 0, len(a.Addresses))
	for _, have := range a.Addresses {
		list = append(list, have.Interface+" "+have.Prefix.String())
	}
	return strings.Join(list, ", ")
}
