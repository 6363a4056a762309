package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"railhead/internal/attach"
	"railhead/internal/attach/probe"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
)

// atBelow is the place in a chain of a configuration from below another runtime of
// networks that is kept for later calls: it is no plugin of another's, and not run.
const atBelow = -2

// addCoordinator has an interface routed that another runtime of networks has
// made. Routes are those of all interfaces of the pod that were coordinated so
// far: which metrics they have, and whose the default is, is of all of them, so
// that each call takes the earlier ones' away and plans them anew. A call that
// fails leaves the earlier ones' as they were.
func (s *Server) addCoordinator(ctx context.Context, c call) (json.RawMessage, error) {
	id := coordinatorID(c.ContainerID)
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	result := c.prevResult()
	if result == nil {
		return nil, coded(cnicall.CodeConfig, errors.New("prevResult: missing: a coordinator stands behind the plugin that makes an interface"))
	}
	a, err := s.begin(ctx, c)
	defer a.end()
	if err != nil {
		s.tell(ctx, a, err)
		return nil, err
	}
	a.att.ContainerID = id
	if err := s.coordinate(ctx, a, result); err != nil {
		err = coded(codeOf(err), fmt.Errorf("pod %s: interface %s: %w", a.podName(), c.IfName, err))
		s.tell(ctx, a, err)
		return nil, err
	}
	return printed(result, c.conf.CNIVersion)
}

// coordinate has a pod routed with one interface more, or as before.
func (s *Server) coordinate(ctx context.Context, a *attempt, result *types100.Result) error {
	had, err := s.goOn(ctx, a, a.att.ContainerID)
	if err != nil {
		return err
	}
	element, err := elementOf(a.call.Config)
	if err != nil {
		return err
	}
	told, err := json.Marshal(result)
	if err != nil {
		return err
	}
	a.att.State = record.Attaching
	a.att.Networks = slices.DeleteFunc(a.att.Networks, func(n record.Network) bool { return n.Interface == a.call.IfName })
	a.att.Networks = append(a.att.Networks, record.Network{
		Name: a.call.conf.Name, Interface: a.call.IfName, From: fromBelow, Default: a.call.IfName == "eth0",
		Delegated: []record.Delegate{{Type: pluginCoordinator, IfName: a.call.IfName, Config: element, Result: told, Chain: atBelow}},
	})
	pod := attach.Pod{ContainerID: a.call.ContainerID, NetNS: a.path}
	if pod.Interfaces, err = s.interfacesThere(a); err != nil {
		return err
	}
	if pod.NodeAddresses, err = s.nodeAddresses(true); err != nil {
		return err
	}
	if had.Plan != nil { // an agent that takes over must not take it for whole
		if _, err := s.put(a.att); err != nil {
			return err
		}
	}
	if err := s.reroute(ctx, a, pod, result); err != nil {
		undo, stop := detached(ctx)
		defer stop()
		return failed(err, s.asBefore(undo, a, had))
	}
	return nil
}

// reroute takes away what was routed so far, and plans, records and applies the
// routes of all interfaces.
func (s *Server) reroute(ctx context.Context, a *attempt, pod attach.Pod, result *types100.Result) error {
	if err := s.undo(ctx, a.att); err != nil {
		return err
	}
	plan, err := s.config.Attacher.Plan(ctx, pod)
	if err != nil {
		return err
	}
	a.att.Plan = plan
	if err := s.keep(a); err != nil {
		return err
	}
	done, err := s.config.Attacher.Apply(ctx, plan)
	if err != nil {
		return err
	}
	if err := s.probeRouted(ctx, a, pod.Interfaces, done, result); err != nil {
		return err
	}
	if err := s.await(ctx, a); err != nil {
		return err
	}
	a.att.State = record.Attached
	return s.note(a)
}

// asBefore takes away what a call that failed has done, and routes what was routed
// before it. If that cannot be, nothing is routed.
func (s *Server) asBefore(ctx context.Context, a *attempt, had record.Attachment) error {
	if had.Plan == nil {
		return s.takeAway(ctx, a.call, a.att, nil)
	}
	err := s.undo(ctx, a.att)
	if err != nil {
		return errors.Join(err, s.takeAway(ctx, a.call, a.att, nil))
	}
	if _, err = s.put(had); err == nil { // before the change, as ever
		_, err = s.config.Attacher.Apply(ctx, had.Plan)
	}
	if err != nil {
		return errors.Join(err, s.takeAway(ctx, a.call, had, nil))
	}
	return nil
}

// elementOf is what was written of a coordinator: without what its runtime added.
func elementOf(config json.RawMessage) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(config, &fields); err != nil {
		return nil, coded(cnicall.CodeDecode, err)
	}
	for _, key := range []string{"name", "cniVersion", "prevResult", "runtimeConfig", "args", "capabilities"} {
		delete(fields, key)
	}
	return json.Marshal(fields)
}

// probeRouted asks for the gateways of the interface that has come, and takes what
// was changed of it into its result.
func (s *Server) probeRouted(ctx context.Context, a *attempt, interfaces []attach.Interface, done *attach.Done, result *types100.Result) error {
	for n, i := range interfaces {
		if i.Name != a.call.IfName || i.IsDefaultNetwork || i.Coordinator == nil || n >= len(done.Interfaces) {
			continue
		}
		m := done.Interfaces[n]
		for _, netdev := range result.Interfaces {
			if netdev != nil && netdev.Name == m.Name && netdev.Sandbox != "" {
				netdev.Mac = m.MAC.String()
			}
		}
		d := i.Coordinator.Detection
		a.targets = []probe.Target{{
			Interface: m.Name, Index: m.Index, Rail: i.Rail, MAC: m.MAC, Gateways: i.Gateways,
			Detect: probe.Detection{Gateway: d.Gateway, Retries: d.Retries, Timeout: d.Timeout, Interval: d.Interval},
		}}
		return s.probe(ctx, a)
	}
	return nil
}

// checkCoordinator compares a pod's routes with the kernel.
func (s *Server) checkCoordinator(ctx context.Context, c call) error {
	att, ok := s.config.Records.Get(coordinatorID(c.ContainerID))
	if !ok || att.State != record.Attached || att.Plan == nil {
		return coded(cnicall.CodeContainer, fmt.Errorf("sandbox %s: no routes were made for it", c.ContainerID))
	}
	return s.config.Attacher.Check(ctx, att.Plan)
}
