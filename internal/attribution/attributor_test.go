package attribution

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/inventory"
	"railhead/internal/kernel/netns"
	"railhead/internal/versus"
)

// otherUID is the UID of another pod than someUID.
const otherUID = "11111111-2222-3333-4444-555555555555"

// pods is a PodSource.
type pods map[string]*Pod

func (p pods) Pod(uid string) *Pod { return p[uid] }

func (p pods) PodByName(namespace, name string) *Pod {
	for _, pod := range p {
		if pod.Namespace == namespace && pod.Name == name {
			return pod
		}
	}
	return nil
}

func (p pods) Synced() bool { return len(p) > 0 }

// allocations are namespace and name of a pod by PCI address.
type allocations map[string][2]string

func (a allocations) Holder(address string) (namespace, name string, ok bool) {
	h, ok := a[address]
	return h[0], h[1], ok
}

// inNetNS is a VF whose RDMA device is in a namespace.
func inNetNS(name string, id netns.ID) inventory.Device {
	return inventory.Device{ID: name, RDMA: &inventory.RDMA{Name: name, NetNS: &inventory.NetNS{ID: id}}}
}

// onHost is a device in our namespace.
func onHost(name string) inventory.Device {
	return inventory.Device{ID: name, RDMA: &inventory.RDMA{Name: name}, Netdevs: []inventory.Netdev{{Name: "eth0"}}}
}

func refresh(t *testing.T, a *Attributor, devices ...inventory.Device) {
	t.Helper()
	if err := a.Refresh(devices); err != nil {
		t.Error(err)
	}
}

// wantOwner checks the owner of a device; no UID is no owner.
func wantOwner(t *testing.T, a *Attributor, d inventory.Device, uid string) {
	t.Helper()
	pod, method := a.Owner(&d)
	switch {
	case uid == "" && (pod != nil || method != ""):
		t.Errorf("%s is %v's (%q), want nobody's", d.ID, pod, method)
	case uid != "" && (pod == nil || pod.UID != uid || method != Exclusive):
		t.Errorf("%s is %v's (%q), want pod %s", d.ID, pod, method, uid)
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	p.startIn("host", 1, 1, "0::/init.scope\n")
	p.startIn("pod", 20, 500, podCgroup(someUID))
	p.startIn("debugged", 30, 900, podCgroup(otherUID))       // an older number, but it came later
	p.startIn("debugged", 40, 800, podCgroup(someUID))        // the sandbox
	p.startIn("debugged", 10, 700, "0::/system.slice/sshd\n") // somebody of the host went in
	p.startIn("named", 50, 600, "0::/user.slice\n")
	a := New(p.fs(), Options{})

	byRDMA := inNetNS("vf0", p.namespace("pod"))
	byNetdev := onHost("vf1")
	byNetdev.Netdevs = []inventory.Netdev{{Name: "net1", NetNS: &inventory.NetNS{ID: p.namespace("pod")}}}
	macvlan := onHost("pf0")
	macvlan.Netdevs = append(macvlan.Netdevs, byNetdev.Netdevs...)
	debugged, named := inNetNS("vf2", p.namespace("debugged")), inNetNS("vf3", p.namespace("named"))
	empty := inNetNS("vf4", p.namespace("empty"))
	refresh(t, a, byRDMA, byNetdev, macvlan, debugged, named, empty)

	wantOwner(t, a, byRDMA, someUID)
	wantOwner(t, a, byNetdev, someUID)
	wantOwner(t, a, macvlan, "")
	wantOwner(t, a, debugged, someUID)
	wantOwner(t, a, named, "")
	wantOwner(t, a, empty, "")
	wantOwner(t, a, inventory.Device{ID: "no RDMA"}, "")
}

func TestOwnerByAllocation(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	p.startIn("pod", 20, 500, podCgroup(someUID))
	known := pods{otherUID: {UID: otherUID, Namespace: "ai", Name: "host-network"}}
	a := New(p.fs(), Options{Pods: known, Allocations: allocations{
		"vf0": {"ai", "host-network"}, "vf1": {"ai", "host-network"}, "vf2": {"ai", "young"},
	}})
	moved, stays, young := inNetNS("vf0", p.namespace("pod")), onHost("vf1"), onHost("vf2")
	refresh(t, a, moved, stays, young)
	wantOwner(t, a, moved, someUID) // the kernel knows better than the kubelet
	wantOwner(t, a, stays, otherUID)
	pod, _ := a.Owner(&young)
	if pod == nil || *pod != (Pod{Namespace: "ai", Name: "young"}) {
		t.Errorf("owner %v, want the pod's name alone", pod)
	}
	refresh(t, a, moved, stays, young)
	if again, _ := a.Owner(&young); again != pod {
		t.Error("the same pod is another after a refresh")
	}
	known["u"] = &Pod{UID: "u", Namespace: "ai", Name: "young"}
	wantOwner(t, a, young, "u")
}

// TestOwnerLeft has a VF come home from its pod's network namespace before the
// kubelet says so, and be given to others then.
func TestOwnerLeft(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, stale, next [2]string }{
		"the kubelet is late":          {[2]string{"ai", "a"}, [2]string{"ai", "a"}, [2]string{"ai", "b"}},
		"the kubelet was late":         {[2]string{}, [2]string{"ai", "a"}, [2]string{"ai", "b"}},
		"the kubelet has it from then": {[2]string{"ai", "other"}, [2]string{"ai", "other"}, [2]string{"ai", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProc(t)
			p.startIn("pod", 20, 500, podCgroup(someUID))
			given := allocations{}
			say := func(pod [2]string) {
				if given["vf0"] = pod; pod == ([2]string{}) {
					delete(given, "vf0")
				}
			}
			known := pods{someUID: {UID: someUID, Namespace: "ai", Name: "a"}, otherUID: {UID: otherUID, Namespace: "ai", Name: "b"}}
			a := New(p.fs(), Options{Pods: known, Allocations: given})
			inPod, home := inNetNS("vf0", p.namespace("pod")), onHost("vf0")
			say(test.before)
			refresh(t, a, inPod)
			wantOwner(t, a, inPod, someUID)
			for range 3 {
				refresh(t, a, home)
				wantOwner(t, a, home, "")
				say(test.stale)
			}
			say(test.next)
			refresh(t, a, home)
			wantOwner(t, a, home, otherUID)
			say([2]string{})
			refresh(t, a, home)
			wantOwner(t, a, home, "")
		})
	}
}

// TestOwnerAgain has the kubelet take a device from a pod that left it, and
// give it to the pod again.
func TestOwnerAgain(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	p.startIn("pod", 20, 500, podCgroup(someUID))
	given := allocations{"vf0": {"ai", "a"}}
	a := New(p.fs(), Options{Pods: pods{someUID: {UID: someUID, Namespace: "ai", Name: "a"}}, Allocations: given})
	inPod, home := inNetNS("vf0", p.namespace("pod")), onHost("vf0")
	refresh(t, a, inPod)
	refresh(t, a, home)
	wantOwner(t, a, home, "")
	delete(given, "vf0")
	refresh(t, a, home)
	given["vf0"] = [2]string{"ai", "a"}
	refresh(t, a, home)
	wantOwner(t, a, home, someUID)
}

// TestOwnerForgotten has the API server forget a pod before the kubelet does.
// In a namespace a device still is somebody's.
func TestOwnerForgotten(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	known := pods{otherUID: {UID: otherUID, Namespace: "ai", Name: "a"}}
	a := New(p.fs(), Options{Pods: known, Allocations: allocations{"vf0": {"ai", "a"}, "vf1": {"ai", "a"}}})
	home, away := onHost("vf0"), inNetNS("vf1", p.namespace("empty"))
	refresh(t, a, home, away)
	wantOwner(t, a, home, otherUID)
	delete(known, otherUID)
	for range 2 {
		wantOwner(t, a, home, "")
		if pod, _ := a.Owner(&away); pod == nil || pod.Name != "a" {
			t.Errorf("the device in a namespace is %v's, want the pod's", pod)
		}
		refresh(t, a, home, away)
	}
	known["u"] = &Pod{UID: "u", Namespace: "ai", Name: "a"}
	wantOwner(t, a, home, "u")
}

func TestSynced(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	known := pods{}
	a := New(p.fs(), Options{Pods: known})
	if a.Synced() {
		t.Error("pods are known that nobody told of")
	}
	known["u"] = &Pod{UID: "u"}
	if !a.Synced() || !New(p.fs(), Options{}).Synced() {
		t.Error("pods are not known, want them to be, and none to be needed without Kubernetes")
	}
}

// TestOwnerNewest wants the pod as it is known now, and its UID alone before.
func TestOwnerNewest(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	p.startIn("pod", 20, 500, podCgroup(someUID))
	known := pods{}
	a := New(p.fs(), Options{Pods: known})
	d := inNetNS("vf0", p.namespace("pod"))
	refresh(t, a, d)
	if pod, _ := a.Owner(&d); pod == nil || *pod != (Pod{UID: someUID, Name: someUID}) {
		t.Errorf("owner %v, want a pod with its UID alone", pod)
	}
	for _, name := range []string{"a", "b"} {
		known[someUID] = &Pod{UID: someUID, Name: name}
		if pod, _ := a.Owner(&d); pod != known[someUID] {
			t.Errorf("owner %v, want %v", pod, known[someUID])
		}
	}
}

// TestOwnerReuse has namespaces and processes end, and others take their
// numbers.
func TestOwnerReuse(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p proc){
		"process of the host in the namespace": func(p proc) {
			p.startIn("pod", 20, 900, "0::/user.slice\n")
			p.startIn("pod", 21, 950, podCgroup(otherUID))
		},
		"another pod with the numbers of both": func(p proc) { p.startIn("pod", 20, 900, podCgroup(otherUID)) },
		"another pod in the namespace": func(p proc) {
			p.end(20)
			p.startIn("pod", 21, 900, podCgroup(otherUID))
		},
		"process is in another namespace": func(p proc) {
			p.startIn("elsewhere", 20, 500, podCgroup(someUID))
			p.startIn("pod", 21, 900, podCgroup(otherUID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProc(t)
			p.startIn("pod", 20, 500, podCgroup(someUID))
			a := New(p.fs(), Options{})
			d := inNetNS("vf0", p.namespace("pod"))
			refresh(t, a, d)
			wantOwner(t, a, d, someUID)
			change(p)
			refresh(t, a, d)
			wantOwner(t, a, d, otherUID)
		})
	}
}

// TestOwnerForgets wants nothing to stay of namespaces that hold no device.
func TestOwnerForgets(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	a := New(p.fs(), Options{})
	for i := range 50 {
		ns := fmt.Sprintf("pod%d", i)
		p.startIn(ns, 1000+i, 500, podCgroup(someUID))
		d := inNetNS("vf0", p.namespace(ns))
		refresh(t, a, d)
		wantOwner(t, a, d, someUID)
		p.end(1000 + i)
	}
	refresh(t, a)
	if n := len(a.now.Load().places); n != 0 {
		t.Errorf("%d namespaces are remembered, want none", n)
	}
}

// TestOwnerSearches counts how often all processes are looked through, by a
// process that each search finds in no cgroup yet.
func TestOwnerSearches(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	a := New(p.fs(), Options{})
	d := inNetNS("vf0", p.namespace("pod"))
	searches := 0
	var at []int
	for pass := range 60 {
		before := a.now.Load().places[d.RDMA.NetNS.ID]
		refresh(t, a, d, inNetNS("vf1", d.RDMA.NetNS.ID))
		now := a.now.Load().places[d.RDMA.NetNS.ID]
		if before == nil || now.left == now.pause {
			searches++
			at = append(at, pass)
		}
	}
	if searches < 5 || searches > 10 {
		t.Errorf("searched in passes %v, want ever longer pauses", at)
	}
	p.startIn("pod", 20, 500, podCgroup(someUID))
	for range pauseMost {
		refresh(t, a, d)
	}
	wantOwner(t, a, d, someUID)
}

func TestOwnerErrors(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	p.startIn("pod", 20, 500, podCgroup(someUID))
	p.startIn("odd", 21, 500, podCgroup(otherUID))
	p.write(21, "stat", "odd")
	a := New(p.fs(), Options{})
	good, bad := inNetNS("vf0", p.namespace("pod")), inNetNS("vf1", p.namespace("odd"))
	if err := a.Refresh([]inventory.Device{bad, good}); err == nil {
		t.Error("no error for a process that cannot be read")
	}
	wantOwner(t, a, good, someUID)
	wantOwner(t, a, bad, "")

	p.do(os.RemoveAll(filepath.Join(p.root, "proc")))
	if err := a.Refresh([]inventory.Device{good}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
	wantOwner(t, a, good, "")
}

// node is a node of 8 PFs and 128 VFs, each in a pod of its own.
func node(tb testing.TB) (*Attributor, []inventory.Device) {
	tb.Helper()
	p := newProc(tb)
	known := pods{}
	var devices []inventory.Device
	for i := range 8 {
		devices = append(devices, onHost(fmt.Sprintf("pf%d", i)))
	}
	for i := range 128 {
		uid := fmt.Sprintf("%08x-2222-3333-4444-555555555555", i)
		ns := fmt.Sprintf("ns%d", i)
		p.startIn(ns, 1000+i, 500, podCgroup(uid))
		known[uid] = &Pod{UID: uid, Namespace: "ai", Name: ns}
		devices = append(devices, inNetNS(fmt.Sprintf("vf%d", i), p.namespace(ns)))
	}
	return New(p.fs(), Options{Pods: known, Allocations: allocations{}}), devices
}

func TestOwnerAllocates(t *testing.T) {
	a, devices := node(t)
	refresh(t, a, devices...)
	owned := 0
	allocs := testing.AllocsPerRun(10, func() {
		for i := range devices {
			if pod, _ := a.Owner(&devices[i]); pod != nil {
				owned++
			}
		}
	})
	if allocs != 0 || owned != 11*128 {
		t.Errorf("%v allocations, %d owners in 11 passes, want none and %d", allocs, owned, 11*128)
	}
}

// BenchmarkOwner is a pass over 136 devices.
func BenchmarkOwner(b *testing.B) {
	a, devices := node(b)
	if err := a.Refresh(devices); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range devices {
			a.Owner(&devices[i])
		}
	}
}

// BenchmarkRefresh is what a pass over 136 devices in 128 known pods costs
// before, beside a look at the namespace of each and at one file of a process in
// it.
func BenchmarkRefresh(b *testing.B) {
	a, devices := node(b)
	if err := a.Refresh(devices); err != nil {
		b.Fatal(err)
	}
	var namespaces, stats []string
	for _, place := range a.now.Load().places {
		namespaces = append(namespaces, place.path)
		stats = append(stats, filepath.Join(filepath.Dir(place.path), "../stat"))
	}
	versus.Floor(b, func() error { return a.Refresh(devices) }, func() error {
		var st unix.Stat_t
		for _, name := range namespaces {
			if err := unix.Stat(name, &st); err != nil {
				return err
			}
		}
		return readBare(stats)
	})
}
