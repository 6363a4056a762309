package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/selection"
)

// add attaches a pod to all its networks and answers with the result of the
// default one. What it fails at leaves nothing behind.
func (s *Server) add(ctx context.Context, c call) (json.RawMessage, error) {
	unlock, err := s.lock(ctx, c.ContainerID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.sandboxes.interruptible(c.ContainerID, cancel)
	if answer, done, err := s.again(ctx, c); done || err != nil {
		return answer, err
	}
	a, err := s.begin(ctx, c)
	defer a.end()
	if err != nil {
		s.tell(ctx, a, err)
		return nil, err
	}
	s.starts(a)
	defer s.ends(a)
	s.replace(ctx, a)
	answer, err := s.attach(ctx, a)
	if err != nil {
		return nil, s.giveUp(ctx, a, err)
	}
	s.attached(ctx, a)
	return answer, nil
}

// again answers an ADD that was answered before. What an attempt left that has
// died, is taken away first.
func (s *Server) again(ctx context.Context, c call) (answer json.RawMessage, done bool, err error) {
	att, ok := s.config.Records.Get(c.ContainerID)
	if !ok {
		return nil, false, nil
	}
	id, err := s.statNetNS(c.NetNS)
	if err == nil && att.State == record.Attached && att.ID == id && att.BootID == s.config.BootID && len(att.Answer) > 0 {
		answer, err = reprinted(att.Answer, c.conf.CNIVersion)
		return answer, true, err
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, coded(cnicall.CodeTryAgain, fmt.Errorf("CNI_NETNS: %q: whether sandbox %s is attached already cannot be told: %w", c.NetNS, c.ContainerID, err))
	}
	undo, stop := detached(ctx)
	defer stop()
	if err := s.takeAway(undo, c, att, nil); err != nil {
		return nil, false, fmt.Errorf("what an earlier attempt of sandbox %s left: %w", c.ContainerID, err)
	}
	return nil, false, nil
}

// replace takes away what earlier sandboxes of the pod left whose namespaces are
// gone: the runtime lost them. What still lives is its own.
func (s *Server) replace(ctx context.Context, a *attempt) {
	for _, sandbox := range s.others(a) {
		unlock, free := s.sandboxes.tryLock(sandbox)
		if !free {
			continue
		}
		if old, ok := s.config.Records.Get(sandbox); ok && !s.lives(old) {
			undo, stop := detached(ctx)
			err := s.takeAway(undo, unasked(old), old, nil)
			stop()
			s.repaired(old, "the runtime lost it, and its pod has another sandbox", err)
		}
		unlock()
	}
}

// others are the other sandboxes of an attempt's pod.
func (s *Server) others(a *attempt) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for sandbox, uid := range s.pods {
		if uid == a.att.PodUID && sandbox != a.call.ContainerID {
			list = append(list, sandbox)
		}
	}
	return list
}

// attach does the work of an ADD.
func (s *Server) attach(ctx context.Context, a *attempt) (json.RawMessage, error) {
	began := time.Now()
	var err error
	if a.list, err = s.networksOf(ctx, a.call, a.pod); err != nil {
		close(a.addressed)
		return nil, err
	}
	for _, n := range a.list {
		a.att.Networks = append(a.att.Networks, record.Network{
			Name: n.chain.Name, Interface: n.selected.Interface, NAD: nadOf(n), From: n.chain.From, Default: n.selected.Default,
		})
	}
	interfaces, err := interfacesOf(a.list)
	if err != nil {
		close(a.addressed)
		return nil, err
	}
	if wantsAddresses(interfaces) {
		a.att.Key = record.Key{PodUID: a.att.PodUID, Sandbox: a.call.ContainerID}
	}
	s.copyDeviceInfo(a)
	a.step(s, "networks", began)
	if !hasNative(a.list) {
		if err := s.tolerate(a, s.keep(a)); err != nil {
			close(a.addressed)
			return nil, err
		}
	}
	if err := s.address(ctx, a, interfaces); err != nil {
		return nil, err
	}
	if hasNative(a.list) {
		if err := s.make(ctx, a); err != nil {
			return nil, err
		}
	}
	return s.finish(ctx, a)
}

func nadOf(n *network) string {
	if n.selected.Name == "" {
		return ""
	}
	return n.selected.String()
}

// address has a pod given its addresses while the default network, if it is
// another's, is attached; then the other networks of others follow, in order.
func (s *Server) address(ctx context.Context, a *attempt, interfaces []selection.Interface) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wait := make(chan error, 1)
	go func() {
		began := time.Now()
		g, err := s.assign(ctx, a.key(), a.pod, interfaces)
		a.given = g
		close(a.addressed)
		if err != nil {
			cancel(err) // no plugin need go on
		} else if len(g.assignment.Addresses) > 0 {
			s.metrics.steps.WithLabelValues("addresses").Observe(time.Since(began).Seconds())
		}
		wait <- err
	}()
	first, foreign := a.list[0], error(nil)
	if !first.isNative() {
		foreign = s.runForeign(ctx, a, 0)
		if foreign != nil {
			cancel(foreign)
		}
	}
	assigned := <-wait
	a.att.Sequence = a.given.assignment.Sequence
	if assigned != nil && !errors.Is(assigned, foreign) {
		return assigned
	}
	if foreign != nil {
		return foreign
	}
	return s.runOthers(ctx, a)
}

// runOthers runs the networks of others behind the default one, and the IPAM
// plugins of others for interfaces of ours.
func (s *Server) runOthers(ctx context.Context, a *attempt) error {
	for i, n := range a.list {
		var err error
		switch {
		case !n.isNative() && i > 0:
			err = s.runForeign(ctx, a, i)
		case n.isNative() && n.ipam.Native:
			n.made.Addresses, n.made.Gateways, n.made.Routes = a.given.of(n.selected.Interface)
		case n.isNative() && n.ipam.Type != "":
			err = s.runIPAM(ctx, a, i)
		}
		if err != nil {
			return err
		}
		if n.isNative() && len(n.selected.DefaultRoute) > 0 {
			n.made.Gateways = n.selected.DefaultRoute
		}
	}
	return nil
}

// giveUp undoes an attempt and tells of it, once.
func (s *Server) giveUp(ctx context.Context, a *attempt, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, errInterrupted) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if !isPodNamed(err) {
		err = coded(codeOf(err), fmt.Errorf("pod %s: %w", a.podName(), err))
	}
	undo, stop := detached(ctx)
	defer stop()
	err = failed(err, s.takeAway(undo, a.call, a.att, a.quarantine))
	s.tell(ctx, a, err)
	return err
}
