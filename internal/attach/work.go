package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

// work is one Apply, Undo or Check.
type work struct {
	a    *Attacher
	plan *Plan
	ns   *netns.NS    // the pod's; nil where it is gone
	pod  *rtnl.Client // in it

	index   map[string]int // of the pod's links, as far as they are there
	parents map[string]int // of shared links on the node
	host    int            // index of the node's end of the pod's link over it; 0: none
	using   []string       // shared links and rules of the node that this work was the first to note as used
	done    []action       // in the order in which they were done
}

// open opens what a plan says it is for, and connects.
func (a *Attacher) open(plan *Plan) (*work, error) {
	w, err := a.find(plan)
	if err != nil {
		return w, err
	}
	if err := w.connect(&rtnl.Config{NetNS: w.ns.FD()}); err != nil {
		w.close()
		w.ns, w.pod = nil, nil
		return w, err
	}
	return w, nil
}

// find opens the namespace that a plan is for.
func (a *Attacher) find(plan *Plan) (*work, error) {
	w := &work{a: a, plan: plan, index: map[string]int{}, parents: map[string]int{}}
	ns, err := netns.Open(plan.NetNS)
	if err != nil {
		return w, gone(plan.NetNS, err)
	}
	if err := plan.checkNamespace(ns); err != nil {
		_ = ns.Close()
		return w, err
	}
	w.ns = ns
	for _, i := range plan.Interfaces {
		if i.Index != 0 {
			w.index[i.Name] = i.Index
		}
	}
	if plan.Routing.Veth != nil {
		w.index[plan.Routing.Veth.PodName] = plan.vethIndex()
	}
	return w, nil
}

// connect connects to the kernel in the namespace, and finds out whether it is that
// of the plan.
func (w *work) connect(config *rtnl.Config) error {
	pod, err := w.a.config.Dial(config)
	if err != nil {
		return fmt.Errorf("netlink in %s: %w", w.plan.NetNS, err)
	}
	w.pod = pod
	return w.plan.checkCookie(pod)
}

// gone is fs.ErrNotExist too where only the file is left that a namespace was
// mounted on.
func gone(path string, err error) error {
	var where unix.Statfs_t
	if unix.Statfs(path, &where) == nil && where.Type != unix.NSFS_MAGIC {
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	return err
}

// vethIndex is the index of the pair's end in the pod: that after the interfaces'.
func (p *Plan) vethIndex() int {
	next := firstIndex
	for _, i := range p.Interfaces {
		next = max(next, i.Index+1)
	}
	return next
}

func (w *work) close() {
	if w.pod != nil {
		_ = w.pod.Close()
	}
	if w.ns != nil {
		_ = w.ns.Close()
	}
}

// client is that of a side.
func (w *work) client(onNode bool) *rtnl.Client {
	if onNode {
		return w.a.node
	}
	return w.pod
}

// action is one change and what undoes it. It is either a request or a call.
type action struct {
	owner  string // interface; "" for the pod
	onNode bool   // where the requests go

	do, undo         rtnl.Request
	call, undoCall   func() error
	mayExist, absent bool         // that it is there already, or is not there to be removed, is fine, and then it is not ours
	made             bool         // it makes a link in the pod
	instead          func() error // of a request, where there is something in its place already
}

// run does actions in order, those next to each other that are requests of one
// side at once, and stops after a piece in which something failed.
func (w *work) run(stage string, actions []action) error {
	for len(actions) > 0 {
		n := 1
		for actions[0].do != nil && n < len(actions) && actions[n].do != nil && actions[n].onNode == actions[0].onNode {
			n++
		}
		if err := w.piece(stage, actions[:n]); err != nil {
			return err
		}
		actions = actions[n:]
	}
	return nil
}

// piece does one call, or requests of one side, and notes what was done.
func (w *work) piece(stage string, actions []action) error {
	errs := make([]error, len(actions))
	var requests []rtnl.Request
	var sent []int
	for n, act := range actions {
		errs[n] = w.a.try(stage, func() error {
			if act.do == nil {
				return act.call()
			}
			requests, sent = append(requests, act.do), append(sent, n)
			return nil
		})
	}
	if len(requests) > 0 {
		for n, err := range w.client(actions[0].onNode).Do(requests...) {
			errs[sent[n]] = err
		}
	}
	var failed []error
	for n, act := range actions {
		if act.instead != nil && errors.Is(errs[n], fs.ErrExist) {
			errs[n] = act.instead()
		}
		switch err := errs[n]; {
		case err == nil:
			w.done = append(w.done, act)
		case act.mayExist && errors.Is(err, fs.ErrExist), act.absent && errors.Is(err, fs.ErrNotExist):
		case act.owner == "":
			failed = append(failed, fmt.Errorf("%s: %w", stage, err))
		default:
			failed = append(failed, fmt.Errorf("interface %s: %s: %w", act.owner, stage, explain(act.do, err)))
		}
	}
	return errors.Join(failed...)
}

// explain says what of a link is wrong where the kernel gives a number only.
func explain(r rtnl.Request, err error) error {
	add, ok := r.(rtnl.LinkAdd)
	switch {
	case !ok:
		return err
	case errors.Is(err, fs.ErrExist) && add.Peer.Name != "":
		return fmt.Errorf("name %q is taken in the pod, or %q on the node: want both free: %w", add.Name, add.Peer.Name, err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("name %q is taken in the pod: want a free one: %w", add.Name, err)
	case errors.Is(err, unix.ENETDOWN):
		return fmt.Errorf("parent of index %d is down: want it up: %w", add.Parent, err)
	case errors.Is(err, rtnl.ErrNotSupported):
		return fmt.Errorf("kind %q: want one that the node's kernel has: %w", add.Kind, err)
	case errors.Is(err, fs.ErrNotExist) && add.Parent != 0:
		return fmt.Errorf("parent of index %d: the node has no such link any more: %w", add.Parent, err)
	}
	return err
}

// back undoes what was done, the last first. Links go by their group if all of
// them are ours: if some could not be made, others of the group may be there.
func (w *work) back() error {
	left := 0
	for _, act := range w.done {
		if act.made {
			left++
		}
	}
	group := left > 1 && left == w.links()
	u := undoing{w: w}
	for _, act := range slices.Backward(w.done) {
		switch {
		case act.made && !group:
			u.add(act.undo, false)
		case act.made:
			if left--; left == 0 { // the first: all that stood on them is gone
				u.add(rtnl.LinkDeleteGroup{Group: Group}, false)
			}
		case act.undo != nil:
			u.add(act.undo, act.onNode)
		}
		if act.undoCall != nil {
			u.flush()
			u.errs = append(u.errs, act.undoCall())
		}
	}
	u.flush()
	for _, name := range w.using {
		w.a.leave(name, w.plan.ContainerID)
	}
	w.done, w.using = nil, nil
	return errors.Join(u.errs...)
}

// undoing collects requests of one side until there is something for the other.
type undoing struct {
	w        *work
	onNode   bool
	requests []rtnl.Request
	errs     []error
}

func (u *undoing) add(r rtnl.Request, onNode bool) {
	if onNode != u.onNode {
		u.flush()
		u.onNode = onNode
	}
	u.requests = append(u.requests, r)
}

// flush has the kernel do what was collected. What is gone already is undone.
func (u *undoing) flush() {
	if len(u.requests) > 0 {
		u.errs = append(u.errs, ignore(u.w.client(u.onNode).Do(u.requests...), fs.ErrNotExist))
		u.requests = nil
	}
}

// links is how many links the plan makes in the pod.
func (w *work) links() int {
	n := 0
	for _, i := range w.plan.Interfaces {
		if i.made() {
			n++
		}
	}
	if w.plan.Routing.Veth != nil {
		n++
	}
	return n
}
