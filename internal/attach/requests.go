package attach

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/rtnl"
)

// hostRuleProtocol is whose the node's rules are (FRA_PROTOCOL), so that a like
// one of somebody else is not taken away. 82 is an R, and nobody else's.
const hostRuleProtocol = "82"

// podRuleProtocol has `ip rule` print the pod's rules without any.
const podRuleProtocol = "unspec"

// addressOf is an address as the kernel is asked for it. Others who have it are
// asked for elsewhere, before the pod starts.
func addressOf(a routing.Address, index int) rtnl.Address {
	return rtnl.Address{
		LinkIndex: index, Prefix: a.Prefix, Broadcast: rtnl.SubnetBroadcast(a.Prefix),
		NoDAD: a.Prefix.Addr().Is6(), NoPrefixRoute: a.NoPrefixRoute,
	}
}

func routeOf(r routing.Route, index int) rtnl.Route {
	route := rtnl.Route{
		Table: int(r.Table), Dst: r.Dst, Gateway: r.Via, LinkIndex: index, Src: r.Src, Priority: int(r.Metric), OnLink: r.OnLink,
	}
	if r.Dst.Addr().Is4() {
		route.Scope = map[routing.Scope]string{routing.ScopeGlobal: "global", routing.ScopeLink: "link"}[r.Scope]
	}
	return route
}

func ruleOf(r routing.Rule, protocol string) rtnl.Rule {
	return rtnl.Rule{
		Family: familyName(r.Family), Priority: int(r.Priority), Src: r.From, Mark: r.Mark, MarkMask: r.Mask,
		Action: "lookup", Table: int(r.Table), Protocol: protocol,
	}
}

func neighbourOf(n routing.Neighbour, index int) rtnl.Neighbour {
	return rtnl.Neighbour{LinkIndex: index, IP: n.IP, Address: n.MAC.String(), State: "permanent"}
}

func familyName(family int) string {
	if family == 4 {
		return "inet"
	}
	return "inet6"
}

// macOf is a MAC address that we wrote ourselves, nil for none.
func macOf(text string) net.HardwareAddr {
	mac, err := net.ParseMAC(text)
	if err != nil {
		return nil
	}
	return mac
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func hasIPv6(prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Addr().Is6() })
}
