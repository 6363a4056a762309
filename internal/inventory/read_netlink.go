package inventory

import (
	"errors"
	"io/fs"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
)

// netlink asks all that netlink tells of this namespace.
func (p *pass) netlink() {
	if p.archive != nil {
		p.facts.Netlink = *p.archive
	} else {
		p.liveLinks()
		p.liveRDMA()
	}
	if p.facts.Netlink.System == nil {
		p.netnsModeParam()
	}
	p.touched = touchedLinks(p.changed.Links, p.facts.Netlink.Links, p.prev.Netlink.Links)
	if p.archive == nil {
		p.liveSettings()
	}
}

func (p *pass) liveLinks() {
	var err error
	p.facts.Netlink.Links, err = p.links.Links()
	p.problem(err)
	p.facts.Netlink.Addresses, err = p.links.Addresses()
	p.problem(err)
}

// hasRDMA tells whether ib_core is there. To open a socket of RDMA without it
// could make the kernel load it.
func (r *Reader) hasRDMA() (bool, error) {
	_, loaded, err := r.fs.Module("ib_core")
	return loaded, err
}

func (p *pass) liveRDMA() {
	if p.rdma == nil {
		loaded, err := p.hasRDMA()
		p.problem(err)
		if !loaded {
			return
		}
		client, err := p.node.Own().RDMA()
		if err != nil {
			p.problem(err)
			return
		}
		p.rdma = client
	}
	system, err := p.rdma.System()
	if err == nil {
		p.facts.Netlink.System = &system
	} else if !errors.Is(err, rdmanl.ErrNotSupported) {
		p.problem(err)
	}
	p.facts.Netlink.RDMA, err = p.rdma.DevicesWithPorts()
	p.problem(err)
	p.isListed = err == nil
}

func (p *pass) netnsModeParam() {
	core, loaded, err := p.fs.Module("ib_core")
	p.problem(err)
	if !loaded {
		return
	}
	switch core.Params["netns_mode"] {
	case "Y":
		p.facts.NetNSModeParam = "shared"
	case "N":
		p.facts.NetNSModeParam = "exclusive"
	}
}

// liveSettings asks for the speeds of hardware links. Drivers may ask their
// firmware for them, so those of links that did not change are kept.
func (p *pass) liveSettings() {
	if p.settings == nil {
		return
	}
	n := &p.facts.Netlink
	if p.changed.All {
		var err error
		n.Settings, err = p.settings.SettingsAll()
		if err != nil {
			p.problem(err)
			p.facts.unread.merge(linksChange(n.Links))
		}
		return
	}
	n.Settings = map[int]ethtool.LinkSettings{}
	for _, l := range n.Links {
		if old, ok := p.prev.Netlink.Settings[l.Index]; ok && !p.touched[l.Index] {
			n.Settings[l.Index] = old
			continue
		}
		s, err := p.settings.Settings(l.Index)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		n.Settings[l.Index] = s
		if err != nil {
			p.problem(err)
			p.facts.unread.merge(linkChange(l.Index))
		}
	}
}

// touchedLinks returns the links with the given indexes and those that they sit
// on or belong to: an address of a macvlan adds a GID to the device of its
// parent, one of a bond to the devices of its members.
func touchedLinks(changed map[int]bool, links ...[]rtnl.Link) map[int]bool {
	touched := map[int]bool{}
	if len(changed) == 0 {
		return touched
	}
	byIndex, members := map[int][]*rtnl.Link{}, map[int][]int{}
	for _, list := range links {
		for i := range list {
			l := &list[i]
			byIndex[l.Index] = append(byIndex[l.Index], l)
			members[l.MasterIndex] = append(members[l.MasterIndex], l.Index)
		}
	}
	var touch func(index int)
	touch = func(index int) {
		if index == 0 || touched[index] {
			return
		}
		touched[index] = true
		for _, l := range byIndex[index] {
			touch(l.ParentIndex)
			touch(l.MasterIndex)
			if l.Kind == "bond" {
				for _, member := range members[index] {
					touch(member)
				}
			}
		}
	}
	for index := range changed {
		touch(index)
	}
	return touched
}
