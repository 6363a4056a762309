package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"railhead/internal/kernel/rtnl"
)

// Kinds of shared links.
const (
	kindVLAN = "vlan"
	kindBond = "bond"
)

// bondModes are the modes by number.
func bondModes() []string {
	return []string{"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"}
}

// bondMode is the name of a mode that is given by name or number.
func bondMode(text string) (string, error) {
	modes := bondModes()
	for n, name := range modes {
		if text == name || text == fmt.Sprint(n) {
			return name, nil
		}
	}
	if text == "" {
		return modes[0], nil
	}
	return "", fmt.Errorf("bond mode %q: want one of %s, or its number", text, strings.Join(modes, ", "))
}

// shared plans the node's links below an interface. It returns the uppermost
// if it is there already.
func (p *planner) shared(parent Parent, planned *PlannedInterface) (*rtnl.Link, error) {
	links, err := sharedLinks(parent)
	if err != nil {
		return nil, err
	}
	for n := range links {
		if err := p.planShared(&links[n]); err != nil {
			return nil, err
		}
	}
	top := links[len(links)-1]
	planned.Parent = top.Name
	l, err := p.onNode(top.Name)
	switch {
	case err == nil:
		return &l, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, parentError(top.Name, "node", err)
	}
	return p.below(links[0])
}

// parents plans what others' plugins will make interfaces on.
func (p *planner) parents(all []Parent) error {
	var errs []error
	for _, parent := range all {
		var err error
		if parent.Bond != nil || parent.VLANID != 0 {
			_, err = p.shared(parent, &PlannedInterface{})
		} else if _, err = p.onNode(parent.Name); err != nil {
			err = parentError(parent.Name, "node", err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// below is what a shared link that is still to be made will have its MTU of, nil
// if the kind decides.
func (p *planner) below(s SharedLink) (*rtnl.Link, error) {
	if s.Kind == kindBond {
		return nil, nil //nolint:nilnil // that depends on its members
	}
	l, err := p.onNode(s.On)
	if err != nil {
		return nil, parentError(s.On, "node", err)
	}
	return &l, nil
}

// sharedLinks are the links of a parent, the lower first.
func sharedLinks(parent Parent) ([]SharedLink, error) {
	var links []SharedLink
	if len(parent.Members) == 0 {
		return nil, fmt.Errorf("parent %q: want the netdevs that it is made of", parent.Name)
	}
	on := parent.Members[0]
	if b := parent.Bond; b != nil {
		name := b.Name
		if name == "" && parent.VLANID == 0 {
			name = parent.Name
		}
		mode, err := bondMode(b.Mode)
		if err != nil {
			return nil, fmt.Errorf("parent %q: %w", parent.Name, err)
		}
		bond := SharedLink{Name: name, Kind: kindBond, Mode: mode, Options: b.Options}
		for _, member := range parent.Members {
			bond.Members = append(bond.Members, Former{Name: member})
		}
		links, on = append(links, bond), name
	} else if len(parent.Members) > 1 {
		return nil, fmt.Errorf("parent %q: %d members %s: want one, or a bond of them", parent.Name, len(parent.Members), strings.Join(parent.Members, ", "))
	}
	if parent.VLANID != 0 {
		if err := checkVLAN("parent's VLAN", parent.VLANID); err != nil {
			return nil, err
		}
		name := parent.Name
		if name == "" || name == on {
			name = fmt.Sprintf("%s.%d", on, parent.VLANID)
		}
		links = append(links, SharedLink{Name: name, Kind: kindVLAN, On: on, VLANID: parent.VLANID})
	}
	for _, s := range links {
		if s.Name == "" || len(s.Name) > 15 {
			return nil, fmt.Errorf("parent: name %q of a %s: want 1 to 15 bytes", s.Name, s.Kind)
		}
	}
	return links, nil
}

// planShared adds a shared link to the plan unless it is there, with its members as they are.
func (p *planner) planShared(s *SharedLink) error {
	for n := range s.Members {
		l, err := p.onNode(s.Members[n].Name)
		if err != nil {
			return parentError(s.Members[n].Name, "node", err)
		}
		s.Members[n] = formerOf(l)
	}
	l, err := p.onNode(s.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return parentError(s.Name, "node", err)
	default:
		if err := p.a.differs(*s, l); err != nil {
			return err
		}
	}
	if err := p.membersFree(s, l.Index); err != nil {
		return err
	}
	if known := p.plan.shared(s.Name); known != nil {
		if !known.like(*s) {
			return fmt.Errorf("parent %q: two interfaces of the pod want it to be different: want the same, or another name", s.Name)
		}
		return nil
	}
	p.plan.Shared = append(p.plan.Shared, *s)
	return nil
}

// membersFree wants the members that a bond has not yet to be nobody's, and to carry
// nothing of the node's: they go down to come into it, and with that end their routes
// and IPv6 addresses, by which the node may be reached.
func (p *planner) membersFree(s *SharedLink, bond int) error {
	var errs []error
	for _, m := range s.Members {
		if bond != 0 && m.MasterIndex == bond {
			continue
		}
		if m.MasterIndex != 0 {
			errs = append(errs, fmt.Errorf("parent %q: member %s is in another bond or bridge (index %d): want it free", s.Name, m.Name, m.MasterIndex))
			continue
		}
		err := p.configuration(&m)
		for _, a := range m.Addresses {
			err = errors.Join(err, carries(s, m, "address", a.Prefix))
		}
		for _, r := range m.Routes {
			if r.Protocol != "ra" {
				err = errors.Join(err, carries(s, m, "route to", r.Dst))
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// carries is the error of a member that something of the node's would be lost of.
func carries(s *SharedLink, m Former, what string, prefix netip.Prefix) error {
	return fmt.Errorf("parent %q: member %s has the node's %s %s, which would be lost in a bond that pods make: want none, or a bond %s that the node makes and gives it to",
		s.Name, m.Name, what, prefix, s.Name)
}

func (s SharedLink) like(o SharedLink) bool {
	names := func(members []Former) (all []string) {
		for _, m := range members {
			all = append(all, m.Name)
		}
		return all
	}
	return s.Kind == o.Kind && s.On == o.On && s.VLANID == o.VLANID && s.Mode == o.Mode && maps.Equal(s.Options, o.Options) &&
		slices.Equal(names(s.Members), names(o.Members))
}

// differs says how the node's link of a name is another than the one we want.
func (a *Attacher) differs(s SharedLink, l rtnl.Link) error {
	wrong := func(field string, is, want any) error {
		return fmt.Errorf("parent %q: the node has a link of that name with %s %q: want %q, or another name", s.Name, field, fmt.Sprint(is), fmt.Sprint(want))
	}
	switch {
	case l.Kind != s.Kind:
		return wrong("kind", l.Kind, s.Kind)
	case s.Kind == kindVLAN && l.VLANID != s.VLANID:
		return wrong("VLAN", l.VLANID, s.VLANID)
	case s.Kind == kindBond && l.BondMode != s.Mode:
		return wrong("bond mode", l.BondMode, s.Mode)
	case s.Kind == kindVLAN:
		on, err := a.node.LinkByName(s.On)
		if err != nil {
			return parentError(s.On, "node", err)
		}
		if on.Index != l.ParentIndex {
			return wrong("parent of index", l.ParentIndex, on.Index)
		}
	}
	for _, m := range s.Members {
		member, err := a.node.LinkByName(m.Name)
		switch {
		case err != nil:
			return parentError(m.Name, "node", err)
		case member.MasterIndex != l.Index && l.Group != SharedGroup:
			return fmt.Errorf("parent %q: the node's bond has not the member %s: want it to, or another name", s.Name, m.Name)
		case member.MasterIndex != l.Index && member.MasterIndex != 0:
			return fmt.Errorf("parent %q: member %s is in another bond or bridge: want it free", s.Name, m.Name)
		}
	}
	return nil
}
