package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/netns"
)

// machine is one machine's network while its namespace is open. Whatever is
// set may be set again.
type machine struct {
	*netlink.Handle
	ns *netns.NS
}

// link finds a link by its name. The error is fs.ErrNotExist if there is none.
func (m machine) link(name string) (netlink.Link, error) {
	link, err := m.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV) {
		return nil, fmt.Errorf("link %s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", name, err)
	}
	return link, nil
}

// bridge makes a bridge and gives it addresses. Its hardware address is fixed:
// left to itself it would follow the ports that come and go, and neighbours
// would lose their gateway.
func (m machine) bridge(name, mac string, mtu int, gateways []netip.Prefix) error {
	link, err := m.link(name)
	if errors.Is(err, fs.ErrNotExist) {
		link, err = m.addBridge(name, mac)
	}
	if err != nil {
		return err
	}
	if err := m.LinkSetMTU(link, mtu); err != nil {
		return fmt.Errorf("set MTU %d of %s: %w", mtu, name, err)
	}
	if err := m.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return m.addresses(link, gateways)
}

func (m machine) addBridge(name, mac string) (netlink.Link, error) {
	hardware, err := net.ParseMAC(mac)
	if err != nil {
		return nil, fmt.Errorf("bridge %s: %w", name, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = name, hardware
	// Without a querier a bridge that snoops forgets who listens, and IPv6
	// neighbours are found by multicast.
	bridge := &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: new(false)}
	if err := m.LinkAdd(bridge); err != nil {
		return nil, fmt.Errorf("add bridge %s: %w", name, err)
	}
	return m.link(name)
}

func (m machine) addresses(link netlink.Link, list []netip.Prefix) error {
	var errs []error
	for _, p := range list {
		errs = append(errs, m.address(link, p))
	}
	return errors.Join(errs...)
}

// address gives a link an address that it uses at once.
func (m machine) address(link netlink.Link, p netip.Prefix) error {
	a := &netlink.Addr{IPNet: ipNet(p)}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	if err := m.AddrReplace(link, a); err != nil {
		return fmt.Errorf("add address %v to %s: %w", p, link.Attrs().Name, err)
	}
	return nil
}

// route leads to a network by a gateway that is on a link.
func (m machine) route(link netlink.Link, to netip.Prefix, via netip.Addr) error {
	r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(to), Gw: via.AsSlice()}
	if err := m.RouteReplace(r); err != nil {
		return fmt.Errorf("add route to %v by %v on %s: %w", to, via, link.Attrs().Name, err)
	}
	return nil
}

// noLink removes a link, and of a pair the other end.
func (m machine) noLink(name string) error {
	link, err := m.link(name)
	if err == nil {
		err = m.LinkDel(link)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil // the kernel may have been removing it with the namespace of its other end
	}
	return fmt.Errorf("remove %s: %w", name, err)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
