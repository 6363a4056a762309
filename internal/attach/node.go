package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/rtnl"
)

// addOnNode leads the node to the pod's addresses. Rules come first, so that
// undoing ends with them and sees whether others still need them.
func (w *work) addOnNode(stage string) error {
	host := w.plan.Routing.Host
	if len(host.Routes)+len(host.Neighbours)+len(host.Rules) == 0 {
		return nil
	}
	if w.host == 0 {
		w.host = w.plan.Before.PeerIndex
	}
	w.a.rules.Lock()
	defer w.a.rules.Unlock()
	var actions []action
	for _, rule := range host.Rules {
		if w.a.use(ruleName(rule), w.plan.ContainerID) {
			w.using = append(w.using, ruleName(rule))
		}
		actions = append(actions, action{
			owner: rule.Owner, onNode: true, mayExist: true,
			do: rtnl.RuleAdd{Rule: ruleOf(rule, hostRuleProtocol)},
			undoCall: func() error {
				w.a.rules.Lock()
				defer w.a.rules.Unlock()
				return w.a.dropRules([]routing.Rule{rule}, w.plan.ContainerID)
			},
		})
	}
	for _, route := range host.Routes {
		actions = append(actions, w.hostRoute(route))
	}
	for _, n := range host.Neighbours {
		neighbour := neighbourOf(n, w.host)
		actions = append(actions, action{owner: n.Owner, onNode: true, do: rtnl.NeighbourSet{Neighbour: neighbour}, undo: rtnl.NeighbourDelete{Neighbour: neighbour}})
	}
	return w.run(stage, actions)
}

// hostRoute leads to one address. What an earlier pod left in its place comes
// back if that is undone.
func (w *work) hostRoute(r routing.Route) action {
	route := routeOf(r, w.host)
	var replaced []rtnl.Route
	return action{
		owner: r.Owner, onNode: true, do: rtnl.RouteAdd{Route: route},
		instead: func() (err error) {
			if replaced, err = w.a.routesTo(route); err != nil {
				return err
			}
			return errors.Join(w.a.node.Do(rtnl.RouteAdd{Route: route, Replace: true})...)
		},
		undoCall: func() error {
			requests := []rtnl.Request{rtnl.RouteDelete{Route: route}}
			for _, before := range replaced {
				requests = append(requests, rtnl.RouteAdd{Route: before})
			}
			return ignore(w.a.node.Do(requests...), fs.ErrNotExist)
		},
	}
}

// routesTo are the node's routes in the place of another.
func (a *Attacher) routesTo(route rtnl.Route) ([]rtnl.Route, error) {
	all, err := a.node.Routes()
	if err != nil {
		return nil, fmt.Errorf("routes of the node: %w", err)
	}
	return slices.DeleteFunc(all, func(r rtnl.Route) bool { return r.Table != route.Table || r.Dst != route.Dst }), nil
}

// undoOnNode takes away what leads the node to the pod. A link that has another
// number or MAC address than ours is another pod's or somebody else's.
func (w *work) undoOnNode() error {
	host := w.plan.Routing.Host
	if len(host.Routes)+len(host.Neighbours)+len(host.Rules) == 0 {
		return nil
	}
	var requests []rtnl.Request
	var found error
	if v := w.plan.Routing.Veth; v != nil {
		requests, found = w.a.undoVeth(v) // and all with it
	} else {
		for _, route := range host.Routes {
			requests = append(requests, rtnl.RouteDelete{Route: routeOf(route, w.plan.Before.PeerIndex)})
		}
		for _, n := range host.Neighbours {
			requests = append(requests, rtnl.NeighbourDelete{Neighbour: neighbourOf(n, w.plan.Before.PeerIndex)})
		}
	}
	w.a.rules.Lock()
	defer w.a.rules.Unlock()
	return errors.Join(found, ignore(w.a.node.Do(requests...), fs.ErrNotExist), w.a.dropRules(host.Rules, w.plan.ContainerID))
}

// undoVeth deletes the pair by its end on the node. Only the beginning of the
// sandbox's ID is in that one's name, but all of it is in the MAC address.
func (a *Attacher) undoVeth(v *routing.Veth) ([]rtnl.Request, error) {
	l, err := a.node.LinkByName(v.HostName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the node's end of %s: %w", v.PodName, err)
	case l.Kind != kindVeth || !strings.EqualFold(l.Address, v.HostMAC.String()):
		return nil, nil
	}
	return []rtnl.Request{rtnl.LinkDelete{Index: l.Index}}, nil
}

// ruleName is what the users of one of the node's rules are kept by: no link has
// such a name.
func ruleName(r routing.Rule) string {
	return fmt.Sprintf("rule %d for table %d (%s)", r.Priority, r.Table, familyName(r.Family))
}

// dropRules takes away those rules that lead to a table without routes: the last
// pod has gone. Like ones of others stay. While another pod is known to have come
// since this Attacher began, the node's routes, a thousand or more, are not asked
// for.
func (a *Attacher) dropRules(rules []routing.Rule, containerID string) error {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r routing.Rule) bool { return a.leave(ruleName(r), containerID) })
	if len(rules) == 0 {
		return nil
	}
	routes, err := a.node.Routes()
	if err != nil {
		return fmt.Errorf("routes of the node: %w", err)
	}
	var requests []rtnl.Request
	for _, rule := range rules {
		if !slices.ContainsFunc(routes, func(r rtnl.Route) bool {
			return r.Table == int(rule.Table) && r.Dst.Addr().Is4() == (rule.Family == 4)
		}) {
			requests = append(requests, rtnl.RuleDelete{Rule: ruleOf(rule, hostRuleProtocol)})
		}
	}
	return ignore(a.node.Do(requests...), fs.ErrNotExist)
}

// ignore joins errors but those that are one of some kinds.
func ignore(errs []error, kinds ...error) error {
	var rest []error
	for _, err := range errs {
		if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
			rest = append(rest, err)
		}
	}
	return errors.Join(rest...)
}
