package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"railhead/internal/attach"
	"railhead/internal/attach/probe"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/rtnl"
)

// atCoordinator is the place in a chain of a coordinator's configuration that is
// kept for the pod's later interfaces: it is no plugin of another's, and not run.
const atCoordinator = -2

// coordinatorID is the sandbox of the record of a pod's routes.
func coordinatorID(sandbox string) string { return sandbox + "/" + pluginCoordinator }

// addCoordinator has an interface routed that another runtime of networks has
// made. Routes are those of all interfaces of the pod that were coordinated so
// far: each call plans them anew.
func (s *Server) addCoordinator(ctx context.Context, c call) (json.RawMessage, error) {
	id := coordinatorID(c.ContainerID)
	unlock, err := s.sandboxes.lock(ctx, id)
	if err != nil {
		return nil, coded(cnicall.CodeTryAgain, fmt.Errorf("another call for sandbox %s is still under way: %w", c.ContainerID, err))
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
		undo, stop := detached(ctx)
		defer stop()
		err = failed(err, s.takeAway(undo, c, a.att, nil))
		s.tell(ctx, a, err)
		return nil, err
	}
	return printed(result, c.conf.CNIVersion)
}

// coordinate plans, records and applies the routes of a pod with one interface more.
func (s *Server) coordinate(ctx context.Context, a *attempt, result *types100.Result) error {
	var before *attach.Plan
	if had, ok := s.config.Records.Get(a.att.ContainerID); ok {
		a.att, before = had, had.Plan
	}
	element, err := elementOf(a.call.Config)
	if err != nil {
		return err
	}
	a.att.State = record.Attaching
	a.att.Networks = slices.DeleteFunc(a.att.Networks, func(n record.Network) bool { return n.Interface == a.call.IfName })
	a.att.Networks = append(a.att.Networks, record.Network{
		Name: a.call.conf.Name, Interface: a.call.IfName, From: fromBelow, Default: a.call.IfName == "eth0",
		Delegated: []record.Delegate{{Type: pluginCoordinator, IfName: a.call.IfName, Config: element, Chain: atCoordinator}},
	})
	interfaces, err := s.interfacesThere(a, before, result)
	if err != nil {
		return err
	}
	if before != nil {
		if err := s.config.Attacher.Undo(ctx, before, nil); err != nil {
			return err
		}
	}
	a.att.Plan = nil
	pod := attach.Pod{ContainerID: a.call.ContainerID, NetNS: s.config.NetNS(a.call.NetNS), Interfaces: interfaces}
	if pod.NodeAddresses, err = s.nodeAddresses(true); err != nil {
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
	if err := s.probeRouted(ctx, a, interfaces, done, result); err != nil {
		return err
	}
	a.att.State = record.Attached
	if err := s.await(ctx, a); err != nil {
		return err
	}
	return s.note(a)
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

// probeBelow asks whether others have addresses that an interface is to get, which
// another runtime has made already.
func (s *Server) probeBelow(ctx context.Context, a *attempt, addresses []netip.Prefix) error {
	client, err := rtnl.Dial(&rtnl.Config{NetNS: a.ns.FD()})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // it is only asked
	link, err := client.LinkByName(a.call.IfName)
	if err != nil || !link.Up {
		return nil // it is made later
	}
	t := probe.Target{
		Interface: link.Name, Index: link.Index, MAC: macOf(link.Address), Parent: masterOf(string(a.call.Config)),
	}
	fresh := false
	for _, prefix := range addresses {
		fresh = fresh || !s.isProven(a, prefix.Addr())
		t.Addresses = append(t.Addresses, probe.Address{Addr: prefix.Addr(), Doubtful: a.given.doubtful(prefix.Addr())})
	}
	t.Detect.Conflict = fresh && s.config.Cluster.Catalog().Config().DetectConflict
	a.targets = []probe.Target{t}
	return s.probe(ctx, a)
}

// delCoordinator takes a pod's routes away with the first interface that goes: none
// stays without the others.
func (s *Server) delCoordinator(ctx context.Context, c call) error {
	id := coordinatorID(c.ContainerID)
	unlock, err := s.sandboxes.lock(ctx, id)
	if err != nil {
		return coded(cnicall.CodeTryAgain, fmt.Errorf("another call for sandbox %s is still under way: %w", c.ContainerID, err))
	}
	defer unlock()
	att, ok := s.config.Records.Get(id)
	if !ok {
		return nil
	}
	undo, stop := detached(ctx)
	defer stop()
	return s.takeAway(undo, c, att, nil)
}

// checkCoordinator compares a pod's routes with the kernel.
func (s *Server) checkCoordinator(ctx context.Context, c call) error {
	att, ok := s.config.Records.Get(coordinatorID(c.ContainerID))
	if !ok || att.State != record.Attached || att.Plan == nil {
		return coded(cnicall.CodeContainer, fmt.Errorf("sandbox %s: no routes were made for it", c.ContainerID))
	}
	return s.config.Attacher.Check(ctx, att.Plan)
}
