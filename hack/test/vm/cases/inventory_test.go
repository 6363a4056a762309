package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"railhead/internal/inventory"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// find returns the device that a snapshot has by an ID, RDMA device or netdev.
func find(t *testing.T, s *inventory.Snapshot, name string) *inventory.Device {
	t.Helper()
	d, ok := s.Device(name)
	if !ok {
		t.Fatalf("the inventory has no %s", name)
	}
	return d
}

// TestAnyInventory compares Soft-RoCE devices on every kind of link with what the tools say.
func TestAnyInventory(t *testing.T) {
	Require(t)
	AddVeth(t, "va", "vb")
	AddVeth(t, "vc", "vd")
	AddMacvlan(t, "mv", "va")
	AddBond(t, "bo", "vc", "vd")
	for name, netdev := range map[string]string{"rxeva": "va", "rxemv": "mv", "rxebo": "bo"} {
		AddRXE(t, name, netdev)
		Run(t, "ip", "addr", "add", "192.0.2."+strconv.Itoa(len(netdev)+int(netdev[0]))+"/24", "dev", netdev)
		Run(t, "ip", "addr", "add", fmt.Sprintf("2001:db8::%x/64", netdev), "dev", netdev, "nodad")
	}
	EventuallyAsTools(t, func() *inventory.Snapshot { return Inventory(t) })
	s := Inventory(t)
	for name, netdev := range map[string]string{"rxeva": "va", "rxemv": "mv", "rxebo": "bo"} {
		d := find(t, s, name)
		if d.Kind != inventory.Virtual || d.RDMA.Ports[0].Netdev != netdev || d.RDMA.Ports[0].LinkLayer != inventory.Ethernet {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestAnyInventoryElsewhere has Soft-RoCE devices whose netdevs are in another namespace, in shared and in exclusive mode:
// a veth and a macvlan that were moved, and a bond, which can only be made there. Stock Soft-RoCE goes with its netdev.
func TestAnyInventoryElsewhere(t *testing.T) {
	Require(t)
	AddVeth(t, "va", "vb")
	AddVeth(t, "vc", "vd")
	AddVeth(t, "vx", "vy")
	AddMacvlan(t, "mv", "vb")
	AddRXE(t, "rxeva", "va")
	AddRXE(t, "rxemv", "mv")
	pod := NewNetNS(t, "pod")
	for _, netdev := range []string{"va", "mv", "vc", "vx"} {
		Run(t, "ip", "link", "set", netdev, "netns", "pod")
	}
	pod.Run(t, "ip", "link", "add", "bo", "type", "bond", "mode", "active-backup")
	for _, member := range []string{"vc", "vx"} {
		pod.Run(t, "ip", "link", "set", member, "master", "bo")
	}
	pod.Run(t, "ip", "link", "set", "bo", "up")
	pod.Run(t, "rdma", "link", "add", "rxebo", "type", "rxe", "netdev", "bo")
	EventuallyAsTools(t, func() *inventory.Snapshot { return Inventory(t) })
	d := find(t, Inventory(t), "rxebo") // the kernel makes the device in the host namespace, wherever its netdev is
	if p := d.RDMA.Ports[0]; p.Netdev != "" || len(d.Netdevs) != 0 {
		t.Errorf("rxebo has port %+v and netdevs %+v here, and its netdev is in a pod", p, d.Netdevs)
	}
}

// TestSharedInventory has netdevs in other namespaces: in shared mode their RDMA devices stay.
func TestSharedInventory(t *testing.T) {
	Require(t)
	AddVeth(t, "va", "vb")
	AddMacvlan(t, "mv", "va")
	AddRXE(t, "rxeva", "va")
	AddRXE(t, "rxemv", "mv")
	NewNetNS(t, "pod")
	Run(t, "ip", "link", "set", "mv", "netns", "pod")
	Run(t, "ip", "-n", "pod", "link", "set", "mv", "up")
	Run(t, "ip", "-n", "pod", "addr", "add", "192.0.2.9/24", "dev", "mv")
	EventuallyAsTools(t, func() *inventory.Snapshot { return Inventory(t) })
	s := Inventory(t)
	if s.System.NetNSMode != "shared" {
		t.Errorf("mode %q", s.System.NetNSMode)
	}
	if p := find(t, s, "rxemv").RDMA.Ports[0]; p.Netdev != "" {
		t.Errorf("netdev of rxemv is %q, and it is in a pod", p.Netdev)
	}
	Eventually(t, func() string { // a worker of the kernel writes GIDs down
		gids := find(t, Inventory(t), "rxeva").RDMA.Ports[0].GIDs
		if slices.ContainsFunc(gids, func(g inventory.GID) bool { return g.Address.String() == "192.0.2.9" }) {
			return ""
		}
		return fmt.Sprintf("the pod's address among the GIDs of its parent's device: %+v", gids)
	})
}

// watch runs a Watcher until the test ends.
func watch(t *testing.T) *inventory.Watcher {
	t.Helper()
	r, err := inventory.NewReader(node.Running(sysfs.New("/")))
	if err != nil {
		t.Fatal(err)
	}
	w := inventory.NewWatcher(r, inventory.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("watcher: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	Eventually(t, func() string {
		if w.Snapshot() == nil {
			return "first snapshot"
		}
		return ""
	})
	return w
}

// awaitDevice waits until the Watcher's snapshot has a device as wanted, and returns it. The snapshot is then compared
// with a fresh reading and with the tools.
func awaitDevice(t *testing.T, w *inventory.Watcher, id string, wanted string, is func(*inventory.Device) bool) *inventory.Device {
	t.Helper()
	var device *inventory.Device
	Eventually(t, func() string {
		d, ok := w.Snapshot().Device(id)
		if ok && is(d) {
			device = d
			return ""
		}
		return fmt.Sprintf("%s %s; it is %+v", id, wanted, d)
	})
	t.Logf("%s: %s", id, wanted)
	EventuallyAsTools(t, w.Snapshot)
	EventuallyAsTools(t, func() *inventory.Snapshot { return Inventory(t) })
	return device
}

// rv1 is the RDMA device of the virtual function that is moved about.
const rv1 = "rv1"

// rv1Here and rv1InPod tell where the function's RDMA device is.
func rv1Here(d *inventory.Device) bool {
	return d.RDMA != nil && d.RDMA.Name == rv1 && d.RDMA.NetNS == nil
}

func rv1InPod(d *inventory.Device) bool {
	return d.RDMA != nil && d.RDMA.Name == rv1 && d.RDMA.NetNS != nil
}

// TestSRIOVInventoryFollows watches a virtual function through its life: made, given RDMA, moved into a pod and back in
// both orders, left behind by a deleted namespace, removed.
func TestSRIOVInventoryFollows(t *testing.T) {
	Require(t)
	w := watch(t)
	pf := PFs(t)[0]
	vfs := AddVFs(t, pf, 2)
	vf := vfs[1]
	AddRXE(t, "rv0", vfs[0].Netdev)
	AddRXE(t, rv1, vf.Netdev)
	d := awaitDevice(t, w, vf.Address, "has its RDMA device", rv1Here)
	checkVF(t, d, pf)

	for _, rdmaFirst := range []bool{true, false} {
		t.Run("rdma first "+strconv.FormatBool(rdmaFirst), func(t *testing.T) { followToPod(t, w, vf, rdmaFirst) })
	}

	uverbs := verbsOf(t, w, vf.Address)
	Run(t, "rdma", "link", "del", "rv0") // frees a lower number, which the next move takes
	NewNetNS(t, "pod2")
	Run(t, "rdma", "dev", "set", rv1, "netns", "pod2")
	Run(t, "ip", "link", "set", vf.Netdev, "netns", "pod2")
	awaitDevice(t, w, vf.Address, "is in the second pod", rv1InPod)
	Run(t, "ip", "netns", "exec", "pod2", "rdma", "dev", "set", rv1, "netns", "1")
	awaitDevice(t, w, vf.Address, "came back and its verbs device has another number than "+uverbs, func(d *inventory.Device) bool {
		return rv1Here(d) && len(d.RDMA.CharDevices) > 0 && d.RDMA.CharDevices[0].Name != uverbs
	})

	WriteFile(t, PCIPath(pf, "sriov_numvfs"), "0")
	Eventually(t, func() string {
		if _, ok := w.Snapshot().Device(vf.Address); ok {
			return vf.Address + " gone from the inventory"
		}
		return ""
	})
	EventuallyAsTools(t, w.Snapshot)
}

// checkVF compares what is known of a virtual function with how the machine is built.
func checkVF(t *testing.T, d *inventory.Device, pf string) {
	t.Helper()
	if d.Kind != inventory.VF || d.Parent != pf || d.VF == nil || *d.VF != 1 {
		t.Errorf("%s: kind %s, parent %s, VF %v; want VF 1 of %s", d.ID, d.Kind, d.Parent, d.VF, pf)
	}
	if d.PCI.Switch == "" || d.PCI.RootPort == "" || d.PCI.Root == "" || d.PCI.NUMANode == nil || *d.PCI.NUMANode != 0 {
		t.Errorf("%s: PCIe place %+v", d.ID, d.PCI)
	}
	t.Logf("%s: VF %d of %s, NUMA node %d, root port %s, switch %s", d.ID, *d.VF, d.Parent, *d.PCI.NUMANode, d.PCI.RootPort, d.PCI.Switch)
}

// verbsOf is the name of a function's verbs device.
func verbsOf(t *testing.T, w *inventory.Watcher, id string) string {
	t.Helper()
	d := find(t, w.Snapshot(), id)
	if d.RDMA == nil || len(d.RDMA.CharDevices) == 0 {
		t.Fatalf("%s has no verbs device: %+v", id, d.RDMA)
	}
	return d.RDMA.CharDevices[0].Name
}

// followToPod moves a virtual function into a pod, deletes the pod's namespace, and wants the inventory to follow.
func followToPod(t *testing.T, w *inventory.Watcher, vf VF, rdmaFirst bool) {
	t.Helper()
	pod := NewNetNS(t, "pod")
	moves := [][]string{{"rdma", "dev", "set", rv1, "netns", "pod"}, {"ip", "link", "set", vf.Netdev, "netns", "pod"}}
	if !rdmaFirst {
		moves[0], moves[1] = moves[1], moves[0]
	}
	for _, m := range moves {
		Run(t, m[0], m[1:]...)
	}
	pod.Run(t, "ip", "link", "set", vf.Netdev, "up")
	pod.Run(t, "ip", "addr", "add", "192.0.2.77/24", "dev", vf.Netdev)
	d := awaitDevice(t, w, vf.Address, "is in the pod", func(d *inventory.Device) bool {
		return rv1InPod(d) && len(d.Netdevs) == 1 && d.Netdevs[0].NetNS != nil
	})
	info, err := os.Stat(pod.Path())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.Stat(d.RDMA.NetNS.Path); err != nil || !os.SameFile(got, info) {
		t.Errorf("its namespace is %s, which is not %s: %v", d.RDMA.NetNS.Path, pod.Path(), err)
	}
	fresh := find(t, Inventory(t), vf.Address)
	if p := fresh.RDMA.Ports[0]; p.Netdev != vf.Netdev || len(p.GIDs) == 0 || fresh.Netdevs[0].Addresses[0].String() != "192.0.2.77/24" {
		t.Errorf("read afresh, the port in the pod is %+v with netdevs %+v", p, fresh.Netdevs)
	}
	Run(t, "ip", "netns", "del", "pod")
	awaitDevice(t, w, vf.Address, "is home again", func(d *inventory.Device) bool {
		return rv1Here(d) && len(d.Netdevs) == 1 && d.Netdevs[0].NetNS == nil
	})
}
