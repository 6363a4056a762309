package cases

import (
	"fmt"
	"strings"
	"testing"

	"railhead/internal/check"
	"railhead/internal/inventory"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/sysfs"
)

// findings checks the machine as `railhead check` does.
func findings(t *testing.T, wishes check.Wishes) []check.Finding {
	t.Helper()
	others, err := netns.List("/proc")
	if err != nil {
		t.Fatal(err)
	}
	count := len(others)
	return check.Run(check.Gather(sysfs.New("/"), Inventory(t), &count), wishes)
}

// finding returns the finding of a rule about an object, if there is one.
func finding(list []check.Finding, id, object string) *check.Finding {
	for i := range list {
		if list[i].ID == id && strings.Contains(list[i].Object, object) {
			return &list[i]
		}
	}
	return nil
}

// mended wants a finding, runs the commands that it says mend it, and wants it gone. Of the commands only those run that
// this machine has the means for: keep tells which.
func mended(t *testing.T, wishes check.Wishes, id, object string, keep func(command string) bool) {
	t.Helper()
	list := findings(t, wishes)
	f := finding(list, id, object)
	if f == nil {
		t.Fatalf("no finding %s about %s, only %+v", id, object, list)
	}
	t.Logf("%s: %s: %s", f.ID, f.Object, f.Seen)
	ran := 0
	for _, command := range f.Mend {
		if !strings.HasPrefix(command, "#") && keep(command) {
			t.Logf("mend: %s", command)
			Run(t, "bash", "-c", command)
			ran++
		}
	}
	if ran == 0 {
		t.Fatalf("%s: none of its commands can be run: %q", id, f.Mend)
	}
	Eventually(t, func() string {
		if f := finding(findings(t, wishes), id, object); f != nil {
			return "finding gone: " + f.ID + ": " + f.Object + ": " + f.Seen
		}
		return ""
	})
}

// all keeps every command.
func all(string) bool { return true }

// TestAnyCheckMends breaks what can be broken on every machine, and mends it as the findings say.
func TestAnyCheckMends(t *testing.T) {
	Require(t)
	AddVeth(t, "va", "vb")
	AddRXE(t, "rxe0", "va")
	if f := finding(findings(t, check.Wishes{}), "port-down", "rxe0"); f != nil {
		t.Errorf("a port that is up counts as down: %+v", f)
	}

	Run(t, "ip", "link", "set", "va", "down")
	mended(t, check.Wishes{}, "port-down", "rxe0", all)

	uverbs := find(t, Inventory(t), "rxe0").RDMA.CharDevices[0].Name
	Run(t, "rm", "/dev/infiniband/"+uverbs)
	mended(t, check.Wishes{}, "char-device-missing", uverbs, func(command string) bool {
		return strings.Contains(command, "mknod") // there is no udev
	})
}

// TestSharedCheckMode asks for exclusive mode where it can and where it cannot be had.
func TestSharedCheckMode(t *testing.T) {
	Require(t)
	AddVeth(t, "va", "vb")
	AddRXE(t, "rxe0", "va")
	wishes := check.Wishes{NetNSMode: "exclusive"}

	NewNetNS(t, "pod")
	f := finding(findings(t, wishes), "netns-mode", "node")
	if f == nil || !strings.Contains(strings.Join(f.Mend, "\n"), "reboot") {
		t.Fatalf("with another namespace only a reboot changes the mode, and the finding is %+v", f)
	}
	if _, err := Try("rdma", "system", "set", "netns", "exclusive"); err == nil {
		t.Error("the kernel changed the mode although another namespace exists")
	}
	Run(t, "ip", "netns", "del", "pod")
	Eventually(t, func() string { // namespaces go away in the kernel's own time
		if _, err := Try("rdma", "system", "set", "netns", "exclusive"); err != nil {
			return err.Error()
		}
		return ""
	})
	t.Cleanup(func() { Run(t, "rdma", "system", "set", "netns", "shared") })
	mended(t, check.Wishes{NetNSMode: "shared"}, "netns-mode", "node", func(command string) bool {
		return strings.HasPrefix(command, "rdma system set")
	})
}

// TestSRIOVCheckMends breaks what takes cards, and mends it as the findings say.
func TestSRIOVCheckMends(t *testing.T) {
	Require(t)
	pfs := PFs(t)
	netdevs := []string{NetdevOf(t, pfs[0]), NetdevOf(t, pfs[1])}
	for i, netdev := range netdevs {
		Run(t, "ip", "link", "set", netdev, "mtu", "1500", "up")
		AddRXE(t, fmt.Sprintf("rpf%d", i), netdev)
		Run(t, "ip", "addr", "add", []string{"192.0.2.1/24", "192.0.2.2/24"}[i], "dev", netdev)
		t.Cleanup(func() { Run(t, "ip", "addr", "flush", "dev", netdev) })
		Run(t, "sysctl", "-w", "net.ipv4.conf."+netdev+".rp_filter=1", "net.ipv4.conf."+netdev+".arp_ignore=0", "net.ipv4.conf."+netdev+".arp_announce=0")
	}
	for i, pf := range pfs {
		if d := find(t, Inventory(t), pf); d.Kind != inventory.PF || d.Rail == nil || *d.Rail != i || d.PCI.NUMANode == nil || *d.PCI.NUMANode != i {
			t.Errorf("%s: %+v, want a PF on rail %d and NUMA node %d", pf, d, i, i)
		}
	}
	now := func(command string) bool { return strings.HasPrefix(command, "sysctl") } // and not at the next boot
	mended(t, check.Wishes{}, "duplicate-subnet", netdevs[0], now)
	mended(t, check.Wishes{}, "rp-filter", netdevs[1], now)
	for i := range netdevs {
		mended(t, check.Wishes{}, "mtu-below-card", fmt.Sprintf("rpf%d", i), all)
	}
	for _, pf := range pfs {
		t.Cleanup(func() { WriteFile(t, PCIPath(pf, "sriov_numvfs"), "0") })
		mended(t, check.Wishes{VFs: 2}, "vfs-wanted", pf, all)
	}
	if f := finding(findings(t, check.Wishes{VFs: 8}), "vfs-wanted", pfs[0]); f == nil || !strings.Contains(f.Seen, "at most 7") {
		t.Errorf("8 VFs are more than the card has, and the finding is %+v", f)
	}
	if f := finding(findings(t, check.Wishes{}), "netns-mode-at-boot", "node"); f == nil {
		t.Error("exclusive mode that the next boot will not have is not found")
	}
}
