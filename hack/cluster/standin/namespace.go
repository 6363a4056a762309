package standin

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/netns"
)

// eth0 is what CNI plugins and nodes call the interface to the rest of the cluster.
const eth0 = "eth0"

// newNamespace makes a network namespace whose loopback is up, and mounts it at a path, which keeps it alive.
func newNamespace(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	home, err := netns.Current()
	if err != nil {
		return err
	}
	defer home.Close()
	// Do brings the thread back to where we are now, wherever the function leaves it.
	return home.Do(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("new network namespace: %w", err)
		}
		if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount network namespace at %s: %w", path, err)
		}
		const loopback = 1 // the kernel's index of lo in any namespace
		return netlink.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: loopback}})
	})
}

// endNamespace lets a namespace go that newNamespace made. One that is gone is no error.
func endNamespace(path string) error {
	// EINVAL: nothing is mounted there.
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// furnish does within a node's namespace what makes it a router: addresses of eth0, a default route and forwarding.
func furnish(ns *netns.NS, n Node) error {
	return ns.Do(func() error {
		for _, family := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"} {
			if err := os.WriteFile(filepath.Join("/proc/sys", family), []byte("1"), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		link, err := netlink.LinkByName(eth0)
		if err != nil {
			return fmt.Errorf("%s: %w", eth0, err)
		}
		for _, host := range n.Hosts {
			if err := netlink.AddrAdd(link, address(host)); err != nil {
				return fmt.Errorf("address %s: %w", host, err)
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("%s: %w", eth0, err)
		}
		for _, gateway := range n.Gateways {
			everywhere := netip.PrefixFrom(gateway.Addr(), 0)
			if err := netlink.RouteAdd(&netlink.Route{Dst: ipNet(everywhere), Gw: gateway.Addr().AsSlice(), LinkIndex: link.Attrs().Index}); err != nil {
				return fmt.Errorf("default route by %s: %w", gateway.Addr(), err)
			}
		}
		return nil
	})
}
