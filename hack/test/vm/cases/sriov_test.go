package cases

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestSRIOVTopology(t *testing.T) {
	Require(t)
	pfs := PFs(t)
	if len(pfs) != 2 {
		t.Fatalf("SR-IOV cards: %v", pfs)
	}
	for node, pf := range pfs {
		if got := ReadFile(t, PCIPath(pf, "numa_node")); got != strconv.Itoa(node) {
			t.Errorf("NUMA node of %s: %s, want %d", pf, got, node)
		}
		if got := ReadFile(t, PCIPath(pf, "local_cpulist")); got != strconv.Itoa(node) {
			t.Errorf("processors near %s: %s, want %d", pf, got, node)
		}
		path, err := filepath.EvalSymlinks(PCIPath(pf, ""))
		if err != nil {
			t.Fatal(err)
		}
		// /sys/devices/pci<bridge>/<root port>/<switch upstream>/<switch downstream>/<card>
		if got := strings.Count(strings.TrimPrefix(path, "/sys/devices/"), "/"); got != 4 {
			t.Errorf("%s is not below a switch: %s", pf, path)
		}
		if got := ReadFile(t, PCIPath(pf, "sriov_totalvfs")); got != "7" {
			t.Errorf("virtual functions of %s: %s", pf, got)
		}
	}
}

// TestSRIOVMove proves that the lab has what it is for: RDMA devices on virtual functions that move as hardware's do.
func TestSRIOVMove(t *testing.T) {
	Require(t)
	if !Exclusive(t) {
		t.Fatal("RDMA devices are shared on this machine")
	}
	for node, pf := range PFs(t) {
		vf, device := AddVFs(t, pf, 2)[0], "rv"+strconv.Itoa(node)
		AddRXE(t, device, vf.Netdev)
		for _, rdmaFirst := range []bool{true, false} {
			t.Run(pf+"/rdma first "+strconv.FormatBool(rdmaFirst), func(t *testing.T) {
				moveAndComeBack(t, vf, device, rdmaFirst)
			})
		}
	}
}

// TestSRIOVTraffic proves that pods with devices of their own reach each other through them.
func TestSRIOVTraffic(t *testing.T) {
	Require(t)
	vfs := AddVFs(t, PFs(t)[0], 2)
	for i, pod := range []NetNS{NewNetNS(t, "server"), NewNetNS(t, "client")} {
		device, netdev := "rt"+strconv.Itoa(i), vfs[i].Netdev
		AddRXE(t, device, netdev)
		Run(t, "ip", "link", "set", netdev, "netns", string(pod))
		Run(t, "rdma", "dev", "set", device, "netns", string(pod))
		pod.Run(t, "ip", "addr", "add", "192.0.2."+strconv.Itoa(i+1)+"/24", "dev", netdev)
		pod.Run(t, "ip", "link", "set", netdev, "up")
	}
	server, client := NetNS("server"), NetNS("client")
	for device, pod := range map[string]NetNS{"rt0": server, "rt1": client} {
		Eventually(t, func() string {
			if out := pod.Run(t, "rdma", "link"); !strings.Contains(out, "state ACTIVE") {
				return device + " active: " + out
			}
			return ""
		})
	}
	ended := make(chan error, 1)
	go func() {
		_, err := server.Try("ib_write_bw", "-d", "rt0", "-x", "1", "-n", "100", "-s", "4096")
		ended <- err
	}()
	Eventually(t, func() string { // the server is ready when it listens
		if !strings.Contains(server.Run(t, "ss", "-ltn"), ":18515") {
			return "ib_write_bw listening"
		}
		return ""
	})
	client.Run(t, "ib_write_bw", "-d", "rt1", "-x", "1", "-n", "100", "-s", "4096", "192.0.2.1")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// moveAndComeBack moves a virtual function's devices into a namespace and deletes that.
func moveAndComeBack(t *testing.T, vf VF, device string, rdmaFirst bool) {
	t.Helper()
	if got := RDMADeviceOf(t, vf.Address); got != device {
		t.Fatalf("RDMA device of %s in sysfs: %q", vf.Address, got)
	}
	ns := NewNetNS(t, "pod")
	moveRDMA := func() { Run(t, "rdma", "dev", "set", device, "netns", "pod") }
	if rdmaFirst {
		moveRDMA()
	}
	Run(t, "ip", "link", "set", vf.Netdev, "netns", "pod")
	if !rdmaFirst {
		moveRDMA()
	}
	ns.Run(t, "ip", "link", "set", vf.Netdev, "up")
	if _, sees := ns.RDMADevices(t)[device]; !sees {
		t.Errorf("the pod does not see %s", device)
	}
	if _, sees := ns.Links(t)[vf.Netdev]; !sees {
		t.Errorf("the pod does not see %s", vf.Netdev)
	}
	if _, sees := RDMADevices(t)[device]; sees {
		t.Errorf("the host still sees %s", device)
	}
	Run(t, "ip", "netns", "del", "pod")
	Eventually(t, func() string {
		if _, sees := RDMADevices(t)[device]; !sees {
			return "RDMA device " + device + " back in the host"
		}
		if _, sees := Links(t)[vf.Netdev]; !sees {
			return "network device " + vf.Netdev + " back in the host"
		}
		return ""
	})
	if got := RDMADeviceOf(t, vf.Address); got != device {
		t.Errorf("RDMA device of %s in sysfs after its return: %q", vf.Address, got)
	}
}
