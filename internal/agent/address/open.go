package address

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
)

// open finds out which node this is, opens its journal, and tells the holder
// what is in use. It tries until it succeeds or ctx ends, whose error it returns
// then.
// What it returns beside is to be called when the journal is used no more.
func (s *Service) open(ctx context.Context) (types.UID, func(), error) {
	pause := pauses()
	for {
		uid, release, err := s.tryOpen(ctx)
		if err == nil {
			return uid, release, nil
		}
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		if s.opens(err) {
			s.log.Warn("no pod can be given addresses yet", "error", err)
		}
		wait := pause.Step()
		if errors.Is(err, journal.ErrHeld) { // by an agent that ends
			wait = time.Second
		}
		if err := sleep(ctx, wait); err != nil {
			return "", nil, err
		}
	}
}

// opens notes why nothing is open yet, and tells whether that is news.
func (s *Service) opens(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isNews := s.opening == nil || kindOf(s.opening) != kindOf(err)
	s.opening = err
	return isNews
}

// tryOpen tries once.
func (s *Service) tryOpen(ctx context.Context) (types.UID, func(), error) {
	disk, release, err := s.disk()
	if err != nil {
		return "", nil, err
	}
	me, err := s.identify(ctx, disk)
	if err != nil {
		release()
		return "", nil, err
	}
	h, err := holder.Open(disk, holder.Options{
		Node: me.Name, UID: me.UID, BootID: me.BootID, Session: string(uuid.NewUUID()), Now: time.Now,
	})
	if err != nil {
		release()
		return "", nil, fmt.Errorf("journal of addresses in %s: %w", s.config.Dir, err)
	}
	s.holder = h
	close(s.opened)
	return me.UID, release, nil
}

// identify says which node this is: what was kept of this boot, else what the
// API server says.
func (s *Service) identify(ctx context.Context, disk journal.Disk) (facts, error) {
	boot := s.config.BootID
	if boot == "" {
		var err error
		if boot, err = bootID(s.config.Node); err != nil {
			return facts{}, err
		}
	}
	kept, isKept := loadFacts(disk, s.config.NodeName, boot)
	uid, err := s.askNode(ctx, isKept)
	if err != nil {
		if !isKept || apierrors.IsNotFound(err) {
			return facts{}, err
		}
		s.log.Warn("the API server does not say which node this is, so it is the one that it was", "uid", kept.UID, "error", err)
		return kept, nil
	}
	me := facts{Name: s.config.NodeName, UID: uid, BootID: boot}
	if me == kept {
		return me, nil
	}
	if err := saveFacts(disk, me); err != nil {
		s.log.Warn("which node this is cannot be kept: a start without the API server will have to wait for that", "error", err)
	}
	return me, nil
}

// askNode asks for the UID of the node, not for long where the answer is likely
// to be what is known.
func (s *Service) askNode(ctx context.Context, isLikely bool) (types.UID, error) {
	if isLikely {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askFor)
		defer cancel()
	}
	return s.client.nodeUID(ctx, live)
}

// askFor is for how long a start waits for an API server that it can do without.
const askFor = 3 * time.Second

// settle tells the holder what is in use in the node's network namespaces, and,
// where its journal is lost, which pods have it. It tries until it succeeds or ctx
// ends, whose error it returns then. Before that, a holder without its journal
// gives nothing.
func (s *Service) settle(ctx context.Context, isLost bool) error {
	if isLost {
		s.log.Info("addresses begin anew: what pods have is looked up before any is given", "because", s.holder.Ready())
	}
	pause, told := pauses(), ""
	for {
		err := s.trySettle(ctx, isLost)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		level := slog.LevelWarn
		kind := kindOf(err)
		if kind == told { // once is enough
			level = slog.LevelDebug
		}
		told = kind
		s.log.Log(ctx, level, "which addresses the node's pods have cannot be told", "error", err)
		if err := sleep(ctx, pause.Step()); err != nil {
			return err
		}
	}
}

// trySettle tries once. With its journal, a holder can wait for what is in use
// until the collector looks.
func (s *Service) trySettle(ctx context.Context, isLost bool) error {
	used, lookErr := s.inUse()
	if lookErr != nil && isLost {
		return lookErr
	}
	if lookErr == nil && !isLost {
		s.holder.Occupied(used)
	}
	own, err := s.published(ctx)
	if err != nil {
		return err
	}
	if isLost {
		processes, err := s.config.Processes()
		if err != nil {
			return fmt.Errorf("processes of pods: %w", err)
		}
		if err := s.adopt(own, used, processes); err != nil {
			s.log.Warn("some SpiderEndpoints do not say which addresses their pods have: these are kept from others while they are in use", "error", err)
		}
		s.holder.Occupied(used)
	}
	s.publish.resume(s.holder.Assignments(), own)
	s.syncer.again()
	return nil
}

// published returns the endpoints that are of this node now: not those that are
// parked, or another's by now.
func (s *Service) published(ctx context.Context) ([]*v2beta1.SpiderEndpoint, error) {
	var own []*v2beta1.SpiderEndpoint
	err := s.client.ownEndpoints(ctx, func(e *v2beta1.SpiderEndpoint) {
		if e.Status.Current.Node == s.config.NodeName {
			own = append(own, e)
		}
	})
	if apierrors.IsNotFound(err) { // nobody ever wrote one, for the kind is not there
		return nil, nil
	}
	return own, err
}

// adopt has the holder know pods by what was published of them. Where no network
// namespace has the addresses any more, and the pod has no process, nobody has
// them: after a boot all pods are given addresses anew.
func (s *Service) adopt(own []*v2beta1.SpiderEndpoint, used map[netip.Addr]string, processes map[types.UID][]int) error {
	var errs []error
	for _, e := range own {
		a, err := assignmentOf(e)
		if err == nil && (isUsed(&a, used) || len(processes[a.PodUID]) > 0) {
			err = s.holder.Adopt(a)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func isUsed(a *holder.Assignment, used map[netip.Addr]string) bool {
	for _, have := range a.Addresses {
		if _, ok := used[have.Prefix.Addr()]; ok {
			return true
		}
	}
	return false
}
