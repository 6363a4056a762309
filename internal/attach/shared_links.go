package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"railhead/internal/kernel/rtnl"
)

// ensure makes a shared link if it is not there. Only if it did, the undoing of
// a failure takes it away again.
func (w *work) ensure(s SharedLink) (made bool, err error) {
	defer w.a.shared.lock(s.Name)()
	if w.a.use(s.Name, w.plan.ContainerID) {
		w.using = append(w.using, s.Name)
	}
	l, err := w.a.node.LinkByName(s.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made = true
		if l, err = w.makeShared(s); err != nil {
			return made, err
		}
	case err != nil:
		return made, parentError(s.Name, "node", err)
	default:
		if err := w.a.differs(s, l); err != nil {
			return made, err
		}
	}
	w.parents[s.Name] = l.Index
	return made, w.enslave(s, l)
}

// makeShared makes a shared link: a VLAN up, a bond down until it has its members.
func (w *work) makeShared(s SharedLink) (rtnl.Link, error) {
	add := rtnl.LinkAdd{Name: s.Name, Kind: s.Kind, Group: SharedGroup, VLANID: s.VLANID, Up: s.Kind == kindVLAN}
	switch s.Kind {
	case kindBond:
		add.BondMode, add.BondOptions = s.Mode, s.Options
	case kindVLAN:
		on, err := w.a.node.LinkByName(s.On)
		if err != nil {
			return rtnl.Link{}, parentError(s.On, "node", err)
		}
		add.Parent = on.Index
	}
	if err := errors.Join(w.a.node.Do(add)...); err != nil {
		return rtnl.Link{}, fmt.Errorf("parent %q: %w", s.Name, err)
	}
	return w.a.node.LinkByName(s.Name)
}

// enslave puts the members that are missing into a bond of ours, which takes
// them only while they are down, and sets it up.
func (w *work) enslave(s SharedLink, bond rtnl.Link) error {
	if s.Kind != kindBond || bond.Group != SharedGroup {
		return nil
	}
	var requests []rtnl.Request
	for _, m := range s.Members {
		member, err := w.a.node.LinkByName(m.Name)
		if err != nil {
			return parentError(m.Name, "node", err)
		}
		if member.MasterIndex != bond.Index {
			requests = append(requests, rtnl.LinkSet{Index: member.Index, Up: new(false)},
				rtnl.LinkSet{Index: member.Index, Master: &bond.Index})
		}
	}
	if !bond.Up || len(requests) > 0 {
		requests = append(requests, rtnl.LinkSet{Index: bond.Index, Up: new(true)})
	}
	if err := errors.Join(w.a.node.Do(requests...)...); err != nil {
		return fmt.Errorf("parent %q: %w", s.Name, err)
	}
	return nil
}

// dropMade takes a shared link away that this work made, unless another pod has
// come to stand on it.
func (w *work) dropMade(s SharedLink) error {
	defer w.a.shared.lock(s.Name)()
	w.using = slices.DeleteFunc(w.using, func(name string) bool { return name == s.Name })
	if w.a.leave(s.Name, w.plan.ContainerID) {
		return nil
	}
	return w.a.removeShared(s)
}

// drop takes a shared link away after its last pod.
func (a *Attacher) drop(s SharedLink, containerID string, inUse func(string) bool) error {
	defer a.shared.lock(s.Name)()
	if a.leave(s.Name, containerID) || inUse != nil && inUse(s.Name) {
		return nil
	}
	return a.removeShared(s)
}

// removeShared deletes a shared link that is ours. The members of a bond come out
// of it first and are up again that were: what they were is known only while there
// is a bond of ours, also to who comes back after an error.
func (a *Attacher) removeShared(s SharedLink) error {
	l, err := a.node.LinkByName(s.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("parent %q: %w", s.Name, err)
	case l.Group != SharedGroup || l.Kind != s.Kind:
		return nil // somebody else's
	}
	var errs []error
	for _, m := range s.Members {
		errs = append(errs, a.setFree(m, l.Index))
	}
	if err = errors.Join(errs...); err == nil {
		err = ignore(a.node.Do(rtnl.LinkDelete{Index: l.Index}), fs.ErrNotExist)
	}
	if err != nil {
		return fmt.Errorf("parent %q: %w", s.Name, err)
	}
	return nil
}

// setFree takes a member out of a bond, unless it has gone. One that has come out
// before and still cannot be set up is told of no more: a card that is dead must keep
// nobody from leaving.
func (a *Attacher) setFree(m Former, bond int) error {
	l, err := a.node.Link(m.Index)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("member %s: %w", m.Name, err)
	}
	var requests []rtnl.Request
	if l.MasterIndex == bond {
		requests = append(requests, rtnl.LinkSet{Index: l.Index, Master: new(0)})
	}
	if m.Up {
		requests = append(requests, rtnl.LinkSet{Index: l.Index, Up: new(true)})
	}
	err = ignore(a.node.Do(requests...), fs.ErrNotExist)
	if err != nil && l.MasterIndex == bond {
		return fmt.Errorf("member %s: %w", m.Name, err)
	}
	return nil
}
