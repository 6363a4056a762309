package api

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// makeNamespace makes a network namespace that a file stands for, as a container
// runtime does. It needs CAP_SYS_ADMIN.
func makeNamespace(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	made := make(chan error, 1)
	go func() { made <- mountNewNamespace(path) }()
	if err := <-made; err != nil {
		return errors.Join(fmt.Errorf("network namespace %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// mountNewNamespace works on its own thread, which goes back to where it was: a
// thread that ended would end the programs that were started from it.
func mountNewNamespace(path string) error {
	runtime.LockOSThread()
	const current = "/proc/thread-self/ns/net"
	before, err := os.Open(current)
	if err != nil {
		return err
	}
	defer before.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	err = unix.Mount(current, path, "", unix.MS_BIND, "")
	if back := unix.Setns(int(before.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, fmt.Errorf("setns: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

// endNamespace ends a namespace of makeNamespace.
func endNamespace(path string) error {
	return errors.Join(unix.Unmount(path, unix.MNT_DETACH), os.Remove(path))
}

// makeDefaultRoute gives this network namespace, which has nothing but a
// loopback interface, a default route, by which the API server finds out which
// address it has. No packet takes it.
func makeDefaultRoute() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	own := hostAddress(netip.MustParseAddr("10.255.255.1"))
	if err := netlink.AddrAdd(lo, own); err != nil {
		return fmt.Errorf("address of this network namespace: %w", err)
	}
	everything := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: everything, Src: own.IP}); err != nil {
		return fmt.Errorf("default route of this network namespace: %w", err)
	}
	return nil
}
