package cases

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rename gives a network device another name until the test ends.
func rename(t *testing.T, from, to string) {
	t.Helper()
	set := func(from, to string) {
		Run(t, "ip", "link", "set", from, "down")
		Run(t, "ip", "link", "set", from, "name", to)
	}
	set(from, to)
	t.Cleanup(func() {
		if _, there := Links(t)[to]; there {
			set(to, from)
		}
	})
}

// addRail sets a network device up as a rail with a Soft-RoCE device of the same name, and no address of its own making.
func addRail(t *testing.T, netdev, name, address string) {
	t.Helper()
	rename(t, netdev, name)
	Run(t, "ip", "link", "set", name, "addrgenmode", "none", "mtu", "4200", "up")
	Run(t, "ip", "addr", "add", address, "dev", name)
	t.Cleanup(func() { _, _ = Try("ip", "addr", "flush", "dev", name) })
	AddRXE(t, "rdma_"+name, name)
}

// twoRails is a node as an administrator may find it: two rails, one of them down, two virtual functions on the other,
// one of them in a pod.
func twoRails(t *testing.T) {
	t.Helper()
	pfs := PFs(t)
	addRail(t, NetdevOf(t, pfs[0]), "rail0", "192.0.2.1/24")
	addRail(t, NetdevOf(t, pfs[1]), "rail1", "198.51.100.1/24")
	vfs := AddVFs(t, pfs[0], 2)
	rename(t, vfs[0].Netdev, "vf0")
	rename(t, vfs[1].Netdev, "vf1")
	Run(t, "ip", "link", "set", "vf1", "address", "52:54:00:00:00:99", "addrgenmode", "none")
	AddRXE(t, "rdma_vf1", "vf1")
	pod := NewNetNS(t, "pod")
	Run(t, "ip", "link", "set", "vf1", "netns", "pod")
	Run(t, "rdma", "dev", "set", "rdma_vf1", "netns", "pod")
	pod.Run(t, "ip", "link", "set", "vf1", "up")
	pod.Run(t, "ip", "addr", "add", "192.0.2.101/24", "dev", "vf1")
	Run(t, "ip", "link", "set", "rail1", "down")
	Eventually(t, func() string {
		if link := RDMALinks(t)["rdma_rail1"]; link.State != "DOWN" {
			return "rdma_rail1 down"
		}
		if link := pod.Run(t, "rdma", "link"); !strings.Contains(link, "state ACTIVE") {
			return "rdma_vf1 active: " + link
		}
		return ""
	})
}

// railhead runs the program itself, and returns its output and its exit status.
func railhead(t *testing.T, args ...string) (string, int) {
	t.Helper()
	out, err := Try("railhead", args...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return out, exit.ExitCode()
	}
	return out, 0
}

// TestSRIOVCommandLine holds what the program prints on a node with cards against golden files.
func TestSRIOVCommandLine(t *testing.T) {
	Require(t)
	twoRails(t)
	for _, tt := range []struct {
		golden string
		status int
		args   []string
	}{
		{"devices.txt", 0, []string{"devices"}},
		{"devices.wide.txt", 0, []string{"devices", "-o", "wide"}},
		{"check.txt", 2, []string{"check", "--want-vfs", "4"}},
	} {
		got, status := railhead(t, tt.args...)
		want, err := os.ReadFile(filepath.Join("testdata", tt.golden))
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("railhead %v (-want +got):\n%s\nif it is right, make this testdata/%s:\n%s", tt.args, diff, tt.golden, got)
		}
		if status != tt.status {
			t.Errorf("railhead %v: exit status %d, want %d", tt.args, status, tt.status)
		}
	}
}

// TestSRIOVCapture wants the archive of a node to tell what the node tells.
func TestSRIOVCapture(t *testing.T) {
	Require(t)
	twoRails(t)
	archive := filepath.Join(t.TempDir(), "node.txtar")
	Run(t, "capture", "--keep-addresses", "-o", archive)
	for _, args := range [][]string{{"devices", "-o", "json"}, {"check", "-o", "json", "--want-netns-mode", "shared"}} {
		live, liveStatus := railhead(t, args...)
		copied, copiedStatus := railhead(t, append(args, "--sysfs-root", archive)...)
		if diff := cmp.Diff(live, copied); diff != "" || liveStatus != copiedStatus {
			t.Errorf("railhead %v ended with %d on the node and %d on its archive (-node +archive):\n%s", args, liveStatus, copiedStatus, diff)
		}
		t.Logf("railhead %v: %d bytes, the same from the node and its archive", args, len(live))
	}
}
