package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"railhead/internal/kernel/rtnl"
)

// Undo takes away what a Plan says, as much as there is of it: also of a Plan
// that was applied in part, or by an earlier run of the agent, and when the
// pod's namespace is gone. A namespace at the same path that is another is not
// touched. It goes on after errors and may be called again.
//
// InUse says whether another pod stands on a shared link of the node; nil: none
// does. Pods that are being taken away do not count: of two that go at once, each
// would leave it to the other.
//
// A context that ends does not stop it: it waits for nobody but the kernel, and
// half of it is worse than all.
func (a *Attacher) Undo(_ context.Context, plan *Plan, inUse func(shared string) bool) error {
	if plan.Version > Version {
		return fmt.Errorf("plan of version %d: want at most %d: a later release made it", plan.Version, Version)
	}
	w, err := a.open(plan)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	defer w.close()
	errs := []error{err}
	if w.ns != nil {
		errs = append(errs, w.undoPod())
	}
	for _, i := range plan.devices() {
		if err := w.makeFormer(i); err != nil {
			errs = append(errs, fmt.Errorf("interface %s: %w", i.Name, err))
		}
	}
	errs = append(errs, w.undoOnNode())
	for _, s := range slices.Backward(plan.Shared) {
		errs = append(errs, a.drop(s, plan.ContainerID, inUse))
	}
	return errors.Join(errs...)
}

// undoPod moves devices out before anything is deleted, then takes the links away,
// then what remains.
func (w *work) undoPod() error {
	links, there, listed := w.inPod()
	moved := w.moveDevices(links, there)
	requests := slices.Concat(w.deletions(links, listed == nil), w.leftovers(there))
	errs := w.pod.Do(requests...)
	return errors.Join(listed, moved, ignore(errs, fs.ErrNotExist, fs.ErrExist), w.undoSettings(there), w.undoMarks())
}

// moveDevices moves the devices among the pod's links out of it. What is on them ends
// with that.
func (w *work) moveDevices(links []rtnl.Link, there map[int]bool) error {
	var errs []error
	for _, i := range w.plan.devices() {
		index, err := w.moveBack(i, links)
		if err != nil {
			errs = append(errs, fmt.Errorf("interface %s: %w", i.Name, err))
			continue
		}
		delete(there, index)
	}
	return errors.Join(errs...)
}

// deletions take away the links that the plan makes: by their group if that has these
// and no others, as the pod may put there a device or what else it likes. If the
// kernel did not list them, those of a pod with devices stay until it does.
func (w *work) deletions(links []rtnl.Link, listed bool) []rtnl.Request {
	switch {
	case w.links() == 0: // those of the group are another plan's
		return nil
	case !listed && len(w.plan.devices()) > 0:
		return nil
	case !slices.ContainsFunc(links, func(l rtnl.Link) bool { return w.plan.isMade(l) != (l.Group == Group) }):
		return []rtnl.Request{rtnl.LinkDeleteGroup{Group: Group}}
	}
	var requests []rtnl.Request
	for _, l := range links {
		if w.plan.isMade(l) {
			requests = append(requests, rtnl.LinkDelete{Index: l.Index})
		}
	}
	return requests
}

// inPod are the links of the pod, and which numbers are there. If the kernel does
// not say, all that the plan knows are taken to be: what is on one that is not
// there is not there either.
func (w *work) inPod() ([]rtnl.Link, map[int]bool, error) {
	there := map[int]bool{}
	links, err := w.pod.Links()
	if err != nil {
		err = fmt.Errorf("links of the pod: %w", err)
		for _, index := range w.index {
			there[index] = true
		}
		for _, route := range w.plan.Before.Routes {
			for _, hop := range waysOf(route) {
				there[hop.LinkIndex] = true
			}
		}
	}
	for _, l := range links {
		there[l.Index] = true
		if w.plan.brings(l.Name) && !w.plan.makes(l.Name) {
			w.index[l.Name] = l.Index // a device that was moved
		}
	}
	return links, there, err
}

// leftovers are what deleted links do not take with them: rules, and what is on
// other links as far as these are there.
func (w *work) leftovers(there map[int]bool) []rtnl.Request {
	r := w.plan.Routing
	var requests []rtnl.Request
	for _, rule := range r.Pod.Rules {
		requests = append(requests, rtnl.RuleDelete{Rule: ruleOf(rule, podRuleProtocol)})
	}
	stays := func(dev string) bool { return !w.plan.makes(dev) && there[w.index[dev]] }
	for _, route := range r.Pod.Routes {
		if !route.Kernel && stays(route.Dev) {
			requests = append(requests, rtnl.RouteDelete{Route: routeOf(route, w.index[route.Dev])})
		}
	}
	slices.Reverse(requests) // routes that others are reached by come last
	for _, n := range r.Pod.Neighbours {
		if stays(n.Dev) {
			requests = append(requests, rtnl.NeighbourDelete{Neighbour: neighbourOf(n, w.index[n.Dev])})
		}
	}
	for _, route := range w.plan.Before.Rest {
		requests = append(requests, rtnl.RouteDelete{Route: route})
	}
	for _, route := range w.plan.Before.Routes {
		route, ok := only(route, func(hop rtnl.NextHop) bool { return there[hop.LinkIndex] })
		if ok {
			requests = append(requests, rtnl.RouteAdd{Route: route, Append: true})
		}
	}
	for n := range w.plan.Interfaces {
		i := &w.plan.Interfaces[n]
		if _, undo, differs := i.changes(); differs && there[i.Index] {
			requests = append(requests, undo)
		}
	}
	return requests
}

// undoSettings gives settings and flags that stay the values from before.
func (w *work) undoSettings(there map[int]bool) error {
	var flagged []*PlannedInterface
	for n := range w.plan.Interfaces {
		if i := &w.plan.Interfaces[n]; i.Kind == Foreign && (i.Promisc != nil || i.AllMulti != nil) && there[i.Index] {
			flagged = append(flagged, i)
		}
	}
	if len(flagged)+len(w.plan.Before.Sysctls) == 0 {
		return nil
	}
	return w.ns.Do(func() error {
		var errs []error
		for _, s := range w.plan.Before.Sysctls {
			errs = append(errs, w.a.try("settings", func() error { return w.a.sysctls().write(s) }))
		}
		for _, i := range flagged {
			errs = append(errs, w.a.try("settings", func() error {
				return setLinkFlags(i.Name, &i.Before.Promisc, &i.Before.AllMulti)
			}))
		}
		return errors.Join(errs...)
	})
}

// undoMarks takes the table of marks away.
func (w *work) undoMarks() error {
	if w.plan.Routing.Marks == nil {
		return nil
	}
	if err := w.a.unmark(w.ns.FD(), nftTable); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("marks: %w", err)
	}
	return nil
}
