package attach

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestHostDevice moves a device into a pod and back, also where it is found
// under the name that the kernel gave it.
func TestHostDevice(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.must(w.node, address(110, "172.16.11.1/24"), address(110, "fd00:16:11::1/64"), rtnl.LinkSet{Index: 110, MTU: 1450, TxQueueLen: new(33)},
			rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("172.20.0.0/16"), Gateway: ip("172.16.11.254"), LinkIndex: 110}})
		pod := w.eightRails("46")
		pod.Interfaces = pod.Interfaces[:3]
		dev := &pod.Interfaces[1]
		dev.Link = Link{Kind: HostDevice, Device: Device{Name: parentName(0)}, MTU: 1400}
		dev.MAC = mac("02:00:00:00:00:77")
		dev.Tuning.Promisc = new(true)
		dev.Coordinator = coordinated(func(o *routing.Options) { o.DefaultRouteNIC, o.TxQueueLen = "net1", 44 })
		pod.Interfaces[2].Coordinator = dev.Coordinator
		above := rail(2, coordinated(func(o *routing.Options) { o.DefaultRouteNIC = "net1" }), "4")
		above.Link.Parent.Name, above.Link.InContainer = "net1", true
		pod.Interfaces = append(pod.Interfaces, above)
		before := w.snapshot()

		plan := fromDisk(t, w.plan(pod))
		done, err := w.a.Apply(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.a.Check(t.Context(), plan); err != nil {
			t.Error(err)
		}
		l := w.link(w.pod, "net1")
		if l.MTU != 1400 || l.TxQueueLen != 44 || !l.Up || l.Address != "02:00:00:00:00:77" || done.Interfaces[1].Index != l.Index {
			t.Errorf("in the pod: %+v, %+v", l, done.Interfaces[1])
		}
		w.gone(w.node, parentName(0))
		promisc := func(ns *os.File, name string, want bool) {
			w.inside(ns, func() {
				if f, err := linkFlags(name); err != nil || f.promisc != want {
					t.Errorf("flags of %s: %+v, %v; want promisc %v", name, f, err, want)
				}
			})
		}
		promisc(w.ns, "net1", true)
		for range 2 {
			if err := w.a.Undo(t.Context(), plan, nil); err != nil {
				t.Error(err)
			}
			w.same("undone", before)
			promisc(w.home, parentName(0), false)
		}

		// As the kernel gives it back from a namespace that ended.
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		w.must(w.pod, rtnl.LinkDeleteGroup{Group: Group}, rtnl.LinkSet{Index: l.Index, Up: new(false)},
			rtnl.LinkSet{Index: l.Index, NetNS: int(w.home.Fd()), Name: "dev110"})
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		w.same("undone after the namespace ended", before)
		promisc(w.home, parentName(0), false)

		// Its name is taken meanwhile.
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		w.must(w.node, rtnl.LinkAdd{Name: parentName(0), Kind: "bridge"})
		if err := w.a.Undo(t.Context(), plan, nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("undo while the name is taken: %v, want %v", err, fs.ErrExist)
		}
		w.must(w.node, rtnl.LinkDelete{Name: parentName(0)})
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		w.same("undone when the name is free again", before)
	})
}

// TestHostDeviceAgain holds that a device is made again what it was once: what
// is done with it later on the node is somebody else's.
func TestHostDeviceAgain(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.must(w.node, address(110, "172.16.11.1/24"), rtnl.LinkSet{Index: 110, Group: new(7)})
		pod := w.eightRails("4")
		pod.Interfaces = pod.Interfaces[:2]
		pod.Interfaces[1].Link = Link{Kind: HostDevice, Device: Device{Name: parentName(0)}}
		before := w.snapshot()
		plan := fromDisk(t, w.plan(pod))
		changed := func() state {
			w.must(w.node, rtnl.LinkSet{Index: 110, MTU: 1300}, rtnl.LinkSet{Index: 110, Up: new(false)},
				rtnl.AddressDelete{Address: rtnl.Address{LinkIndex: 110, Prefix: prefix("172.16.11.1/24")}})
			return w.snapshot()
		}
		back := func() {
			w.must(w.node, rtnl.LinkSet{Index: 110, MTU: 1500, Up: new(true)}, address(110, "172.16.11.1/24"))
			w.same("as before", before)
		}

		mine := changed()
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		w.same("undone without having been applied", mine)
		back()

		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		w.same("undone", before)
		mine = changed()
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		w.same("undone twice", mine)
		back()

		w.must(w.node, rtnl.LinkSet{Index: 110, Group: new(DeviceGroup)})
		_, err := w.a.Plan(t.Context(), pod)
		if err == nil || !strings.HasPrefix(err.Error(), "interface net1: device enp11s0f0np0: it comes back from another pod just now") {
			t.Errorf("plan with a device that is not what it was yet: %v", err)
		}
	})
}

// TestRoutersRoute wants a route that a router announced to be left to that router.
func TestRoutersRoute(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.must(w.node, address(110, "fd00:16:11::1/64"))
		before := w.snapshot()
		w.must(w.node, rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("fd00:20::/64"), Gateway: ip("fd00:16:11::fe"), LinkIndex: 110, Protocol: "ra"}})
		w.thereAndBack(w.plan(w.devices(0)), before)
	})
}

// TestSourceOnDevice gives a device back whose address routes have for source, also
// while nothing is connected to it, where nobody could be asked for that address.
func TestSourceOnDevice(t *testing.T) {
	t.Parallel()
	for name, isCut := range map[string]bool{"connected": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				source := rtnl.Route{Dst: prefix("fd00:20:1::/64"), LinkIndex: 110, Gateway: ip("fd00:16:11::fe"), Src: ip("fd00:16:11::1"), Priority: 77}
				w.must(w.node, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 110, Prefix: prefix("fd00:16:11::1/64")}})
				for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) { // others are asked for the address first
					err := errors.Join(w.node.Do(rtnl.RouteAdd{Route: source})...)
					if err == nil {
						break
					}
					if time.Since(begun) > time.Minute {
						t.Fatal(err)
					}
				}
				plan := w.plan(w.devices(0))
				w.apply(plan)
				w.gone(w.node, parentName(0))
				if isCut {
					w.must(w.node, rtnl.LinkSet{Index: 160, Up: new(false)})
				}
				w.undo(plan)
				routes, err := w.node.Routes()
				if err != nil {
					t.Fatal(err)
				}
				if !slices.ContainsFunc(routes, func(r rtnl.Route) bool { return r.Dst == source.Dst && r.Src == source.Src && r.LinkIndex == 110 }) {
					t.Errorf("the node has no route to %v from %v", source.Dst, source.Src)
				}
			})
		})
	}
}

// TestKernelPath finds a device by its directory, wherever the node's sysfs is.
func TestKernelPath(t *testing.T) {
	t.Parallel()
	sys := t.TempDir()
	if err := os.MkdirAll(filepath.Join(sys, "devices/pci0000:3a/0000:3b:00.2/net", parentName(3)), 0o700); err != nil {
		t.Fatal(err)
	}
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.a.config.Sys = sys
		for _, path := range []string{"/sys/devices/pci0000:3a/0000:3b:00.2", "pci0000:3a/0000:3b:00.2", "/sys/devices/pci0000:3a/0000:3b:00.2/net/" + parentName(3)} {
			l, err := (&planner{a: w.a}).find(Device{KernelPath: path})
			if err != nil || l.Name != parentName(3) {
				t.Errorf("%s: link %q, %v", path, l.Name, err)
			}
		}
	})
}
