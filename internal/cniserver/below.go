package cniserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/selection"
	"railhead/internal/kernel/rtnl"
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
	unlock, err := s.lockIPAM(ctx, c)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.sandboxes.interruptible(ipamID(c.ContainerID), cancel)
	a, err := s.begin(ctx, c)
	defer a.end()
	if err == nil {
		s.replace(ctx, a)
		err = s.ipam(ctx, a)
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errInterrupted) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		if a.pod != nil && !isPodNamed(err) {
			err = coded(codeOf(err), fmt.Errorf("pod %s: interface %s: %w", a.podName(), c.IfName, err))
		}
		s.tell(ctx, a, err)
		return nil, err
	}
	s.warn(ctx, a)
	return printed(resultOfIPAM(a.given.of(c.IfName)), c.conf.CNIVersion)
}

// ipamID is what calls of IPAM of a sandbox lock before they lock the sandbox itself:
// the agent has that one locked while it runs plugins, which make such calls.
func ipamID(sandbox string) string { return sandbox + "/" + pluginIPAM }

// lockIPAM has a call of IPAM be alone with its sandbox.
func (s *Server) lockIPAM(ctx context.Context, c call) (unlock func(), err error) {
	first, err := s.lock(ctx, ipamID(c.ContainerID))
	if err != nil {
		return nil, err
	}
	second, err := s.lock(ctx, c.ContainerID)
	if err != nil {
		first()
		return nil, err
	}
	return func() { second(); first() }, nil
}

// ipamOfAttempt answers a plugin of another with what the pod was given.
func ipamOfAttempt(ctx context.Context, a *attempt, c call) (json.RawMessage, error) {
	select {
	case <-a.addressed:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	result := resultOfIPAM(a.given.of(c.IfName))
	if len(result.IPs) == 0 {
		return nil, coded(cnicall.CodeConfig, fmt.Errorf("pod %s: interface %s was given no addresses: want it among the pod's networks", a.podName(), c.IfName))
	}
	return printed(result, c.conf.CNIVersion)
}

// ipam has the pod of a call addressed, and records what the interface is given.
func (s *Server) ipam(ctx context.Context, a *attempt) error {
	interfaces, err := s.interfacesBelow(ctx, a.call, a.pod)
	if err != nil {
		return err
	}
	if own, ok := s.config.Records.Get(a.call.ContainerID); ok && !isBelow(own) {
		return coded(cnicall.CodeConfig, fmt.Errorf("sandbox %s was attached by %s: want all of its interfaces attached by that, or none", own.ContainerID, ownPlugin))
	}
	had, err := s.goOn(ctx, a, a.call.ContainerID)
	if err != nil {
		return err
	}
	a.att.State = record.Attached
	a.att.Key = record.Key{PodUID: string(a.pod.UID), Sandbox: a.call.ContainerID}
	if err := s.addressBelow(ctx, a, interfaces); err != nil {
		return failed(err, s.forgetIPAM(ctx, a, had))
	}
	return nil
}

// goOn has an attempt go on from the record that earlier calls for the sandbox left, and
// returns that; without a ContainerID if there is none. What was not done to its end,
// or is of another network namespace, is taken away.
func (s *Server) goOn(ctx context.Context, a *attempt, id string) (had record.Attachment, err error) {
	had, ok := s.config.Records.Get(id)
	if !ok {
		return record.Attachment{}, nil
	}
	if had.State == record.Attached && had.Newer == 0 && !had.PlanLost && had.ID == a.att.ID && had.BootID == a.att.BootID {
		a.att = had
		a.att.Networks = slices.Clone(had.Networks)
		return had, nil
	}
	undo, stop := detached(ctx)
	defer stop()
	if err := s.takeAway(undo, a.call, had, nil); err != nil {
		return record.Attachment{}, fmt.Errorf("what an earlier attempt left: %w", err)
	}
	return record.Attachment{}, nil
}

// addressBelow has all interfaces of a pod addressed, or finds that they are, records
// what the one that is asked for has, and asks on the wire about that.
func (s *Server) addressBelow(ctx context.Context, a *attempt, interfaces []selection.Interface) error {
	name := a.call.IfName
	var err error
	if a.given, err = s.assign(ctx, a.key(), a.pod, interfaces); err != nil {
		return err
	}
	addresses, gateways, routes := a.given.of(name)
	if len(addresses) == 0 {
		return coded(cnicall.CodeConfig, errors.New("it is not among the interfaces that were given addresses with the pod's first one: want the network in the pod's annotation"))
	}
	if pool, is := a.given.elsewhere[name]; is {
		return coded(cnicall.CodeConfig, fmt.Errorf("it was given an address of SpiderIPPool %s with the pod's first interface, and its network %s takes none of that: "+
			"want interfaces named as the pod's annotation has them, in its order, or by their names: who attaches more, such as defaultNetworks of Multus, counts otherwise", pool, a.call.conf.Name))
	}
	client, err := s.config.Dial(&rtnl.Config{NetNS: a.ns.FD()})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all was answered
	link, err := linkBelow(client, name)
	if err != nil {
		return err
	}
	if err := s.keepBelow(a, resultOfIPAM(addresses, gateways, routes)); err != nil {
		return err
	}
	if err := s.probeBelow(ctx, a, client, link, addresses); err != nil {
		return err
	}
	if err := s.await(ctx, a); err != nil {
		return err
	}
	return context.Cause(ctx) // nobody waits for it any more
}

// keepBelow records what an interface is given.
func (s *Server) keepBelow(a *attempt, result *types100.Result) error {
	name := a.call.IfName
	told, err := json.Marshal(result)
	if err != nil {
		return err
	}
	element, err := elementOf(a.call.Config)
	if err != nil {
		return err
	}
	a.att.Sequence = a.given.assignment.Sequence
	a.att.Report.Checks = slices.DeleteFunc(slices.Clone(a.att.Report.Checks), func(c record.Check) bool { return c.Interface == name }) // it is asked again
	a.att.Networks = slices.DeleteFunc(a.att.Networks, func(n record.Network) bool { return n.Interface == name })
	a.att.Networks = append(a.att.Networks, record.Network{
		Name: a.call.conf.Name, Interface: name, From: fromBelow, Default: name == "eth0",
		Delegated: []record.Delegate{{Type: pluginIPAM, IfName: name, Config: element, Result: told, Chain: atBelow}},
	})
	if err := s.keep(a); err != nil {
		return err
	}
	s.noteGone(a.att.ContainerID, name, false)
	return nil
}

// interfacesBelow are the pod's interfaces. The one that is asked for says itself
// what it wants; others are those of the pod's annotations.
func (s *Server) interfacesBelow(ctx context.Context, c call, pod *metav1.PartialObjectMetadata) ([]selection.Interface, error) {
	config := s.config.Selection
	config.Interface = "eth0"
	selected, err := npwg.Networks(npwg.Pod{Namespace: pod.Namespace, Name: pod.Name, Annotations: pod.Annotations}, config)
	if err != nil {
		return nil, coded(cnicall.CodeConfig, podNamed{err})
	}
	reading, stop := context.WithTimeout(ctx, readMost)
	defer stop()
	read := onceEach(s.config.ReadNAD)
	var list []selection.Interface
	found := false
	for _, one := range selected {
		i := selection.Interface{Name: one.Interface, IPs: one.IPs, Network: types.NamespacedName{Namespace: one.Namespace, Name: one.Name}}
		text := string(c.Config)
		if mine := one.Interface == c.IfName; mine {
			found = true
		} else if text, err = s.configBelow(reading, one, read); err != nil {
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
func (s *Server) configBelow(ctx context.Context, one npwg.Selected, read readNAD) (string, error) {
	if one.Name == "" {
		return "", nil
	}
	chain, err := s.chainOf(ctx, one, read)
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

// delRecord takes away what a record has: what an interface stands on, or a pod's
// routes, with the first interface that goes, as none stays without the others.
func (s *Server) delRecord(ctx context.Context, c call, id string) error {
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return err
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
