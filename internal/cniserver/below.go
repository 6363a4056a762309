package cniserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/selection"
	"railhead/internal/npwg"
)

// fromBelow is where networks of records stand that another runtime of networks
// attaches, one call for each plugin and interface.
const fromBelow = "below another runtime of networks"

// isBelow says whether a record is of such calls.
func isBelow(att record.Attachment) bool {
	return slices.ContainsFunc(att.Networks, func(n record.Network) bool { return n.From == fromBelow })
}

// below serves a call of one plugin, below another runtime of networks.
func (s *Server) below(ctx context.Context, c call) cnicall.Answer {
	switch c.Plugin + " " + c.Command {
	case pluginIPAM + " " + cnicall.Add:
		return answered(s.addIPAM(ctx, c))
	case pluginIPAM + " " + cnicall.Del:
		return answered(nil, s.delIPAM(ctx, c))
	case pluginIPAM + " " + cnicall.Check:
		return answered(nil, s.checkIPAM(c))
	case pluginCoordinator + " " + cnicall.Add:
		return answered(s.addCoordinator(ctx, c))
	case pluginCoordinator + " " + cnicall.Del:
		return answered(nil, s.delRecord(ctx, c, coordinatorID(c.ContainerID)))
	case pluginCoordinator + " " + cnicall.Check:
		return answered(nil, s.checkCoordinator(ctx, c))
	case pluginIfacer + " " + cnicall.Add:
		return answered(s.addIfacer(ctx, c))
	case pluginIfacer + " " + cnicall.Del:
		return answered(nil, s.delRecord(ctx, c, ifacerID(c.ContainerID, c.IfName)))
	case pluginIfacer + " " + cnicall.Check:
		return answered(nil, s.checkIfacer(ctx, c))
	case pluginIPAM + " " + cnicall.GC, pluginCoordinator + " " + cnicall.GC, pluginIfacer + " " + cnicall.GC:
		return answered(nil, s.collectBelow(ctx, c))
	}
	if c.Command == cnicall.Del || c.Command == cnicall.GC {
		return cnicall.Answer{} // nothing was attached
	}
	return answerOf(coded(cnicall.CodeConfig, fmt.Errorf(
		"network %s, interface %s: plugin %s: this release does not attach it below another runtime of networks yet: want the cluster's pods attached by %s, or one of %s, %s and %s here",
		c.conf.Name, c.IfName, c.Plugin, ownPlugin, pluginIPAM, pluginCoordinator, pluginIfacer)))
}

// addIPAM answers with the addresses of one interface. The first call of a sandbox
// has all interfaces of the pod addressed at once.
func (s *Server) addIPAM(ctx context.Context, c call) (json.RawMessage, error) {
	if a := s.attemptOf(c.ContainerID); a != nil {
		return ipamOfAttempt(ctx, a, c) // a plugin of another that we run asks
	}
	unlock, err := s.sandboxes.lock(ctx, c.ContainerID)
	if err != nil {
		return nil, coded(cnicall.CodeTryAgain, fmt.Errorf("another call for sandbox %s is still under way: %w", c.ContainerID, err))
	}
	defer unlock()
	a, err := s.begin(ctx, c)
	defer a.end()
	if err == nil {
		err = s.ipam(ctx, a)
	}
	if err != nil {
		if a.pod != nil {
			err = coded(codeOf(err), fmt.Errorf("pod %s: interface %s: %w", a.podName(), c.IfName, err))
		}
		s.tell(ctx, a, err)
		return nil, err
	}
	s.warn(ctx, a)
	addresses, gateways, routes := a.given.of(c.IfName)
	return printed(resultOfIPAM(addresses, gateways, routes), c.conf.CNIVersion)
}

// ipamOfAttempt answers a plugin of another with what the pod was given.
func ipamOfAttempt(ctx context.Context, a *attempt, c call) (json.RawMessage, error) {
	select {
	case <-a.addressed:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	addresses, gateways, routes := a.given.of(c.IfName)
	if len(addresses) == 0 {
		return nil, coded(cnicall.CodeConfig, fmt.Errorf("pod %s: interface %s was given no addresses: want it among the pod's networks", a.podName(), c.IfName))
	}
	return printed(resultOfIPAM(addresses, gateways, routes), c.conf.CNIVersion)
}

// ipam has the pod of a call addressed, and records that the interface is.
func (s *Server) ipam(ctx context.Context, a *attempt) error {
	c := a.call
	interfaces, err := s.interfacesBelow(ctx, c, a.pod)
	if err != nil {
		return err
	}
	if had, ok := s.config.Records.Get(c.ContainerID); ok {
		a.att = had
	}
	a.att.State = record.Attached
	a.att.Key = record.Key{PodUID: string(a.pod.UID), Sandbox: c.ContainerID}
	a.att.Networks = slices.DeleteFunc(a.att.Networks, func(n record.Network) bool { return n.Interface == c.IfName })
	a.att.Networks = append(a.att.Networks, record.Network{Name: c.conf.Name, Interface: c.IfName, From: fromBelow, Default: c.IfName == "eth0"})
	if a.given, err = s.assign(ctx, a.key(), a.pod, interfaces); err != nil {
		return err
	}
	a.att.Sequence = a.given.assignment.Sequence
	if err := s.keep(a); err != nil {
		return errors.Join(err, s.forgetIPAM(ctx, a))
	}
	addresses, _, _ := a.given.of(c.IfName)
	if len(addresses) == 0 {
		return errors.Join(coded(cnicall.CodeConfig, errors.New("it is not among the interfaces that were given addresses with the pod's first one: want the network in the pod's annotation")), s.forgetIPAM(ctx, a))
	}
	if err := s.probeBelow(ctx, a, addresses); err != nil {
		return errors.Join(err, s.forgetIPAM(ctx, a))
	}
	return s.await(ctx, a)
}

// forgetIPAM gives all addresses of a sandbox back whose ADD failed: the pod's
// runtime takes away what it has.
func (s *Server) forgetIPAM(ctx context.Context, a *attempt) error {
	undo, stop := detached(ctx)
	defer stop()
	return s.takeAway(undo, a.call, a.att, a.quarantine)
}

// interfacesBelow are the pod's interfaces. The one that is asked for says itself
// what it wants; others are those of the pod's annotations.
func (s *Server) interfacesBelow(ctx context.Context, c call, pod *metav1.PartialObjectMetadata) ([]selection.Interface, error) {
	config := s.config.Selection
	config.Interface = "eth0"
	selected, err := npwg.Networks(npwg.Pod{Namespace: pod.Namespace, Name: pod.Name, Annotations: pod.Annotations}, config)
	if err != nil {
		return nil, coded(cnicall.CodeConfig, err)
	}
	var list []selection.Interface
	found := false
	for _, one := range selected {
		i := selection.Interface{Name: one.Interface, IPs: one.IPs, Network: types.NamespacedName{Namespace: one.Namespace, Name: one.Name}}
		text := string(c.Config)
		if mine := one.Interface == c.IfName; mine {
			found = true
		} else if text, err = s.configBelow(ctx, one); err != nil {
			return nil, err
		}
		if err := take(&i, text); err != nil {
			return nil, coded(cnicall.CodeConfig, err)
		}
		list = append(list, i)
	}
	if !found {
		i := selection.Interface{Name: c.IfName}
		if err := take(&i, string(c.Config)); err != nil {
			return nil, coded(cnicall.CodeConfig, err)
		}
		list = append(list, i)
	}
	return list, nil
}

// configBelow is the configuration of a network of the pod; "" for the cluster's
// own, which the other runtime knows.
func (s *Server) configBelow(ctx context.Context, one npwg.Selected) (string, error) {
	if one.Name == "" {
		return "", nil
	}
	chain, err := s.chainOf(ctx, one)
	if err != nil {
		return "", configured(err)
	}
	return configOf(chain)
}

// take has an interface take what a configuration says of addresses.
func take(i *selection.Interface, text string) error {
	if text == "" {
		return nil
	}
	if err := i.Configure(text); err != nil {
		return err
	}
	if i.Pools.MatchMasterSubnet {
		i.Parent = parentOf(attach.Link{Parent: attach.Parent{Name: masterOf(text)}})
	}
	return nil
}

// masterOf is the netdev that a configuration names first: an ifacer in front of a
// chain names none; "" if none does.
func masterOf(text string) string {
	var conf struct {
		Master  string `json:"master"`
		Plugins []struct {
			Master string `json:"master"`
		} `json:"plugins"`
	}
	if json.Unmarshal([]byte(text), &conf) != nil {
		return ""
	}
	for _, p := range conf.Plugins {
		conf.Master = cmp.Or(conf.Master, p.Master)
	}
	return conf.Master
}

// delIPAM gives the addresses of a sandbox back with its last interface. A plugin
// of another that we run ourselves may ask, too: its addresses go with the pod's.
func (s *Server) delIPAM(ctx context.Context, c call) error {
	if att, ok := s.config.Records.Get(c.ContainerID); !ok || !isBelow(att) {
		return nil
	}
	unlock, err := s.sandboxes.lock(ctx, c.ContainerID)
	if err != nil {
		return coded(cnicall.CodeTryAgain, fmt.Errorf("another call for sandbox %s is still under way: %w", c.ContainerID, err))
	}
	defer unlock()
	att, ok := s.config.Records.Get(c.ContainerID)
	if !ok {
		return nil
	}
	att.Networks = slices.DeleteFunc(att.Networks, func(n record.Network) bool { return n.Interface == c.IfName })
	if len(att.Networks) == 0 {
		undo, stop := detached(ctx)
		defer stop()
		return s.takeAway(undo, c, att, nil)
	}
	if _, err := s.config.Records.Put(att); err != nil {
		s.log.Warn("that an interface gave its addresses back is not recorded: they go with the pod's last", "sandbox", c.ContainerID, "error", err)
	}
	return nil
}

// delRecord takes away what a record has: what an interface stands on, or a pod's
// routes, with the first interface that goes, as none stays without the others.
func (s *Server) delRecord(ctx context.Context, c call, id string) error {
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

// checkIPAM says whether an interface has addresses.
func (s *Server) checkIPAM(c call) error {
	att, ok := s.config.Records.Get(c.ContainerID)
	if ok && slices.ContainsFunc(att.Networks, func(n record.Network) bool { return n.Interface == c.IfName }) {
		return nil
	}
	return coded(cnicall.CodeContainer, fmt.Errorf("sandbox %s: interface %s was given no addresses", c.ContainerID, c.IfName))
}
