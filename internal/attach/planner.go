package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

// firstIndex is that of the first link that is made in a pod. It is beyond what
// kernels count up to, one for each link that was ever made: links that come
// later on their own do not take it, and kernels before 6.14 want it to be free
// on the node too, which may have had a million in a year of short jobs.
const firstIndex = 1_000_000_000

// planner is a pod that is being planned.
type planner struct {
	a     *Attacher
	pod   *rtnl.Client         // in its namespace, where the calling thread is too
	links []rtnl.Link          // in the pod
	node  map[string]rtnl.Link // as far as they were asked for, by name
	plan  *Plan
	notes []string
}

// Plan says what is to be done for a pod. It reads the pod's namespace and the
// node and changes nothing. Errors name interface, field and value.
func (a *Attacher) Plan(ctx context.Context, pod Pod) (*Plan, error) {
	ns, err := netns.Open(pod.NetNS)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ns.Close() }()
	if ns.ID() == a.home.ID() {
		return nil, fmt.Errorf("network namespace %s: it is the node's: want a pod's", pod.NetNS)
	}
	pod.Interfaces = slices.Clone(pod.Interfaces) // what of them is found out is filled in
	p := &planner{a: a, plan: &Plan{
		Version: Version, ContainerID: pod.ContainerID, NetNS: pod.NetNS, ID: ns.ID(),
	}}
	node := make(chan map[string]rtnl.Link, 1)
	go func() {
		links, _ := a.node.LinksByName(pod.onNode()...) // what is missing is asked for again, and says why
		node <- links
	}()
	// One thread goes there once.
	if err := ns.Do(func() error { return p.inside(ctx, pod, node) }); err != nil {
		return nil, err
	}
	return p.plan, nil
}

// onNode are the node's links that a pod stands on or is reached by, by name.
func (p *Pod) onNode() []string {
	var names []string
	if p.Peer.Name != "" {
		names = append(names, p.Peer.Name)
	}
	for _, i := range p.Interfaces {
		if name := i.Link.Parent.Name; name != "" && !i.Link.InContainer && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// inside plans on a thread in the pod's namespace, with links of the node that come
// meanwhile.
func (p *planner) inside(ctx context.Context, pod Pod, node <-chan map[string]rtnl.Link) (err error) {
	if p.pod, err = p.a.config.Dial(&rtnl.Config{}); err != nil {
		return fmt.Errorf("netlink in %s: %w", pod.NetNS, err)
	}
	defer func() { _ = p.pod.Close() }()
	if p.plan.Cookie, err = p.pod.Cookie(); err != nil {
		return fmt.Errorf("network namespace %s: %w", pod.NetNS, err)
	}
	if p.links, err = p.pod.Links(); err != nil {
		return fmt.Errorf("links in %s: %w", pod.NetNS, err)
	}
	p.node = <-node
	return p.all(ctx, pod)
}

// all plans everything.
func (p *planner) all(ctx context.Context, pod Pod) error {
	routed, err := p.interfaces(ctx, pod)
	if err := errors.Join(err, p.parents(pod.Parents)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if pod.Peer.Name == "" {
		pod.Peer = p.findPeer(routed)
	}
	nodes := pod.NodeAddresses
	if nodes == nil && slices.ContainsFunc(routed, func(i routing.Interface) bool { return i.Coordinator != nil }) {
		if nodes, err = p.a.NodeAddresses(); err != nil {
			return err
		}
	}
	p.plan.Routing, err = routing.Plan(routing.Pod{
		ContainerID: pod.ContainerID, Interfaces: routed, NodeAddresses: nodes, Peer: pod.Peer,
	})
	if err != nil {
		return err
	}
	if err := p.peer(pod.Peer); err != nil {
		return err
	}
	p.finishLinks()
	if err := errors.Join(p.macs(), p.settings(pod), p.removed()); err != nil {
		return err
	}
	return p.before()
}

// interfaces plans the links, and returns the pod's interfaces as they are
// to be routed. Errors are of all of them.
func (p *planner) interfaces(ctx context.Context, pod Pod) ([]routing.Interface, error) {
	if err := p.foreign(pod.Interfaces); err != nil {
		return nil, err
	}
	var routed []routing.Interface
	var errs []error
	for _, i := range pod.Interfaces {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		planned := PlannedInterface{
			Name: i.Name, Kind: i.Link.Kind, Mode: i.Link.Mode, VLANID: i.Link.VLANID,
			Rail: i.Rail, MTU: i.Link.MTU, TxQueueLen: i.Tuning.TxQueueLen,
			Promisc: i.Tuning.Promisc, AllMulti: i.Tuning.AllMulti,
		}
		if i.Tuning.MTU != 0 {
			planned.MTU = i.Tuning.MTU
		}
		if i.Tuning.MAC != nil {
			i.MAC = i.Tuning.MAC
		}
		if err := p.link(&i, &planned); err != nil {
			errs = append(errs, fmt.Errorf("interface %s: %w", i.Name, err))
			continue
		}
		planned.Addresses, planned.Gateways = i.Addresses, i.Gateways
		p.plan.Interfaces = append(p.plan.Interfaces, planned)
		routed = append(routed, i.Interface)
	}
	return routed, errors.Join(errs...)
}

// inPod is the pod's link of a name.
func (p *planner) inPod(name string) (rtnl.Link, bool) {
	for _, l := range p.links {
		if l.Name == name || slices.Contains(l.AltNames, name) {
			return l, true
		}
	}
	return rtnl.Link{}, false
}

// onNode is the node's link of a name.
func (p *planner) onNode(name string) (rtnl.Link, error) {
	if l, ok := p.node[name]; ok {
		return l, nil
	}
	l, err := p.a.node.LinkByName(name)
	if err != nil {
		return l, err
	}
	p.node[name] = l
	return l, nil
}

// peer finds the node's end of a foreign interface.
func (p *planner) peer(peer routing.Peer) error {
	if peer.Name == "" || p.plan.Routing.Veth != nil {
		return nil
	}
	l, err := p.onNode(peer.Name)
	if err != nil {
		return fmt.Errorf("the node's end %s of the default network's interface: %w", peer.Name, err)
	}
	p.plan.Before.PeerIndex = l.Index
	return nil
}

// findPeer is the node's end of the default network's interface, if that is a
// pair of veth: each end says the other's number.
func (p *planner) findPeer(routed []routing.Interface) routing.Peer {
	for _, i := range routed {
		inside, ok := p.inPod(i.Name)
		if !ok || !i.IsDefaultNetwork || inside.Kind != kindVeth || inside.ParentNetNS == nil {
			continue
		}
		l, err := p.a.node.Link(inside.ParentIndex)
		if err != nil || l.Kind != kindVeth || l.ParentNetNS == nil || l.ParentIndex != inside.Index {
			continue // it is somewhere else, and the node reaches the pod by the network
		}
		return routing.Peer{Name: l.Name, MAC: macOf(l.Address)}
	}
	return routing.Peer{}
}

// kindVeth is the kernel's name of pairs of links.
const kindVeth = "veth"

// NodeAddresses are the node's own: those of its hardware, bonds and VLANs, in
// the order in which the kernel lists them.
func (a *Attacher) NodeAddresses() ([]netip.Addr, error) {
	addresses, err := a.node.Addresses()
	if err != nil {
		return nil, fmt.Errorf("addresses of the node: %w", err)
	}
	own := map[int]bool{} // of the few links that have any: a node has a link for each pod
	all := []netip.Addr{}
	for _, addr := range addresses {
		ip := addr.Prefix.Addr()
		if addr.Scope != "global" || ip.IsLoopback() || slices.Contains(all, ip) {
			continue
		}
		if _, asked := own[addr.LinkIndex]; !asked {
			l, err := a.node.Link(addr.LinkIndex)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("links of the node: %w", err)
			}
			own[addr.LinkIndex] = err == nil && l.Up && slices.Contains([]string{"", "bond", "vlan", "team", "ipoib"}, l.Kind)
		}
		if own[addr.LinkIndex] {
			all = append(all, ip)
		}
	}
	return all, nil
}
