package routing

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// planAnswers lets answers to what came in by veth0 leave by it.
func (p *planner) planAnswers() {
	if p.veth == nil {
		return
	}
	for _, f := range families() {
		node, ok := p.over[f]
		if !ok {
			continue
		}
		link := Route{Owner: p.first.Name, Why: WhyNode, Table: tableAnswers, Dst: single(node.via), Dev: podVeth}
		if f == ipv4 {
			link.Scope = ScopeLink
		}
		p.add(link)
		p.add(Route{Owner: p.first.Name, Why: WhyAnswer, Table: tableAnswers, Dst: f.everything(), Via: node.via, Dev: podVeth})
		p.result.Pod.Rules = append(p.result.Pod.Rules, Rule{
			Owner: p.first.Name, Family: int(f), Priority: priorityAnswers, Mark: answerMark, Mask: answerMark, Table: tableAnswers,
		})
	}
	p.result.Marks = &Marks{
		Owner: p.first.Name, Dev: podVeth, Mark: answerMark, Mask: answerMark,
		Reason:   "the node sends clients' own addresses to the pod over " + podVeth + ", and translates only those answers back that it sees",
		NFTables: nftables(podVeth, answerMark),
	}
}

// nftables marks the connections that begin at dev, and what is sent of them.
func nftables(dev string, mark uint32) string {
	return fmt.Sprintf(`table inet railhead {
	chain prerouting {
		type filter hook prerouting priority mangle; policy accept;
		iifname %q ct state new ct mark set ct mark or %#x
		iifname %q ct mark and %#x == %#x meta mark set meta mark or %#x
	}
	chain output {
		type route hook output priority mangle; policy accept;
		ct mark and %#x == %#x meta mark set meta mark or %#x
	}
}
`, dev, mark, dev, mark, mark, mark, mark, mark, mark)
}

// peer is the node's end of the pod's link over it, and the MAC address of the
// pod's end: our pair's, or that of another's plugin as far as it is known.
func (p *planner) peer() (host Peer, pod net.HardwareAddr) {
	if p.veth != nil {
		return Peer{p.veth.HostName, p.veth.HostMAC}, p.veth.PodMAC
	}
	if p.first == nil {
		return Peer{}, nil
	}
	return p.pod.Peer, p.first.MAC
}

// planNeighbours makes the node's addresses known in the pod: nobody need
// answer for them on that link.
func (p *planner) planNeighbours() {
	host, _ := p.peer()
	if len(host.MAC) == 0 {
		return
	}
	for _, f := range families() {
		for _, a := range p.over[f].nodes {
			p.result.Pod.Neighbours = append(p.result.Pod.Neighbours, Neighbour{
				Owner: p.first.Name, Dev: p.over[f].dev, IP: a, MAC: host.MAC,
			})
		}
	}
}

// planHost leads the node to the addresses that the pod was given, by the pod's link
// over it. With one that a pod takes itself it would have what is another's.
func (p *planner) planHost() {
	host, podMAC := p.peer()
	ruled := map[Rule]bool{}
	for _, i := range p.actives {
		if i.IsDefaultNetwork && !p.underlay {
			continue
		}
		if host.Name == "" {
			p.note(i.Name, "the node's end of the pod's first interface is not known: the node reaches %s by its network only", i.Name)
			continue
		}
		for _, f := range families() {
			if _, ok := p.over[f]; !ok {
				continue
			}
			given := i.given(f)
			for _, a := range given {
				p.planHostAddress(i, a, host.Name, podMAC)
			}
			p.noteNotGiven(i, f, len(given))
			rule := Rule{Family: int(f), Priority: priorityHost, Table: i.Coordinator.HostRuleTable, Shared: true}
			if len(given) > 0 && !ruled[rule] {
				ruled[rule] = true
				rule.Owner = i.Name
				p.result.Host.Rules = append(p.result.Host.Rules, rule)
			}
		}
	}
}

// noteNotGiven tells of an interface that has more addresses of a family than it was
// given, of which it may have taken thousands.
func (p *planner) noteNotGiven(i Interface, f family, given int) {
	all := i.sources(f)
	if len(all) == given {
		return
	}
	at := slices.IndexFunc(all, func(q netip.Prefix) bool { return i.NotGiven[q.Addr()] })
	p.note(i.Name, "%d of its IPv%d addresses, such as %s, are in no plugin's result: the node reaches them by its network only", len(all)-given, f, all[at].Addr())
}

// planHostAddress leads the node to one address.
func (p *planner) planHostAddress(i Interface, a netip.Addr, dev string, mac net.HardwareAddr) {
	r := Route{Owner: i.Name, Why: WhyPod, Table: i.Coordinator.HostRuleTable, Dst: single(a), Dev: dev}
	if a.Is4() {
		r.Scope = ScopeLink
	}
	p.result.Host.Routes = append(p.result.Host.Routes, r)
	if len(mac) > 0 {
		p.result.Host.Neighbours = append(p.result.Host.Neighbours, Neighbour{Owner: i.Name, Dev: dev, IP: a, MAC: mac})
	}
}
