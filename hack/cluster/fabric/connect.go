package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"railhead/hack/cluster/plan"
)

// Connect plugs all cables of a node in, gives its ends their addresses, and
// makes the routes: the node's by the fabric and to the pods of all planned
// nodes, and the fabric's to the node's pods. What is right already stays; a
// cable that is cut, or whose node's end has gone elsewhere, is plugged in
// anew. One cable that fails keeps none of the others out.
func (f *Fabric) Connect(node string) error {
	n, ok := f.plan.Node(node)
	if !ok {
		return f.unknown(node)
	}
	return f.in(plan.Fabric, func(fabric machine) error {
		return f.in(n.Name, func(m machine) error {
			errs := []error{m.loopback(nil)}
			for _, l := range f.plan.Links(n) {
				if err := plug(l, fabric, m); err != nil {
					errs = append(errs, fmt.Errorf("cable of %s to %s of %s: %w", l.Netdev, l.Port, l.Bridge, err))
				}
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			return errors.Join(f.routesOf(m, n), f.routesTo(fabric, n))
		})
	})
}

// unknown is the error for a node that is not planned.
func (f *Fabric) unknown(node string) error {
	_, err := f.plan.Link(node, plan.Eth0)
	return err
}

// plug connects a node's netdev to a bridge of the fabric.
func plug(l plan.Link, fabric, node machine) error {
	port, end, err := ends(l, fabric, node)
	if errors.Is(err, fs.ErrNotExist) {
		port, end, err = addCable(l, fabric, node)
	}
	if err != nil {
		return err
	}
	bridge, err := fabric.link(l.Bridge)
	if err != nil {
		return err
	}
	if err := fabric.LinkSetMaster(port, bridge); err != nil {
		return fmt.Errorf("put %s into %s: %w", l.Port, l.Bridge, err)
	}
	if err := fabric.LinkSetUp(port); err != nil {
		return fmt.Errorf("set %s up: %w", l.Port, err)
	}
	if err := node.LinkSetUp(end); err != nil {
		return fmt.Errorf("set %s up: %w", l.Netdev, err)
	}
	return node.addresses(end, l.Addresses)
}

// ends finds both ends of a cable. The error is fs.ErrNotExist if it has to be
// made: then nothing is in its way. What is left in the fabric of a node that
// has ended is removed.
func ends(l plan.Link, fabric, node machine) (port, end netlink.Link, err error) {
	end, err = node.link(l.Netdev)
	if errors.Is(err, fs.ErrNotExist) {
		if stale := fabric.noLink(l.Port); stale != nil {
			err = stale
		}
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	port, err = fabric.link(l.Port)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if err != nil || !arePeers(port, end) {
		return nil, nil, fmt.Errorf("%s leads elsewhere: want it absent, or one end of a veth pair with %s", l.Netdev, l.Port)
	}
	return port, end, nil
}

// arePeers tells whether two links, of different namespaces, are the ends of
// one pair: each then has the other's index as that of its parent.
func arePeers(a, b netlink.Link) bool {
	return a.Type() == "veth" && b.Type() == "veth" &&
		a.Attrs().ParentIndex == b.Attrs().Index && b.Attrs().ParentIndex == a.Attrs().Index
}

// addCable makes a pair of links with each end where it belongs.
func addCable(l plan.Link, fabric, node machine) (port, end netlink.Link, err error) {
	hardware, err := net.ParseMAC(l.MAC)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", l.Netdev, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = l.Port, l.MTU
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerHardwareAddr, veth.PeerMTU = l.Netdev, hardware, uint32(l.MTU)
	veth.PeerNamespace = netlink.NsFd(node.ns.FD())
	if err := fabric.LinkAdd(veth); err != nil {
		return nil, nil, fmt.Errorf("add the pair: %w", err)
	}
	if port, err = fabric.link(l.Port); err != nil {
		return nil, nil, err
	}
	end, err = node.link(l.Netdev)
	return port, end, err
}

// routesOf makes a node's routes: to everything by the fabric, and straight to
// the pods of other nodes.
func (f *Fabric) routesOf(m machine, n plan.Node) error {
	eth0, err := m.link(plan.Eth0)
	if err != nil {
		return err
	}
	var errs []error
	for _, gateway := range f.plan.Host {
		everything := netip.PrefixFrom(gateway.Addr(), 0).Masked()
		errs = append(errs, m.route(eth0, everything, gateway.Addr()))
	}
	for _, other := range f.plan.Nodes {
		if other.Name == n.Name {
			continue
		}
		for i, pods := range other.Pods {
			errs = append(errs, m.route(eth0, pods, other.Host[i].Addr()))
		}
	}
	return errors.Join(errs...)
}

// routesTo makes the fabric's routes to a node's pods.
func (f *Fabric) routesTo(fabric machine, n plan.Node) error {
	bridge, err := fabric.link(plan.Bridge)
	if err != nil {
		return err
	}
	var errs []error
	for i, pods := range n.Pods {
		errs = append(errs, fabric.route(bridge, pods, n.Host[i].Addr()))
	}
	return errors.Join(errs...)
}
