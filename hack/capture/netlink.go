package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"railhead/internal/inventory"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// netlink writes down what netlink said, unless it is a copy that does not
// tell. It replaces the addresses in n.
func (c *copier) netlink(n *inventory.Netlink) {
	if c.isLive() {
		c.keep(addNamespaces(n))
	} else if _, err := os.Stat(c.fs.Path(inventory.NetlinkFile)); err != nil {
		return
	}
	c.hideNetlink(n)
	text, err := layOutJSON(n)
	if err != nil {
		c.leaveOut(fmt.Errorf("%s: %w", inventory.NetlinkFile, err))
		return
	}
	c.keep(c.out.File(strings.TrimPrefix(inventory.NetlinkFile, "/"), text))
}

// addNamespaces adds the other network namespaces, though they hold nothing:
// the check counts them.
func addNamespaces(n *inventory.Netlink) error {
	found, err := netns.List("/proc")
	for _, f := range found {
		if !slices.ContainsFunc(n.Elsewhere, func(e inventory.Namespace) bool { return e.ID == f.ID }) {
			n.Elsewhere = append(n.Elsewhere, inventory.Namespace{ID: f.ID, Path: f.Path})
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("without the right to look, some network namespaces are not counted: %w", err)
	}
	return err
}

// hideNetlink replaces the addresses. It also drops the aliases of links, which
// are free text, and attributes that have no name yet, which may hold
// anything.
func (c *copier) hideNetlink(n *inventory.Netlink) {
	c.hideRDMA(n.RDMA)
	c.hideLinks(n.Links)
	c.hideAddresses(n.Addresses)
	for i := range n.Elsewhere {
		e := &n.Elsewhere[i]
		c.hideIB(e.IB)
		c.hideRDMA(e.RDMA)
		c.hideLinks(e.Links)
		c.hideAddresses(e.Addresses)
	}
}

func (c *copier) hideRDMA(devices []rdmanl.Device) {
	for i := range devices {
		d := &devices[i]
		d.Unknown = nil
		c.hide(&d.NodeGUID, (*pseudonyms).guidText)
		c.hide(&d.SysImageGUID, (*pseudonyms).guidText)
		for k := range d.Ports {
			d.Ports[k].Unknown = nil
			c.hide(&d.Ports[k].SubnetPrefix, (*pseudonyms).subnetText)
		}
	}
}

func (c *copier) hideLinks(links []rtnl.Link) {
	for i := range links {
		l := &links[i]
		l.Alias = ""
		c.hide(&l.Address, (*pseudonyms).linkText)
		c.hide(&l.PermAddress, (*pseudonyms).linkText)
		c.hide(&l.PhysSwitchID, (*pseudonyms).switchText)
	}
}

func (c *copier) hideAddresses(addresses []rtnl.Address) {
	if c.addresses == nil {
		return
	}
	for i := range addresses {
		a := &addresses[i]
		before := a.Prefix
		a.Prefix = c.addresses.prefix(a.Prefix)
		a.Peer = c.addresses.prefix(a.Peer)
		switch {
		case a.Broadcast == rtnl.SubnetBroadcast(before):
			a.Broadcast = rtnl.SubnetBroadcast(a.Prefix)
		case a.Broadcast.IsValid():
			a.Broadcast = c.addresses.ip(a.Broadcast)
		}
	}
}

func (c *copier) hideIB(devices []sysfs.IBDevice) {
	for i := range devices {
		d := &devices[i]
		c.hide(&d.NodeGUID, (*pseudonyms).guidText)
		c.hide(&d.SysImageGUID, (*pseudonyms).guidText)
		for _, p := range d.Ports {
			for k := range p.GIDs {
				c.hide(&p.GIDs[k].GID, (*pseudonyms).gidText)
			}
		}
	}
}

// hide replaces an address. What cannot be understood is dropped.
func (c *copier) hide(address *string, hide replacement) {
	if c.addresses == nil || *address == "" {
		return
	}
	hidden, err := hide(c.addresses, *address)
	if err != nil {
		c.leaveOut(fmt.Errorf("%s: %w", inventory.NetlinkFile, err))
	}
	*address = hidden
}
