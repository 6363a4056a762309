package node_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

func TestOwn(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		n := node.Running(sysfs.New("/"))
		kerneltest.AddVeth(t, "va", "vb")
		own := n.Own()
		want, err := netns.Stat("/proc/self/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		if own.ID() != want {
			t.Errorf("it is %v, want %v", own.ID(), want)
		}
		if diff := cmp.Diff([]string{"lo", "vb", "va"}, linkNames(t, own)); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
		if driver := driverOf(t, own, "va"); driver != "veth" {
			t.Errorf("driver %q, want veth", driver)
		}
		sys, err := own.SysFS()
		if err != nil {
			t.Fatal(err)
		}
		defer sys.Close()
		if sys.Name() != "/sys" {
			t.Errorf("sysfs is at %q, want /sys", sys.Name())
		}
		if err := own.Close(); err != nil {
			t.Error(err)
		}
		if got := linkNames(t, own); len(got) != 3 {
			t.Errorf("after close, links %q, want what there is", got)
		}
	})
}

func TestOwnWithoutProc(t *testing.T) {
	t.Parallel()
	if id := node.Running(sysfs.New(t.TempDir())).Own().ID(); id != (netns.ID{}) {
		t.Errorf("it is %v without a proc", id)
	}
}

// TestOther talks with all clients in another namespace, and then has it end:
// the end of a veth in it takes its peer here along.
func TestOther(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		n := node.Running(sysfs.New("/"))
		file := kerneltest.NewNetNS(t)
		kerneltest.AddVeth(t, "here", "there")
		kerneltest.MoveLink(t, "there", file)
		path := fmt.Sprintf("/proc/self/fd/%d", file.Fd())

		before := openFiles(t)
		ns, err := n.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := netns.Stat(path)
		if err != nil || ns.ID() != want || ns.ID() == n.Own().ID() {
			t.Errorf("it is %v, want %v, error %v", ns.ID(), want, err)
		}
		if diff := cmp.Diff([]string{"lo", "there"}, linkNames(t, ns)); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
		if driver := driverOf(t, ns, "there"); driver != "veth" {
			t.Errorf("driver %q, want veth", driver)
		}
		talk(t, ns)
		if err := ns.Close(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, openFiles(t)); diff != "" {
			t.Errorf("open files (-before +after):\n%s", diff)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		kerneltest.AwaitNoLink(t, "here")
	})
}

// talk opens what not every machine has.
func talk(t *testing.T, ns node.NetNS) {
	t.Helper()
	if c, err := ns.Devlink(); err == nil {
		_, err = c.HealthReporters("pci", "ffff:ff:1f.7") // no such device, which is no error
		closeAll(t, c)
		if err != nil {
			t.Errorf("devlink: %v", err)
		}
	} else if !errors.Is(err, devlink.ErrNotSupported) {
		t.Errorf("devlink: %v", err)
	}
	if c, err := ns.RDMA(); err == nil {
		devices, err := c.Devices()
		closeAll(t, c)
		if err != nil && !errors.Is(err, rdmanl.ErrNotSupported) {
			t.Errorf("RDMA: %v, error %v", devices, err)
		}
	} else if !errors.Is(err, rdmanl.ErrNotSupported) {
		t.Errorf("RDMA: %v", err)
	}
	sys, err := ns.SysFS()
	if errors.Is(err, fs.ErrPermission) {
		return // parts of /sys are hidden here, see the test of netns.NS.SysFS
	}
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, sys)
	if _, err := os.Stat(filepath.Join("/proc/self/fd", fmt.Sprint(sys.Fd()), "class/net/there")); err != nil {
		t.Errorf("sysfs: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	n := node.Running(sysfs.New("/"))
	if ns, err := n.Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) || ns != nil {
		t.Errorf("namespace %v, error %v, want %v", ns, err, fs.ErrNotExist)
	}
	if ns, err := n.Open(os.DevNull); err == nil || ns != nil {
		t.Errorf("namespace %v of a file that is none", ns)
	}
}

// TestEvents hears what happens in our namespace and then stops.
func TestEvents(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		n := node.Running(sysfs.New("/"))
		links, err := n.Subscribe(rtnl.Links)
		if err != nil {
			t.Fatal(err)
		}
		uevents, err := n.Uevents()
		if err != nil {
			t.Fatal(err)
		}
		kerneltest.AddVeth(t, "va", "vb")
		events, err := links.Receive()
		if err != nil || len(events) == 0 || events[0].Link == nil {
			t.Errorf("events %+v, error %v, want one of a link", events, err)
		}
		for {
			e, err := uevents.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if e.Subsystem == "net" && e.Vars["INTERFACE"] == "va" {
				break
			}
		}
		closeAll(t, links, uevents)
		if m, err := n.Monitor(); err == nil {
			closeAll(t, m)
		} else if !errors.Is(err, rdmanl.ErrNotSupported) {
			t.Errorf("monitor: %v", err)
		}
	})
}

func TestSubscribeToNothing(t *testing.T) {
	t.Parallel()
	if s, err := node.Running(sysfs.New("/")).Subscribe(); err == nil {
		closeAll(t, s)
		t.Error("it listens to no groups")
	}
}

func linkNames(t *testing.T, ns node.NetNS) []string {
	t.Helper()
	c, err := ns.Links()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, c)
	links, err := c.Links()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	return names
}

func driverOf(t *testing.T, ns node.NetNS, netdev string) string {
	t.Helper()
	c, err := ns.Ethtool()
	if errors.Is(err, ethtool.ErrNotSupported) {
		t.Skipf("no ethtool netlink here: %v; it takes Linux 5.6", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, c)
	info, err := c.DriverInfo(netdev)
	if err != nil {
		t.Fatal(err)
	}
	return info.Driver
}

func closeAll(t *testing.T, closers ...io.Closer) {
	t.Helper()
	for _, c := range closers {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// openFiles lists what the process has open.
func openFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // but the directory itself
			open = append(open, target)
		}
	}
	slices.Sort(open)
	return open
}
