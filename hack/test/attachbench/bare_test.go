package attachbench

import (
	"context"
	"errors"
	"net/netip"

	"railhead/internal/kernel/rtnl"
)

const (
	bareGroup = 0x4242
	bareIndex = 100 // of the first rail in a pod
)

// bare is the netlink calls and nothing else, by one socket on the node and one in
// the pod, each sent and answered by itself: no plan, no settings, nothing read, no
// way back.
type bare struct{ world *world }

func (b bare) do(c *rtnl.Client, requests ...rtnl.Request) error {
	for _, r := range requests {
		if err := errors.Join(c.Do(r)...); err != nil {
			return err
		}
	}
	return nil
}

func (b bare) add(_ context.Context, p *pod) error {
	var links, rest []rtnl.Request
	for i := range rails {
		index := bareIndex + i
		links = append(links, rtnl.LinkAdd{
			Name: name(i), Kind: "macvlan", Mode: "bridge", Parent: parentIndex + i, NetNS: p.ns.FD(), Index: index,
			MAC: p.mac(i), Group: bareGroup, Up: true,
		})
		address := p.address(i)
		rest = append(rest, rtnl.AddressAdd{Address: rtnl.Address{
			LinkIndex: index, Prefix: address, Broadcast: rtnl.SubnetBroadcast(address),
		}})
		rest = append(rest,
			rtnl.RouteAdd{Route: rtnl.Route{Dst: subnet(i), LinkIndex: index, Src: address.Addr(), Table: tableOf(i)}},
			rtnl.RouteAdd{Route: rtnl.Route{Dst: everywhere(), Gateway: gateway(i), LinkIndex: index, Table: tableOf(i)}},
			rtnl.RuleAdd{Rule: rule(p, i)},
		)
	}
	if err := b.do(b.world.node, links...); err != nil {
		return err
	}
	return b.do(p.inside, rest...)
}

func (b bare) del(_ context.Context, p *pod) error {
	var requests []rtnl.Request
	for i := range rails {
		requests = append(requests, rtnl.RuleDelete{Rule: rule(p, i)})
	}
	return b.do(p.inside, append(requests, rtnl.LinkDeleteGroup{Group: bareGroup})...)
}

// tableOf is a rail's own.
func tableOf(rail int) int { return 100 + rail }

func rule(p *pod, rail int) rtnl.Rule {
	return rtnl.Rule{Src: netip.PrefixFrom(p.address(rail).Addr(), 32), Table: tableOf(rail), Priority: 1000 + rail}
}
