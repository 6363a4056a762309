package cniserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/containernetworking/cni/pkg/types"

	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
)

// del takes a pod's networks away. An ADD of the sandbox that is under way ends.
func (s *Server) del(ctx context.Context, c call) error {
	s.sandboxes.interrupt(c.ContainerID, errInterrupted)
	unlock, err := s.lock(ctx, c.ContainerID)
	if err != nil {
		return err
	}
	defer unlock()
	undo, stop := detached(ctx)
	defer stop()
	att, ok := s.config.Records.Get(c.ContainerID)
	if !ok || isBelow(att) {
		if err := s.delBelow(undo, c); err != nil {
			return err // plugins of others that ask for what is still recorded would wait for us
		}
		return s.delUnknown(undo, c)
	}
	if err := s.takeAway(undo, c, att, nil); err != nil {
		return fmt.Errorf("pod %s/%s: %w", att.Namespace, att.Name, err)
	}
	return nil
}

// delBelow takes away what a sandbox has from when another runtime of networks
// was in front, which is there no more.
func (s *Server) delBelow(ctx context.Context, c call) error {
	errs := []error{s.delRecord(ctx, c, coordinatorID(c.ContainerID))}
	for _, att := range s.config.Records.All() {
		if sandboxOf(att.ContainerID) == c.ContainerID && pluginOf(att) == pluginIfacer {
			errs = append(errs, s.delRecord(ctx, c, att.ContainerID))
		}
	}
	if att, ok := s.config.Records.Get(c.ContainerID); ok {
		errs = append(errs, s.takeAway(ctx, c, att, nil))
	}
	return errors.Join(errs...)
}

// check compares an attachment with the kernel, and has others' plugins do the same.
func (s *Server) check(ctx context.Context, c call) error {
	unlock, err := s.lock(ctx, c.ContainerID)
	if err != nil {
		return err
	}
	defer unlock()
	att, ok := s.config.Records.Get(c.ContainerID)
	if !ok || att.State != record.Attached {
		return coded(cnicall.CodeContainer, fmt.Errorf("sandbox %s: nothing is attached to it", c.ContainerID))
	}
	if why, err := s.ended(att); err != nil || why != "" {
		if err == nil {
			err = coded(cnicall.CodeNamespace, fmt.Errorf("%s: %s", att.NetNS, why))
		}
		return fmt.Errorf("pod %s/%s: %w", att.Namespace, att.Name, err)
	}
	var errs []error
	if att.PlanLost {
		errs = append(errs, errPlanLost)
	}
	if att.Plan != nil {
		errs = append(errs, s.config.Attacher.Check(ctx, att.Plan))
	}
	for _, n := range att.Networks {
		errs = append(errs, s.checkForeign(ctx, c, n))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pod %s/%s: %w", att.Namespace, att.Name, err)
	}
	return nil
}

// checkForeign runs CHECK of the plugins of others of a network.
func (s *Server) checkForeign(ctx context.Context, c call, n record.Network) error {
	result, err := last(n)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range n.Delegated {
		if d.Chain == atBelow {
			continue // ours, and asked by who calls it
		}
		config := []byte(d.Config)
		if d.Chain != atIPAM {
			if config, err = withResult(config, result); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		if err := s.config.Delegate.Check(ctx, c.delegated(d.Type, d.IfName, config)); err != nil {
			errs = append(errs, fmt.Errorf("network %s, interface %s: %w", n.Name, n.Interface, err))
		}
	}
	return errors.Join(errs...)
}

// collect takes away what the runtime no longer lists, and tells the cluster's
// own network what it does. What is being worked on is left alone: somebody
// looks after it.
func (s *Server) collect(ctx context.Context, c call) error {
	valid, err := c.valid()
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, v := range valid {
		keep[v.ContainerID] = true
	}
	var errs []error
	for _, att := range s.config.Records.All() { // what comes later is not listed, and stays
		if keep[sandboxOf(att.ContainerID)] || s.isKept(att, valid) || isBelow(att) && s.lives(att) {
			continue // another runtime of networks may have it
		}
		unlock, free := s.sandboxes.tryLock(att.ContainerID)
		if !free {
			continue
		}
		undo, stop := detached(ctx)
		if now, ok := s.config.Records.Get(att.ContainerID); ok && now.At.Equal(att.At) && now.State == att.State {
			err := s.takeAway(undo, unasked(now), now, nil)
			s.repaired(now, "GC: the runtime no longer has the sandbox", err)
			errs = append(errs, err)
		}
		stop()
		unlock()
	}
	if valid != nil { // else the cluster's own network would take for gone whatever lives
		errs = append(errs, s.collectForeign(ctx, c, valid))
	}
	return errors.Join(errs...)
}

// collectForeign passes GC on to the cluster's own network.
func (s *Server) collectForeign(ctx context.Context, c call, valid []types.GCAttachment) error {
	chain, err := s.clusterChain(c)
	if err != nil || chain.DisableGC {
		return err
	}
	var errs []error
	for i, p := range chain.Plugins {
		if p.Native {
			continue
		}
		d, err := s.statusCall(c, chain, i)
		if err == nil {
			err = s.config.Delegate.GC(ctx, d, valid)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
