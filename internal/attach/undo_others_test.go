package attach

import (
	"errors"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestVethOfOthers has two pods whose sandboxes' IDs begin alike, so that their pairs
// have one name on the node: the second is refused, and undoing it leaves the first
// what it has, as it does a link of that name that somebody else made. An end of its
// own it takes away also when it cannot look into the pod.
func TestVethOfOthers(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		plan := w.plan(underlay(w))
		name := plan.Routing.Veth.HostName
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		other := *w
		other.ns = kerneltest.NewNetNS(t)
		other.path, other.pod = pathOf(other.ns), dial(t, other.ns)
		other.inside(other.ns, other.quiet)
		pod := underlay(&other)
		pod.ContainerID = pod.ContainerID[:len(pod.ContainerID)-1] + "0"
		for n := range pod.Interfaces {
			a := &pod.Interfaces[n].Addresses[0]
			*a = netip.PrefixFrom(a.Addr().Next(), a.Bits())
		}
		before, theirs := w.snapshot(), other.snapshot()
		second := other.plan(pod)
		if second.Routing.Veth.HostName != name {
			t.Fatalf("pairs are called %s and %s: want one name", name, second.Routing.Veth.HostName)
		}
		if _, err := w.a.Apply(t.Context(), second); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("apply: %v, want that %s is there", err, name)
		}
		if err := w.a.Undo(t.Context(), second, nil); err != nil {
			t.Error(err)
		}
		w.same("the first pod", before)
		other.same("the second pod", theirs)
		if err := w.a.Check(t.Context(), plan); err != nil {
			t.Error(err)
		}

		away := *plan
		away.NetNS = filepath.Join(t.TempDir(), "gone")
		if err := w.a.Undo(t.Context(), &away, nil); err != nil {
			t.Error(err)
		}
		w.gone(w.node, name)

		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		for _, add := range []rtnl.LinkAdd{
			{Name: name, Kind: "bridge", MAC: plan.Routing.Veth.HostMAC},
			{Name: name, Kind: "veth", MAC: mac("02:00:00:00:00:55"), Peer: rtnl.VethPeer{Name: "theirs"}},
		} {
			w.must(w.node, add)
			before := w.snapshot()
			if err := w.a.Undo(t.Context(), plan, nil); err != nil {
				t.Error(err)
			}
			w.same("the node's "+add.Kind, before)
			w.must(w.node, rtnl.LinkDelete{Name: name})
		}
	})
}

// TestGroupOfDevice has a pod with a device of the node put that into the group of the
// links that are deleted together: it comes back all the same, whether it is alone
// there, beside others, or its namespace has ended, which the kernel does without us.
func TestGroupOfDevice(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"alone": true, "beside others": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.rails = 2
				pod := moved(w)
				if alone {
					pod.Interfaces = pod.Interfaces[:2]
				}
				before, flags := w.snapshot(), w.parentFlags()
				plan := fromDisk(t, w.plan(pod))
				attach := func() {
					t.Helper()
					if _, err := w.a.Apply(t.Context(), plan); err != nil {
						t.Fatal(err)
					}
					w.must(w.pod, rtnl.LinkSet{Index: w.link(w.pod, "net1").Index, Group: new(Group)})
				}
				undo := func(what string) {
					t.Helper()
					for range 2 {
						if err := w.a.Undo(t.Context(), plan, nil); err != nil {
							t.Errorf("%s: %v", what, err)
						}
						w.same(what, before)
						if now := w.parentFlags(); now != flags {
							t.Errorf("%s: flags %+v, want %+v", what, now, flags)
						}
					}
				}
				attach()
				undo("undone")

				attach()
				index := w.link(w.pod, "net1").Index
				w.must(w.pod, rtnl.LinkSet{Index: index, Up: new(false)}, rtnl.LinkSet{Index: index, NetNS: int(w.home.Fd()), Name: "dev110"})
				undo("undone after the kernel gave it back")

				attach()
				later := w.relayed(func(where string, m netlink.Message) error {
					if where == "pod" && m.Header.Type == unix.RTM_SETLINK {
						return errKernel
					}
					return nil
				})
				if err := later.Undo(t.Context(), plan, nil); !errors.Is(err, errKernel) {
					t.Errorf("undo of what cannot be moved: %v, want %v", err, errKernel)
				}
				w.link(w.pod, "net1")
				w.gone(w.pod, "net2")
				undo("undone when it can be moved")

				attach()
				later = w.relayed(func(where string, m netlink.Message) error {
					if where == "pod" && m.Header.Type == unix.RTM_GETLINK {
						return errKernel
					}
					return nil
				})
				if err := later.Undo(t.Context(), plan, nil); !errors.Is(err, errKernel) {
					t.Errorf("undo of links that are not listed: %v, want %v", err, errKernel)
				}
				w.link(w.pod, "net1")
				undo("undone when they are listed")
			})
		})
	}
}

// TestGroupOfOthers has a pod put links of its own into the group of ours, one of them
// such that the kernel deletes none of a group with it, and one of ours into another:
// those that we made go, and those of the pod stay.
func TestGroupOfOthers(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.rails = 3
		plan := w.plan(w.eightRails("4"))
		w.must(w.pod, rtnl.LinkAdd{Name: "own", Kind: "bridge", Group: Group}, rtnl.LinkSet{Index: 1, Group: new(Group)})
		before := w.snapshot()
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		w.must(w.pod, rtnl.LinkSet{Index: w.link(w.pod, "net2").Index, Group: new(7)})
		for range 2 {
			if err := w.a.Undo(t.Context(), plan, nil); err != nil {
				t.Error(err)
			}
			w.same("undone", before)
		}
	})
}

// TestLinkLikeDevice makes a link in a pod that has the MAC address of the device that
// is moved there, and a name as the kernel gives one that it takes back: it is not moved
// in the device's place when that has gone.
func TestLinkLikeDevice(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.rails = 2
		pod := moved(w)
		pod.Interfaces[2].Name, pod.Interfaces[2].MAC = "dev5", pod.Interfaces[1].MAC
		before := w.snapshot()
		plan := fromDisk(t, w.plan(pod))
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		index := w.link(w.pod, "net1").Index
		w.must(w.pod, rtnl.LinkSet{Index: index, Up: new(false)}, rtnl.LinkSet{Index: index, NetNS: int(w.home.Fd()), Name: "dev110"})
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		w.same("undone", before)
	})
}
