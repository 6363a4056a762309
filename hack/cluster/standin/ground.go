package standin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// routeProtocol marks the routes that are ours in the network namespace that we share with others.
const routeProtocol netlink.RouteProtocol = 198

// ground is where stand-ins meet the rest of the machine: a directory, and a bridge in our network namespace.
type ground struct {
	dir    string
	bridge string
}

// prepare gives the bridge the addresses that nodes take for their gateway.
func (g ground) prepare(gateways []netip.Prefix) error {
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(g.bridge)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", g.bridge, err)
	}
	for _, gateway := range gateways {
		if err := netlink.AddrReplace(bridge, address(gateway)); err != nil {
			return fmt.Errorf("address %s of %s: %w", gateway, g.bridge, err)
		}
	}
	return nil
}

// connect makes a node's cable into the bridge, and routes to its pods.
func (g ground) connect(n Node, namespace int) error {
	bridge, err := netlink.LinkByName(g.bridge)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", g.bridge, err)
	}
	cable := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: n.Uplink, MasterIndex: bridge.Attrs().Index},
		PeerName:      eth0,
		PeerNamespace: netlink.NsFd(namespace),
	}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("cable %s: %w", n.Uplink, err)
	}
	// A port needs no address of its own, and what hundreds of them would announce goes to all the others.
	if err := netlink.LinkSetIP6AddrGenMode(cable, nl.IN6_ADDR_GEN_MODE_NONE); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
		return fmt.Errorf("cable %s: no IPv6 address: %w", n.Uplink, err)
	}
	if err := netlink.LinkSetUp(cable); err != nil {
		return fmt.Errorf("cable %s: %w", n.Uplink, err)
	}
	for i, pods := range n.Pods {
		route := &netlink.Route{Dst: ipNet(pods), Gw: n.Hosts[i].Addr().AsSlice(), LinkIndex: bridge.Attrs().Index, Protocol: routeProtocol}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("route to %s: %w", pods, err)
		}
	}
	return nil
}

// clear removes everything that stand-ins leave: mounts and files below the directory, cables, routes and addresses.
func (g ground) clear() error {
	return errors.Join(g.clearDir(), g.clearNetwork())
}

func (g ground) clearDir() error {
	mountinfo, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer mountinfo.Close()
	mounted, err := mountsBelow(g.dir, mountinfo)
	if err != nil {
		return err
	}
	for _, target := range slices.Backward(mounted) {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", target, err)
		}
	}
	entries, err := filepath.Glob(filepath.Join(g.dir, "*"))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(entry); err != nil {
			return err
		}
	}
	return nil
}

// mountsBelow are the mount points below a directory in the order in which they were mounted (proc_pid_mountinfo(5)).
func mountsBelow(dir string, mountinfo io.Reader) ([]string, error) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var mounted []string
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		const mountPoint = 4
		fields := strings.Fields(lines.Text())
		if len(fields) <= mountPoint {
			return nil, fmt.Errorf("mountinfo: line %q: want at least %d fields", lines.Text(), mountPoint+1)
		}
		if target := unescape.Replace(fields[mountPoint]); strings.HasPrefix(target, dir+"/") {
			mounted = append(mounted, target)
		}
	}
	return mounted, lines.Err()
}

// whole asks for a list again that changed while the kernel told it: pods of
// stand-ins come and go meanwhile.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	const tries = 100
	for range tries {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

func (g ground) clearNetwork() error {
	routes, err := whole(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeProtocol}, netlink.RT_FILTER_PROTOCOL)
	})
	if err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	var errs []error
	for _, r := range routes {
		errs = append(errs, netlink.RouteDel(&r))
	}
	bridge, err := netlink.LinkByName(g.bridge)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return errors.Join(errs...)
	}
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("bridge %s: %w", g.bridge, err))...)
	}
	errs = append(errs, removeCables(bridge))
	for _, n := range (&Options{Nodes: 1, IPv4: true, IPv6: true}).nodes() {
		for _, gateway := range n.Gateways {
			if err := netlink.AddrDel(bridge, address(gateway)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				errs = append(errs, fmt.Errorf("address %s of %s: %w", gateway, g.bridge, err))
			}
		}
	}
	return errors.Join(errs...)
}

// removeCables removes the ends of all cables of stand-ins in a bridge, and so the other ends.
func removeCables(bridge netlink.Link) error {
	links, err := whole(netlink.LinkList)
	if err != nil {
		return fmt.Errorf("links: %w", err)
	}
	ours := regexp.MustCompile(`^s[0-9]+$`)
	var errs []error
	for _, l := range links {
		if l.Type() != "veth" || l.Attrs().MasterIndex != bridge.Attrs().Index || !ours.MatchString(l.Attrs().Name) {
			continue
		}
		// Its other end may have taken it along: that namespace has ended by now.
		if err := netlink.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("link %s: %w", l.Attrs().Name, err))
		}
	}
	return errors.Join(errs...)
}

// address is an address that is good at once, without asking whether another has it.
func address(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// ipNet is a prefix as netlink takes it.
func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
