package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/rtnl"
)

// nftTable is the table of the pod's marks.
const nftTable = "railhead"

// stage is a part of Apply.
type stage struct {
	name string
	do   func(stage string) error
}

// stages are Apply, in order.
func (w *work) stages() []stage {
	return []stage{
		{"shared links", w.addShared},
		{"namespace settings", w.writeDefaults},
		{"links", w.addLinks},
		{"settings", w.writeSysctls},
		{"addresses and routes", w.addRouting},
		{"marks", w.addMarks},
		{"node", w.addOnNode},
	}
}

// Apply does what a Plan says. On an error, which names interface, stage and
// what was refused, all that was done is undone. The namespace must be the one
// that the Plan was made for. A Plan that has been applied already is refused,
// and what there is of it stays.
func (a *Attacher) Apply(ctx context.Context, plan *Plan) (*Done, error) {
	start := time.Now()
	w, err := a.find(plan)
	if err != nil {
		return nil, err
	}
	defer w.close()
	done := &Done{}
	// One thread goes there once for all; sockets know where they belong.
	err = w.ns.Do(func() error {
		if err := w.connect(&rtnl.Config{}); err != nil {
			return err
		}
		if err := w.isApplied(); err != nil {
			return err
		}
		done.Steps = append(done.Steps, Step{"namespace", time.Since(start)})
		for _, s := range w.stages() {
			start := time.Now()
			if err := ctx.Err(); err != nil {
				return w.fail(fmt.Errorf("%s: %w", s.name, err))
			}
			if err := s.do(s.name); err != nil {
				return w.fail(err)
			}
			done.Steps = append(done.Steps, Step{s.name, time.Since(start)})
		}
		start := time.Now()
		if done.Interfaces, err = w.made(); err != nil {
			return w.fail(err)
		}
		done.Steps = append(done.Steps, Step{"result", time.Since(start)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// fail undoes what was done and says why.
func (w *work) fail(err error) error {
	if undone := w.back(); undone != nil {
		return fmt.Errorf("%w\nand it could not all be undone: %w", err, undone)
	}
	return err
}

// writeDefaults writes what links have from their beginning.
func (w *work) writeDefaults(stage string) error { return w.run(stage, w.sysctls(w.plan.Defaults)) }

// formerDefaults gives these settings their values back, once the links have
// theirs: what the pod or another's plugin makes later has nothing of ours.
func (w *work) formerDefaults() []action {
	var actions []action
	for _, before := range w.plan.Before.Sysctls {
		if slices.ContainsFunc(w.plan.Defaults, func(s routing.Sysctl) bool { return s.Path == before.Path }) {
			actions = append(actions, action{call: func() error { return w.a.sysctls().write(before) }})
		}
	}
	return actions
}

// sysctls are settings, which get their values back where they stay.
func (w *work) sysctls(all []routing.Sysctl) []action {
	files := w.a.sysctls()
	var actions []action
	for _, s := range all {
		act := action{owner: s.Owner, call: func() error { return files.write(s) }}
		if slices.ContainsFunc(w.plan.Before.Sysctls, func(b routing.Sysctl) bool { return b.Path == s.Path }) {
			before := s // what it is now: this Plan may have been applied already
			act.call = func() (err error) {
				if before.Value, err = files.read(s.Path); err != nil {
					return err
				}
				return files.write(s)
			}
			act.undoCall = func() error { return files.write(before) }
		}
		actions = append(actions, act)
	}
	return actions
}

// unlikeDefault leaves out what links that we have just made have from their
// beginning, as the namespace's defaults are, and keep.
func (w *work) unlikeDefault(all []routing.Sysctl) []routing.Sysctl {
	defaults := map[string]string{}
	for _, s := range w.plan.Defaults { // which were in force when they were made
		defaults[s.Path] = s.Value
	}
	changed := changedByOthers(all)
	return slices.DeleteFunc(slices.Clone(all), func(s routing.Sysctl) bool {
		if !w.plan.makes(linkOf(s.Path)) || changed[s.Path] || changed[ofLink(s.Path, "")] {
			return false
		}
		file := ofLink(s.Path, "default")
		value, known := defaults[file]
		if !known {
			value, _ = w.a.sysctls().read(file) // what has none is written
			defaults[file] = value
		}
		return value == s.Value
	})
}

// changedByOthers are the files that are written twice, and, by their paths without
// a link, those that the kernel writes for all links when one of the settings is
// written: the default goes to links whose own was never written, and forwarding and
// all that is set of all in IPv6 to every link (net/ipv4/devinet.c,
// net/ipv6/addrconf.c, net/core/neighbour.c).
func changedByOthers(all []routing.Sysctl) map[string]bool {
	changed, written := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		changed[s.Path] = written[s.Path]
		written[s.Path] = true
		switch path, link := s.Path, linkOf(s.Path); {
		case path == "net/ipv4/ip_forward":
			changed["net/ipv4/conf//forwarding"] = true
		case link == "default", link == "all" && (strings.HasPrefix(path, "net/ipv6/") || strings.HasSuffix(path, "/forwarding")):
			changed[ofLink(path, "")] = true
		}
	}
	return changed
}

// addShared makes the node's links below the pod's.
func (w *work) addShared(stage string) error {
	var actions []action
	for _, s := range w.plan.Shared {
		act := action{}
		for _, i := range w.plan.Interfaces {
			if act.owner == "" && i.Parent == s.Name {
				act.owner = i.Name
			}
		}
		made := false
		act.call = func() (err error) {
			if made, err = w.ensure(s); err != nil && made {
				return errors.Join(err, w.dropMade(s))
			}
			return err
		}
		act.undoCall = func() error {
			if !made {
				return nil
			}
			return w.dropMade(s)
		}
		actions = append(actions, act)
	}
	return w.run(stage, actions)
}

// writeSysctls writes the settings of the links and of the pod, and changes links
// of others.
func (w *work) writeSysctls(stage string) error {
	actions := w.sysctls(w.unlikeDefault(w.plan.Sysctls))
	for n := range w.plan.Interfaces {
		i := &w.plan.Interfaces[n]
		if set, undo, differs := i.changes(); differs {
			actions = append(actions, action{owner: i.Name, do: set, undo: undo})
		}
		if i.Promisc == nil && i.AllMulti == nil {
			continue
		}
		act := action{owner: i.Name, call: func() error { return setLinkFlags(i.Name, i.Promisc, i.AllMulti) }}
		if i.Kind == Foreign {
			act.undoCall = func() error { return setLinkFlags(i.Name, &i.Before.Promisc, &i.Before.AllMulti) }
		}
		actions = append(actions, act)
	}
	return w.run(stage, actions)
}

// changes are what is set of a link that another's plugin made, and what it was.
func (i *PlannedInterface) changes() (set, undo rtnl.LinkSet, differs bool) {
	if i.Kind != Foreign {
		return set, undo, false
	}
	set.Index, undo.Index = i.Index, i.Index
	if i.MAC != "" && i.MAC != i.Before.MAC {
		set.MAC, undo.MAC, differs = macOf(i.MAC), macOf(i.Before.MAC), true
	}
	if i.MTU != 0 && i.MTU != i.Before.MTU {
		set.MTU, undo.MTU, differs = i.MTU, i.Before.MTU, true
	}
	if i.TxQueueLen != 0 && i.TxQueueLen != i.Before.TxQueueLen {
		set.TxQueueLen, undo.TxQueueLen, differs = &i.TxQueueLen, &i.Before.TxQueueLen, true
	}
	return set, undo, differs
}

// addRouting gives the pod its addresses, neighbours, routes and rules, all in one piece.
func (w *work) addRouting(stage string) error { return w.run(stage, w.podRouting()) }

// podRouting is what the pod gets in the order in which it needs it.
func (w *work) podRouting() []action {
	r := w.plan.Routing
	var actions []action
	for _, a := range r.Addresses {
		address := addressOf(a, w.index[a.Dev])
		actions = append(actions, action{owner: a.Owner, do: rtnl.AddressAdd{Address: address}, undo: rtnl.AddressDelete{Address: address}})
	}
	for _, n := range r.Pod.Neighbours {
		neighbour := neighbourOf(n, w.index[n.Dev])
		actions = append(actions, action{owner: n.Owner, do: rtnl.NeighbourSet{Neighbour: neighbour}, undo: rtnl.NeighbourDelete{Neighbour: neighbour}})
	}
	for _, route := range w.plan.Before.Routes {
		actions = append(actions, action{do: rtnl.RouteDelete{Route: route}, undo: rtnl.RouteAdd{Route: route, Append: true}, absent: true})
	}
	for _, route := range w.plan.Before.Rest {
		actions = append(actions, action{do: rtnl.RouteAdd{Route: route, Append: true}, undo: rtnl.RouteDelete{Route: route}})
	}
	for _, route := range r.Pod.Routes {
		if !route.Kernel {
			add := routeOf(route, w.index[route.Dev])
			actions = append(actions, action{owner: route.Owner, do: rtnl.RouteAdd{Route: add}, undo: rtnl.RouteDelete{Route: add}})
		}
	}
	for _, rule := range r.Pod.Rules {
		add := ruleOf(rule, podRuleProtocol)
		actions = append(actions, action{owner: rule.Owner, do: rtnl.RuleAdd{Rule: add}, undo: rtnl.RuleDelete{Rule: add}})
	}
	return actions
}

// addMarks has answers find back over the node.
func (w *work) addMarks(stage string) error {
	m := w.plan.Routing.Marks
	if m == nil {
		return nil
	}
	return w.run(stage, []action{{
		owner: m.Owner, call: func() error { return w.a.mark(w.ns.FD(), nftTable, m.Dev, m.Mark, m.Mask) },
		undoCall: func() error { return w.a.unmark(w.ns.FD(), nftTable) },
	}})
}

// made returns the interfaces as they are now. What the kernel took as it was told,
// it is not asked for again.
func (w *work) made() ([]Made, error) {
	all := make([]Made, 0, len(w.plan.Interfaces))
	for n := range w.plan.Interfaces {
		i := &w.plan.Interfaces[n]
		mac, mtu := i.MAC, i.MTU
		if i.Kind == Foreign {
			mac, mtu = cmp.Or(mac, i.Before.MAC), cmp.Or(mtu, i.Before.MTU)
		}
		if i.Index == 0 || mac == "" || mtu == 0 {
			return w.read()
		}
		all = append(all, Made{Name: i.Name, Index: i.Index, MAC: macOf(mac), MTU: mtu, Addresses: i.Addresses})
	}
	return all, nil
}

// read asks the kernel for the interfaces.
func (w *work) read() ([]Made, error) {
	links, err := w.pod.Links()
	if err != nil {
		return nil, fmt.Errorf("links of the pod: %w", err)
	}
	var all []Made
	for _, i := range w.plan.Interfaces {
		n := slices.IndexFunc(links, func(l rtnl.Link) bool { return l.Index == w.index[i.Name] })
		if n < 0 {
			return nil, fmt.Errorf("interface %s: it is gone: %w", i.Name, fs.ErrNotExist)
		}
		l := links[n]
		all = append(all, Made{Name: i.Name, Index: l.Index, MAC: macOf(l.Address), MTU: l.MTU, Addresses: i.Addresses})
	}
	return all, nil
}
