package cniserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"railhead/internal/attach"
	"railhead/internal/attach/probe"
	"railhead/internal/attach/record"
	"railhead/internal/attach/routing"
)

// make plans all interfaces of a pod at once, makes those that are ours, and asks
// on the wire whether they can be used.
func (s *Server) make(ctx context.Context, a *attempt) error {
	began := time.Now()
	pod := attach.Pod{ContainerID: a.call.ContainerID, NetNS: a.path}
	for _, n := range a.list {
		if !n.isNative() && n.result != nil {
			n.made.Addresses = addressesIn(n.result)
		}
		pod.Interfaces = append(pod.Interfaces, n.made)
	}
	var err error
	if pod.NodeAddresses, err = s.nodeAddresses(isCoordinated(a.list)); err != nil {
		return err
	}
	plan, err := s.config.Attacher.Plan(ctx, pod)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	a.att.Plan = plan
	if err := s.keep(a); err != nil {
		return err
	}
	a.step(s, "plan", began)
	done, err := s.config.Attacher.Apply(ctx, plan)
	if err != nil {
		return err
	}
	for _, step := range done.Steps {
		s.metrics.steps.WithLabelValues(strings.ReplaceAll(step.Name, " ", "_")).Observe(step.Took.Seconds())
		a.att.Report.Steps = append(a.att.Report.Steps, record.Step(step))
	}
	s.made(a, done)
	return s.probe(ctx, a)
}

// nodeAddresses are the node's own, those that its Node object names first: pods
// send there what goes over the node. Also one on a bridge counts that is named.
// Nil is what the Attacher finds.
func (s *Server) nodeAddresses(wanted bool) ([]netip.Addr, error) {
	_, named := s.config.Cluster.Node()
	if len(named) == 0 || !wanted {
		return nil, nil
	}
	own, err := s.config.Attacher.NodeAddresses()
	if err != nil {
		return nil, err
	}
	var (
		first []netip.Addr
		there []net.Addr // all, looked up only where one is named that is not among those
	)
	for _, addr := range named {
		if !slices.Contains(own, addr) && there == nil {
			if there, err = net.InterfaceAddrs(); err != nil {
				return nil, fmt.Errorf("addresses of the node: %w", err)
			}
		}
		if slices.Contains(own, addr) || slices.ContainsFunc(there, func(a net.Addr) bool { return strings.HasPrefix(a.String(), addr.String()+"/") }) {
			first = append(first, addr)
		}
	}
	own = slices.DeleteFunc(own, func(a netip.Addr) bool { return slices.Contains(first, a) })
	return slices.Concat(first, own), nil
}

// made takes what was made into results, into the record and for the wire.
func (s *Server) made(a *attempt, done *attach.Done) {
	a.att.Plan = completed(a.att.Plan, done)
	for _, m := range done.Interfaces {
		n := a.named(m.Name)
		if n == nil || !n.isNative() {
			continue
		}
		n.result = resultOfInterface(n.made, m, a.call.NetNS)
		a.targets = append(a.targets, s.target(a, n, m))
	}
}

// completed is a plan with what the kernel chose. One that leaves it nothing to
// choose stays as it is, and the record has it already.
func completed(plan *attach.Plan, done *attach.Done) *attach.Plan {
	whole := *plan
	whole.Interfaces = slices.Clone(plan.Interfaces) // which others read
	chosen := false
	for _, m := range done.Interfaces {
		for n := range whole.Interfaces {
			i := &whole.Interfaces[n]
			if i.Name != m.Name || i.Kind == attach.Foreign || i.MAC != "" && i.MTU != 0 {
				continue
			}
			i.MAC, i.MTU = cmp.Or(i.MAC, m.MAC.String()), cmp.Or(i.MTU, m.MTU)
			chosen = true
		}
	}
	if !chosen {
		return plan
	}
	return &whole
}

// named is the network of an interface.
func (a *attempt) named(name string) *network {
	for _, n := range a.list {
		if n.selected.Interface == name {
			return n
		}
	}
	return nil
}

// standsOn is the netdev that an interface stands on.
func (a *attempt) standsOn(name string) string {
	for _, i := range a.att.Plan.Interfaces {
		if i.Name == name {
			return i.Parent
		}
	}
	return ""
}

// target is what is asked on the wire about an interface.
func (s *Server) target(a *attempt, n *network, m attach.Made) probe.Target {
	t := probe.Target{
		Interface: m.Name, Index: m.Index, Rail: n.made.Rail, MAC: m.MAC, Parent: a.standsOn(m.Name), Gateways: n.made.Gateways,
	}
	fresh := false
	for _, prefix := range n.made.Addresses {
		t.Addresses = append(t.Addresses, probe.Address{Addr: prefix.Addr(), Doubtful: a.given.doubtful(prefix.Addr())})
		fresh = fresh || !s.isProven(a, prefix.Addr())
	}
	d := s.detection(n)
	t.Detect = probe.Detection{Gateway: d.Gateway, Conflict: d.Conflict && fresh, Retries: d.Retries, Timeout: d.Timeout, Interval: d.Interval}
	return t
}

// detection is what is asked about an interface: as its coordinator says, without
// one as the cluster says, and nothing where neither addresses nor routes are ours.
func (s *Server) detection(n *network) routing.Detection {
	if n.made.Coordinator != nil {
		return n.made.Coordinator.Detection
	}
	if !n.ipam.Native {
		return routing.Detection{}
	}
	config := s.config.Cluster.Catalog().Config()
	return routing.Detection{Gateway: config.DetectGateway, Conflict: config.DetectConflict}
}

// probe asks for gateways and conflicts of all interfaces at once.
func (s *Server) probe(ctx context.Context, a *attempt) error {
	if !asks(a.targets) {
		return nil
	}
	began := time.Now()
	report, err := s.prober.Run(ctx, a.ns.FD(), a.targets)
	for _, r := range report.Results {
		a.att.Report.Checks = append(a.att.Report.Checks, checkOf(r))
	}
	a.step(s, "checks", began)
	if err != nil {
		return fmt.Errorf("checks on the wire: %w", err)
	}
	a.report = report
	if a.quarantine = report.Conflicts(); len(a.quarantine) > 0 {
		s.countConflicts(a)
	}
	s.prove(a) // also what has no part in a failure
	return report.Err()
}

// asks says whether anything is to be asked.
func asks(targets []probe.Target) bool {
	for _, t := range targets {
		if t.Detect.Conflict || t.Detect.Gateway && len(t.Gateways) > 0 {
			return true
		}
		for _, a := range t.Addresses {
			if a.Doubtful {
				return true
			}
		}
	}
	return false
}

func checkOf(r probe.Result) record.Check {
	c := record.Check{
		Interface: r.Interface, Kind: record.CheckKind(r.Kind), Address: r.Address.String(),
		OK: r.OK, Waited: r.Waited, Tries: r.Tries,
	}
	if len(r.MAC) > 0 {
		c.MAC = r.MAC.String()
	}
	if r.Err != nil {
		c.Error = r.Err.Error()
	}
	return c
}

// countConflicts counts addresses that others were found to have.
func (s *Server) countConflicts(a *attempt) {
	for _, t := range a.targets {
		for _, addr := range t.Addresses {
			if _, is := a.quarantine[addr.Addr]; is {
				s.metrics.conflicts.WithLabelValues(t.Parent).Inc()
			}
		}
	}
}

// finish runs what others' plugins do behind ours, waits for the disk, and makes
// the answer.
func (s *Server) finish(ctx context.Context, a *attempt) (json.RawMessage, error) {
	for i, n := range a.list {
		if !n.isNative() {
			continue
		}
		if err := s.runForeign(ctx, a, i); err != nil {
			return nil, err
		}
	}
	if a.list[0].result == nil {
		return nil, errors.New("the default network has no result")
	}
	answer, err := printed(a.list[0].result, a.call.conf.CNIVersion)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := s.await(ctx, a); err != nil {
		return nil, err
	}
	a.step(s, "record", began)
	if err := context.Cause(ctx); err != nil {
		return nil, err // nobody waits for it any more
	}
	a.att.State, a.att.Answer = record.Attached, answer
	a.att.Report.Took = s.config.Now().Sub(a.began)
	a.att.Report.Notes = append(a.att.Report.Notes, a.given.warnings...)
	return answer, s.note(a)
}
