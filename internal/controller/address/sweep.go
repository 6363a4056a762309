package address

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/internal/ipam/selection"
	"railhead/internal/policy"
)

// sweeper finds out who is gone for good. Nobody is by one look: what seems to
// be gone twice, doubt apart, the API server is asked about.
type sweeper struct {
	cluster *cluster
	ids     *identities
	cache   client.Reader // may lag behind
	live    client.Reader
	api     client.Client // writes
	config  func() policy.Config
	wake    func() // has a round run
	tell    func(text string, args ...any)

	nodes     *suspects[string]
	pinned    *suspects[string]
	pods      *suspects[types.NamespacedName]
	endpoints *suspects[types.UID]

	mu             sync.Mutex
	goneIdentities map[string]struct{}
	gonePods       map[string]struct{}
}

func newSweeper(doubt time.Duration) *sweeper {
	return &sweeper{
		nodes: newSuspects[string](doubt), pinned: newSuspects[string](doubt),
		pods: newSuspects[types.NamespacedName](doubt), endpoints: newSuspects[types.UID](doubt),
	}
}

// sweep looks at everybody once. One that cannot be told keeps no other from
// being looked at.
func (s *sweeper) sweep(ctx context.Context, now time.Time) error {
	return errors.Join(
		s.lookAtNodes(ctx, now),
		s.lookAtIdentities(ctx, now),
		s.lookAtPods(ctx, now),
		s.lookAtEndpoints(ctx, now),
		s.unclaim(ctx),
		s.endLeases(ctx),
	)
}

// rest waits until it is time to look again. In between, what identities leave
// behind on nodes is looked after: their pods wait for it elsewhere.
func (s *sweeper) rest(ctx context.Context, d time.Duration) error {
	const often = time.Second
	for until := time.Now().Add(d); time.Now().Before(until); {
		if err := pause(ctx, min(often, time.Until(until))); err != nil {
			return err
		}
		if s.cluster.tookPins() {
			if err := s.unclaim(ctx); err != nil && ctx.Err() == nil {
				s.tell("SpiderEndpoints could not be freed for other nodes", "error", err)
			}
		}
	}
	return nil
}

// lookAtNodes buries the ghosts that are nodes no more.
func (s *sweeper) lookAtNodes(ctx context.Context, now time.Time) error {
	defer s.nodes.looked()
	var errs []error
	for _, name := range s.cluster.ghostList() {
		if !s.nodes.missing(name, now) {
			continue
		}
		node := &corev1.Node{}
		err := s.live.Get(ctx, client.ObjectKey{Name: name}, node)
		switch {
		case apierrors.IsNotFound(err):
			s.cluster.bury(name)
			s.tell("a node is gone: addresses that it still holds go into quarantine", "node", name)
			s.wake()
		case err != nil:
			errs = append(errs, fmt.Errorf("node %s: %w", name, err))
		default:
			s.nodes.there(name)
			if s.cluster.putNode(node) {
				s.wake()
			}
		}
	}
	return errors.Join(errs...)
}

// lookAtIdentities looks at those whose addresses are parked.
func (s *sweeper) lookAtIdentities(ctx context.Context, now time.Time) error {
	defer s.pinned.looked()
	gone := map[string]struct{}{}
	var errs []error
	parked := s.parked()
	for _, id := range parked {
		if id.Kind == selection.KindVirtualMachine {
			errs = append(errs, s.ids.lookAtMachines(ctx))
			break
		}
	}
	for _, id := range parked {
		isGone, err := s.isIdentityGone(ctx, s.pinned, id, now)
		if isGone {
			gone[id.String()] = struct{}{}
		}
		errs = append(errs, err)
	}
	s.found(&s.goneIdentities, gone)
	return errors.Join(errs...)
}

// found keeps who is gone, and has a round see it if somebody is who was not.
func (s *sweeper) found(known *map[string]struct{}, gone map[string]struct{}) {
	s.mu.Lock()
	isNews := hasMore(gone, *known)
	*known = gone
	s.mu.Unlock()
	if isNews {
		s.wake()
	}
}

// parked are the identities that keep addresses and are on no node, and those of
// endpoints that outlive their pods.
func (s *sweeper) parked() []selection.Identity {
	seen := map[selection.Identity]struct{}{}
	var list []selection.Identity
	add := func(id selection.Identity) {
		if _, ok := seen[id]; !ok && id.Kind != "" {
			seen[id] = struct{}{}
			list = append(list, id)
		}
	}
	for _, ledger := range s.cluster.ledgerList() {
		for i := range ledger.Spec.Runs {
			if run := &ledger.Spec.Runs[i]; run.Identity != "" && run.Node == "" {
				id, _ := selection.ParseIdentity(run.Identity) // what cannot be read is nobody that could be gone
				add(id)
			}
		}
	}
	for _, e := range s.cluster.endpointList(isLeft) {
		add(identityOf(e))
	}
	return list
}

// isIdentityGone says whether an identity is gone by two looks and the API server.
func (s *sweeper) isIdentityGone(ctx context.Context, suspects *suspects[string], id selection.Identity, now time.Time) (bool, error) {
	absent, err := s.ids.isAbsent(ctx, id)
	if err != nil {
		return false, fmt.Errorf("%s: %w", id, err)
	}
	if !absent {
		suspects.there(id.String())
		return false, nil
	}
	if !suspects.missing(id.String(), now) {
		return false, nil
	}
	gone, err := s.ids.isGone(ctx, id)
	if err != nil {
		return false, fmt.Errorf("%s: %w", id, err)
	}
	if !gone {
		suspects.there(id.String())
	}
	return gone, nil
}

// lookAtPods looks at those that had addresses before there were ledgers.
func (s *sweeper) lookAtPods(ctx context.Context, now time.Time) error {
	defer s.pods.looked()
	gone := map[string]struct{}{}
	var errs []error
	for name := range s.quarantined() {
		isGone, err := s.isPodGone(ctx, name, now)
		if isGone {
			gone[name.String()] = struct{}{}
		}
		errs = append(errs, err)
	}
	s.found(&s.gonePods, gone)
	return errors.Join(errs...)
}

// quarantined are the pods that ledgers name.
func (s *sweeper) quarantined() map[types.NamespacedName]struct{} {
	pods := map[types.NamespacedName]struct{}{}
	for _, ledger := range s.cluster.ledgerList() {
		for i := range ledger.Spec.Runs {
			q := ledger.Spec.Runs[i].Quarantine
			if q == nil || q.Pod == "" {
				continue
			}
			if name, ok := namedPod(q.Pod); ok {
				pods[name] = struct{}{}
			}
		}
	}
	return pods
}

// isPodGone says whether a pod is gone by two looks and the API server. One that
// a SpiderEndpoint still gives addresses to is not: it may be of a virtual machine,
// whose pods have other names.
func (s *sweeper) isPodGone(ctx context.Context, name types.NamespacedName, now time.Time) (bool, error) {
	there := s.cluster.endpoint(name) != nil
	if !there {
		_, isThere, err := podUID(ctx, s.cache, name)
		if err != nil {
			return false, err
		}
		there = isThere
	}
	if there {
		s.pods.there(name)
		return false, nil
	}
	if !s.pods.missing(name, now) {
		return false, nil
	}
	_, there, err := podUID(ctx, s.live, name)
	if there {
		s.pods.there(name)
	}
	return !there && err == nil, err
}

// podUID is the UID of the pod of that name; false if there is none.
func podUID(ctx context.Context, from client.Reader, name types.NamespacedName) (types.UID, bool, error) {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	switch err := from.Get(ctx, name, pod); {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("pod %s: %w", name, err)
	}
	return pod.UID, true, nil
}

// isIdentityGoneNow is what a round asks: one that has come back since is not.
func (s *sweeper) isIdentityGoneNow(ctx context.Context, identity string) bool {
	s.mu.Lock()
	_, gone := s.goneIdentities[identity]
	s.mu.Unlock()
	if !gone {
		return false
	}
	id, err := selection.ParseIdentity(identity)
	if err != nil {
		return false
	}
	absent, err := s.ids.isAbsent(ctx, id)
	return absent && err == nil
}

// isPodGoneNow is what a round asks.
func (s *sweeper) isPodGoneNow(pod string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, gone := s.gonePods[pod]
	return gone
}

// hasMore says whether a set has something that another has not.
func hasMore(set, other map[string]struct{}) bool {
	for key := range set {
		if _, ok := other[key]; !ok {
			return true
		}
	}
	return false
}
