package routing

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"railhead/api/spiderpool/v2beta1"
)

// Numbers of the pod's tables and rules; see the package comment.
const (
	tableRails   = 100
	tableDefault = 99
	tableAnswers = 98

	priorityAnswers = 1000
	priorityDefault = 32600
	priorityRails   = 32758
	railsInARow     = 8

	priorityHost = 1000
)

// Names and marks of the pair between pod and node.
const (
	podVeth        = "veth0"
	hostVethPrefix = "veth"
	hostVethID     = 11 // characters of the container's ID
	answerMark     = 0x1
)

// planner is a pod that is being planned: what was decided of it, then the
// result as far as it got.
type planner struct {
	pod        Pod
	interfaces []Interface       // sorted
	first      *Interface        // the default network's; nil if there is none
	modes      map[string]string // by interface
	actives    []Interface       // those that are coordinated
	underlay   bool
	defaultOf  map[family]string // interface with main's default; "" if none
	over       map[family]path   // how the node is reached

	veth   *Veth
	taken  map[destination][]Route // of the pod, also those that others made
	result Result
}

// path is how a family gets over the node: by a link of the pod, to one of its addresses.
type path struct {
	dev   string
	via   netip.Addr   // zero: the destinations are as if on the link
	src   netip.Addr   // of what is sent from no address of its own
	nodes []netip.Addr // of the node
}

// destination is of the routes of a table.
type destination struct {
	table uint32
	dst   netip.Prefix
}

// Plan says how a pod routes. It is pure: the same Pod has the same Result, in
// any order of its interfaces. An error says what would be accepted, and then
// there is no part of a Result.
func Plan(pod Pod) (Result, error) {
	if err := pod.validate(); err != nil {
		return Result{}, err
	}
	p := &planner{
		pod:        pod,
		interfaces: pod.sorted(),
		modes:      map[string]string{},
		defaultOf:  map[family]string{},
		over:       map[family]path{},
		taken:      map[destination][]Route{},
	}
	if len(p.interfaces) > 0 && p.interfaces[0].IsDefaultNetwork {
		p.first = &p.interfaces[0]
	}
	if err := errors.Join(p.resolveModes(), p.chooseDefault(), p.checkPolicyRoutes()); err != nil {
		return Result{}, err
	}
	if err := p.planVeth(); err != nil {
		return Result{}, err
	}
	p.findNode()
	p.noteUnused()
	p.planLinks()
	p.planAddresses()
	p.planMain()
	for _, i := range p.interfaces {
		p.planTable(i)
	}
	p.planAnswers()
	p.planNeighbours()
	p.planHost()
	p.planSysctls()
	sortRoutes(p.result.Pod.Routes)
	sortRoutes(p.result.Host.Routes)
	sortRules(p.result.Pod.Rules)
	sortRules(p.result.Host.Rules)
	return p.result, nil
}

// resolveModes decides for each interface whether the pod's first interface is
// a rail (underlay) or the cluster network's (overlay).
func (p *planner) resolveModes() error {
	if p.first != nil && p.first.Coordinator != nil {
		p.underlay = p.first.Coordinator.Mode == v2beta1.ModeAuto || p.first.Coordinator.Mode == v2beta1.ModeUnderlay
	}
	var errs []error
	for _, i := range p.interfaces {
		if i.Coordinator == nil {
			continue
		}
		mode, err := p.modeOf(i)
		if err != nil {
			errs = append(errs, fmt.Errorf("interface %s: mode %q: %w", i.Name, i.Coordinator.Mode, err))
		}
		if p.modes[i.Name] = mode; p.active(i) {
			p.actives = append(p.actives, i)
		}
	}
	return errors.Join(errs...)
}

func (p *planner) modeOf(i Interface) (string, error) {
	switch i.Coordinator.Mode {
	case v2beta1.ModeDisabled:
		return v2beta1.ModeDisabled, nil
	case v2beta1.ModeAuto:
		if p.underlay {
			return v2beta1.ModeUnderlay, nil
		}
		return v2beta1.ModeOverlay, nil
	case v2beta1.ModeUnderlay:
		if !p.underlay {
			return "", errors.New("the pod's first interface is the cluster network's: want auto or overlay")
		}
		return v2beta1.ModeUnderlay, nil
	case v2beta1.ModeOverlay:
		if i.IsDefaultNetwork {
			return "", errors.New("it is the pod's first interface itself: want auto or underlay")
		}
		if p.underlay {
			return "", fmt.Errorf("the pod's first interface %s is a network of this kind too: want auto or underlay", p.first.Name)
		}
		return v2beta1.ModeOverlay, nil
	}
	return "", errors.New("want auto, underlay, overlay or disabled")
}

// active says whether an interface is coordinated and not disabled.
func (p *planner) active(i Interface) bool {
	return p.modes[i.Name] == v2beta1.ModeUnderlay || p.modes[i.Name] == v2beta1.ModeOverlay
}

// chooseDefault decides whose default route the main table has: per family, that
// of the interface that somebody names, if it has one, else the default network's.
func (p *planner) chooseDefault() error {
	chosen, err := p.named()
	if err != nil {
		return err
	}
	for _, f := range families() {
		switch {
		case chosen != nil && chosen.gateway(f).IsValid():
			p.defaultOf[f] = chosen.Name
		case p.first != nil && p.first.gateway(f).IsValid():
			p.defaultOf[f] = p.first.Name
		}
	}
	return nil
}

// named is the interface that the most particular of the pod's coordinators
// names for the default route, nil if none does.
func (p *planner) named() (*Interface, error) {
	var by *Interface
	for _, i := range p.actives {
		switch o := i.Coordinator; {
		case o.DefaultRouteNIC == "" || by != nil && by.Coordinator.DefaultRouteFrom > o.DefaultRouteFrom:
		case by == nil || by.Coordinator.DefaultRouteFrom < o.DefaultRouteFrom:
			by = &i
		case by.Coordinator.DefaultRouteNIC != o.DefaultRouteNIC:
			return nil, fmt.Errorf("podDefaultRouteNIC: the network of %s says %q, that of %s says %q: want the same, or the annotation %s",
				by.Name, by.Coordinator.DefaultRouteNIC, i.Name, o.DefaultRouteNIC, v2beta1.AnnotationDefaultRouteNIC)
		}
	}
	if by == nil {
		return nil, nil
	}
	o := by.Coordinator
	field := "podDefaultRouteNIC of " + o.DefaultRouteFrom.String()
	if o.DefaultRouteFrom == FromPod {
		field = o.DefaultRouteFrom.String()
	}
	var names []string
	for n := range p.interfaces {
		chosen := &p.interfaces[n]
		if names = append(names, chosen.Name); chosen.Name != o.DefaultRouteNIC {
			continue
		}
		if !chosen.IsDefaultNetwork && !chosen.gateway(ipv4).IsValid() && !chosen.gateway(ipv6).IsValid() {
			return nil, fmt.Errorf("%s is %q: the interface has no gateway: want one that has, or a gateway in its pool", field, o.DefaultRouteNIC)
		}
		return chosen, nil
	}
	return nil, fmt.Errorf("%s is %q: the pod has no such interface: want one of %s", field, o.DefaultRouteNIC, strings.Join(names, ", "))
}

// checkPolicyRoutes refuses what a network says and what cannot work there.
func (p *planner) checkPolicyRoutes() error {
	var errs []error
	for _, i := range p.actives {
		for _, r := range i.Coordinator.PolicyRoutes {
			if i.Coordinator.PolicyRoutesFrom != FromCluster && i.has(familyOf(r.Gw)) && !i.reaches(r.Gw) {
				errs = append(errs, fmt.Errorf("interface %s: policyRoutes: %s over %s: want a gateway on one of its subnets %v",
					i.Name, r.Dst, r.Gw, append(i.subnets(ipv4), i.subnets(ipv6)...)))
			}
		}
	}
	return errors.Join(errs...)
}

// noteUnused tells of what is said in vain.
func (p *planner) noteUnused() {
	unready, used := "", map[policyRoute]bool{}
	var routes []policyRoute
	for _, i := range p.actives {
		if unready == "" {
			unready = i.Coordinator.Unready
		}
		for _, r := range i.Coordinator.PolicyRoutes {
			if _, known := used[r]; !known {
				routes, used[r] = append(routes, r), false
			}
			used[r] = used[r] || i.has(familyOf(r.Gw)) && i.reaches(r.Gw)
		}
	}
	if unready != "" {
		p.note("", "SpiderCoordinator default is not ready (%s): pods and Services may be looked for on a rail", unready)
	}
	for _, r := range routes {
		if !used[r] {
			p.note("", "policyRoutes: %s over %s is left out: no interface has a subnet with that gateway", r.Dst, r.Gw)
		}
	}
}

// planVeth makes the pair between pod and node that a pod without one needs.
func (p *planner) planVeth() error {
	if !p.underlay {
		return nil
	}
	o := p.first.Coordinator
	if o.Unready != "" {
		return fmt.Errorf("interface %s: SpiderCoordinator default is not ready (%s), and Services would be looked for on its network: want phase Synced, or overlayPodCIDR and serviceCIDR in the network's coordinator", p.first.Name, o.Unready)
	}
	id := p.pod.ContainerID
	host := hostVethPrefix + id[:min(len(id), hostVethID)]
	if id == "" || !isName(host) {
		return fmt.Errorf("container ID %q: want one that can name the node's link %s…", id, hostVethPrefix)
	}
	p.veth = &Veth{
		Owner: p.first.Name, PodName: podVeth, HostName: host,
		PodMAC: vethMAC(id, podVeth), HostMAC: vethMAC(id, host), MTU: o.VethMTU,
	}
	p.result.Veth = p.veth
	for _, f := range families() {
		if p.first.has(f) && len(p.nodes(f)) > 0 {
			return nil
		}
	}
	return fmt.Errorf("node addresses %v: want one of a family of %s, whose addresses are %v", p.pod.NodeAddresses, p.first.Name, p.first.Addresses)
}

// nodes are the node's addresses of a family that the pod reaches over it: not
// those that are a gateway of the pod's, which is reached by its own link, nor
// the pod's own.
func (p *planner) nodes(f family) []netip.Addr {
	var all []netip.Addr
	for _, a := range p.pod.NodeAddresses {
		mine := slices.ContainsFunc(p.interfaces, func(i Interface) bool {
			return i.owns(a) || slices.Contains(i.Gateways, a) ||
				slices.ContainsFunc(i.Routes, func(r policyRoute) bool { return r.Gw == a })
		})
		if familyOf(a) == f && isHost(a) && !a.IsLinkLocalUnicast() && !mine && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// findNode decides how each family gets over the node, if it can.
func (p *planner) findNode() {
	if p.first == nil || len(p.actives) == 0 {
		return
	}
	for _, f := range families() {
		if !p.first.has(f) {
			p.noteUnreached(f)
			continue
		}
		over := path{dev: p.first.Name, src: p.first.source(f), nodes: p.nodes(f)}
		switch {
		case len(over.nodes) > 0:
			over.via = over.nodes[0]
		case p.underlay:
			p.note(p.first.Name, "the node has no IPv%d address: what is to go over it goes by the interface's gateway", f)
			continue
		default:
			over.via = p.first.gateway(f)
		}
		if p.underlay {
			over.dev = podVeth
		}
		p.over[f] = over
	}
}

// noteUnreached tells of interfaces with a family that the first has not.
func (p *planner) noteUnreached(f family) {
	for _, i := range p.actives {
		if i.has(f) {
			p.note(i.Name, "%s has no IPv%d address: nothing of IPv%d goes over the node", p.first.Name, f, f)
		}
	}
}

// tableOf is an interface's own table, 0 if it has none: where nothing is
// coordinated or its routes are not to be tuned, and where the default
// network's is the only interface, whose table is main.
func (p *planner) tableOf(i Interface) uint32 {
	switch {
	case !i.IsDefaultNetwork:
		if p.active(i) && i.Coordinator.TunePodRoutes {
			return tableRails + uint32(i.Rail)
		}
	case len(p.interfaces) < 2:
	case p.active(i):
		if i.Coordinator.TunePodRoutes {
			return tableDefault
		}
	case i.Coordinator == nil:
		if slices.ContainsFunc(p.actives, func(i Interface) bool { return i.Coordinator.TunePodRoutes }) {
			return tableDefault
		}
	}
	return 0
}

// priorityOf is that of an interface's rules.
func priorityOf(i Interface) uint32 {
	if i.IsDefaultNetwork {
		return priorityDefault
	}
	rail := uint32(i.Rail)
	return priorityRails + rail%railsInARow - rail/railsInARow*railsInARow
}

// planLinks says which mode, table and MAC each interface has.
func (p *planner) planLinks() {
	for _, i := range p.interfaces {
		l := Link{Owner: i.Name, Mode: p.modes[i.Name], Table: p.tableOf(i)}
		if p.active(i) {
			l.TxQueueLen = i.Coordinator.TxQueueLen
		}
		l.MAC, l.MACFrom = p.macOf(i)
		p.result.Links = append(p.result.Links, l)
	}
}

// macOf is the MAC address to set, and why it is that.
func (p *planner) macOf(i Interface) (net.HardwareAddr, string) {
	prefixed := p.active(i) && i.Coordinator.MACPrefix != nil
	addr := i.source(ipv4)
	if !addr.IsValid() {
		addr = i.source(ipv6)
	}
	switch {
	case i.SharesMAC:
		if prefixed {
			p.note(i.Name, "podMACPrefix has no effect: the interface has the MAC address of what it is made on")
		}
		return nil, ""
	case i.MAC != nil && !i.Foreign:
		return i.MAC, "asked for"
	case !addr.IsValid():
		return nil, ""
	case prefixed:
		return prefixedMAC(i.Coordinator.MACPrefix, addr), "podMACPrefix"
	case i.Foreign:
		return nil, ""
	}
	rail := i.Rail
	if i.IsDefaultNetwork {
		rail = railOfDefault
	}
	return derivedMAC(rail, addr), "rail and address"
}

// planAddresses lists what is to be set. Those of a Foreign interface are there.
func (p *planner) planAddresses() {
	for _, i := range p.interfaces {
		if i.Foreign {
			continue
		}
		for _, prefix := range i.Addresses {
			p.result.Addresses = append(p.result.Addresses, Address{
				Owner: i.Name, Dev: i.Name, Prefix: prefix,
				NoPrefixRoute: isSubnet(prefix) && p.sharing(prefix) > 1,
			})
		}
	}
	if p.veth != nil && p.first.Coordinator.VethLinkAddress.IsValid() {
		p.result.Addresses = append(p.result.Addresses, Address{
			Owner: p.first.Name, Dev: podVeth, Prefix: single(p.first.Coordinator.VethLinkAddress),
		})
	}
}

// sharing is how many interfaces are on a prefix's subnet.
func (p *planner) sharing(prefix netip.Prefix) int {
	n := 0
	for _, i := range p.interfaces {
		if slices.ContainsFunc(i.Addresses, func(q netip.Prefix) bool { return isSubnet(q) && q.Masked() == prefix.Masked() }) {
			n++
		}
	}
	return n
}

func (p *planner) note(owner, format string, args ...any) {
	p.result.Notes = append(p.result.Notes, Note{Owner: owner, Text: fmt.Sprintf(format, args...)})
}
