package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/rtnl"
)

// Check compares what a Plan says with the kernel. The error joins all
// differences, each with interface, what was expected and what there is. What
// else there may be in the pod is the pod's.
func (a *Attacher) Check(ctx context.Context, plan *Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w, err := a.open(plan)
	defer w.close()
	errs := []error{err}
	if w.ns != nil {
		errs = append(errs, w.checkPod())
	}
	for _, s := range plan.Shared {
		errs = append(errs, w.checkShared(s))
	}
	return errors.Join(append(errs, w.checkNode())...)
}

// contents are what there is in one namespace.
type contents struct {
	links      []rtnl.Link
	addresses  []rtnl.Address
	routes     []rtnl.Route
	rules      []rtnl.Rule
	neighbours []rtnl.Neighbour
}

func contentsOf(c *rtnl.Client) (contents, error) {
	var all contents
	var errs [5]error
	all.links, errs[0] = c.Links()
	all.addresses, errs[1] = c.Addresses()
	all.routes, errs[2] = c.Routes()
	all.rules, errs[3] = c.Rules()
	all.neighbours, errs[4] = c.Neighbours()
	return all, errors.Join(errs[:]...)
}

func (c contents) link(name string) (rtnl.Link, bool) {
	n := slices.IndexFunc(c.links, func(l rtnl.Link) bool { return l.Name == name })
	if n < 0 {
		return rtnl.Link{}, false
	}
	return c.links[n], true
}

// missing is the error of something that is not there.
func missing(owner, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if owner != "" {
		what = "interface " + owner + ": " + what
	}
	return fmt.Errorf("%s: %w", what, errMissing)
}

var errMissing = errors.New("it is not there")

// checkPod compares the pod's namespace.
func (w *work) checkPod() error {
	have, err := contentsOf(w.pod)
	if err != nil {
		return fmt.Errorf("contents of %s: %w", w.plan.NetNS, err)
	}
	errs := []error{w.checkLinks(have)}
	r := w.plan.Routing
	for _, a := range r.Addresses {
		if l, ok := have.link(a.Dev); ok && !slices.ContainsFunc(have.addresses, func(h rtnl.Address) bool {
			return h.LinkIndex == l.Index && h.Prefix == a.Prefix
		}) {
			errs = append(errs, missing(a.Owner, "address %s", a.Prefix))
		}
	}
	errs = append(errs, have.checkNamespace(r.Pod, ""))
	for _, route := range w.plan.Before.Routes {
		if slices.ContainsFunc(have.routes, func(h rtnl.Route) bool {
			_, isMissing := only(route, func(hop rtnl.NextHop) bool { return !slices.ContainsFunc(waysOf(h), isWay(hop)) })
			return h.Table == route.Table && h.Dst == route.Dst && h.Priority == route.Priority && !isMissing
		}) {
			errs = append(errs, fmt.Errorf("route %s via %s in table %d: it is there: want none, it is in the way of others", route.Dst, waysOf(route)[0].Gateway, route.Table))
		}
	}
	return errors.Join(append(errs, w.checkSysctls())...)
}

// checkLinks compares the pod's links.
func (w *work) checkLinks(have contents) error {
	var errs []error
	for _, i := range w.plan.Interfaces {
		l, ok := have.link(i.Name)
		if !ok {
			errs = append(errs, missing(i.Name, "link"))
			continue
		}
		errs = append(errs, w.checkLink(i, l))
	}
	if v := w.plan.Routing.Veth; v != nil {
		l, ok := have.link(v.PodName)
		switch {
		case !ok:
			errs = append(errs, missing(v.Owner, "link %s", v.PodName))
		case !l.Up:
			errs = append(errs, fmt.Errorf("interface %s: link %s is down: want it up", v.Owner, v.PodName))
		}
	}
	return errors.Join(errs...)
}

// checkLink compares one.
func (w *work) checkLink(i PlannedInterface, l rtnl.Link) error {
	var errs []error
	differ := func(field string, is, want any, counts bool) {
		if counts && is != want {
			errs = append(errs, fmt.Errorf("interface %s: %s is %v: want %v", i.Name, field, is, want))
		}
	}
	made := i.made()
	parent := i.ParentIndex
	if s, err := w.a.node.LinkByName(i.Parent); made && !i.InContainer && parent == 0 && err == nil {
		parent = s.Index
	}
	differ("kind", l.Kind, string(i.Kind), made)
	differ("mode", l.Mode, i.Mode, made && i.Mode != "")
	differ("VLAN", l.VLANID, i.VLANID, i.Kind == VLAN)
	differ("parent's index", l.ParentIndex, parent, made && parent != 0)
	differ("MAC address", strings.ToLower(l.Address), strings.ToLower(i.MAC), i.MAC != "")
	differ("MTU", l.MTU, i.MTU, i.MTU != 0)
	differ("transmit queue length", l.TxQueueLen, i.TxQueueLen, i.TxQueueLen != 0)
	differ("up", l.Up, true, true)
	return errors.Join(errs...)
}

// checkNamespace compares routes, rules and neighbours. Node is what errors begin
// with.
func (c contents) checkNamespace(want routing.Namespace, node string) error {
	var errs []error
	for _, r := range want.Routes {
		if l, ok := c.link(r.Dev); ok && !c.hasRoute(r, l.Index) {
			errs = append(errs, missing(r.Owner, "%sroute %s%s dev %s in table %d", node, r.Dst, via(r), r.Dev, r.Table))
		}
	}
	for _, r := range want.Rules {
		if !hasRule(c.rules, r) {
			errs = append(errs, missing(r.Owner, "%srule of priority %d%s for table %d (%s)", node, r.Priority, from(r), r.Table, familyName(r.Family)))
		}
	}
	for _, n := range want.Neighbours {
		if l, ok := c.link(n.Dev); ok && !slices.ContainsFunc(c.neighbours, func(h rtnl.Neighbour) bool {
			return h.LinkIndex == l.Index && h.IP == n.IP && h.State == "permanent" && strings.EqualFold(h.Address, n.MAC.String())
		}) {
			errs = append(errs, missing(n.Owner, "%sneighbour %s at %s dev %s", node, n.IP, n.MAC, n.Dev))
		}
	}
	return errors.Join(errs...)
}

// hasRoute says whether a route is there. What it leaves to the kernel does not count.
func (c contents) hasRoute(want routing.Route, index int) bool {
	return slices.ContainsFunc(c.routes, func(h rtnl.Route) bool {
		return h.Table == int(want.Table) && h.Dst == want.Dst && h.LinkIndex == index && h.Gateway == want.Via &&
			(want.Metric == 0 || h.Priority == int(want.Metric)) && (!want.Src.IsValid() || h.Src == want.Src)
	})
}

func via(r routing.Route) string {
	if !r.Via.IsValid() {
		return ""
	}
	return " via " + r.Via.String()
}

func from(r routing.Rule) string {
	switch {
	case r.From.IsValid():
		return " from " + r.From.String()
	case r.Mask != 0:
		return fmt.Sprintf(" mark %#x", r.Mark)
	}
	return ""
}

// checkSysctls compares settings; where one is set twice, the last counts.
func (w *work) checkSysctls() error {
	want := map[string]routing.Sysctl{}
	for _, s := range w.plan.Sysctls {
		want[s.Path] = s
	}
	return w.ns.Do(func() error {
		var errs []error
		for _, path := range sortedKeys(want) {
			s := want[path]
			owner := ""
			if s.Owner != "" {
				owner = "interface " + s.Owner + ": "
			}
			value, err := w.a.sysctls().read(path)
			switch {
			case err != nil && s.Optional && errors.Is(err, fs.ErrNotExist):
			case err != nil:
				errs = append(errs, fmt.Errorf("%s%w", owner, err))
			case !slices.Equal(strings.Fields(value), strings.Fields(s.Value)):
				errs = append(errs, fmt.Errorf("%ssysctl %s is %q: want %q", owner, path, value, s.Value))
			}
		}
		return errors.Join(errs...)
	})
}

// checkShared compares a shared link.
func (w *work) checkShared(s SharedLink) error {
	l, err := w.a.node.LinkByName(s.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing("", "parent %q", s.Name)
	case err != nil:
		return parentError(s.Name, "node", err)
	case !l.Up:
		return fmt.Errorf("parent %q is down: want it up", s.Name)
	}
	return w.a.differs(s, l)
}

// checkNode compares what leads the node to the pod.
func (w *work) checkNode() error {
	host := w.plan.Routing.Host
	if len(host.Routes)+len(host.Rules)+len(host.Neighbours) == 0 {
		return nil
	}
	have, err := contentsOf(w.a.node)
	if err != nil {
		return fmt.Errorf("contents of the node: %w", err)
	}
	for _, r := range host.Routes {
		if l, ok := have.link(r.Dev); !ok || w.plan.Before.PeerIndex != 0 && l.Index != w.plan.Before.PeerIndex {
			return missing(r.Owner, "the node's link %s", r.Dev)
		}
	}
	return have.checkNamespace(host, "the node's ")
}
