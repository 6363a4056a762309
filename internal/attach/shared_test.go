package attach

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestSharedLinksAlone makes what another's plugin will make interfaces on: each part
// fails in turn, and it goes with the last pod, be that one with interfaces of ours.
func TestSharedLinksAlone(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.needsKind("bond")
		w.needsKind("vlan")
		parent := Parent{Name: "bond0.77", Members: []string{parentName(6), parentName(7)}, VLANID: 77, Bond: &Bond{Name: "bond0", Mode: "1"}}
		alone, beside := w.podOf(), newPod(t, w).podOf(rail(0, nil, "4"))
		alone.Parents = []Parent{parent, {Name: parentName(0)}}
		beside.ContainerID, beside.Interfaces[0].Link.Parent = "fedcba9876543210", parent
		before := w.snapshot()
		plan := w.plan(alone)
		if len(plan.Shared) != 2 || len(plan.Interfaces) > 0 {
			t.Errorf("%+v, want the bond and its VLAN alone", plan)
		}
		parts := 0
		for ; !w.refused(plan, parts); parts++ {
			if w.same("refused", before); t.Failed() {
				t.Fatalf("part %d", parts)
			}
		}
		if parts != 2 {
			t.Errorf("%d parts, want the bond and its VLAN", parts)
		}
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Errorf("again: %v", err)
		}
		other := w.plan(beside)
		if _, err := w.a.Apply(t.Context(), other); err != nil {
			t.Error(err)
		}
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		if err := w.a.Check(t.Context(), other); err != nil {
			t.Errorf("the other pod: %v", err)
		}
		if err := w.a.Check(t.Context(), plan); err != nil {
			t.Errorf("what both stand on: %v", err)
		}
		if err := w.a.Undo(t.Context(), other, nil); err != nil {
			t.Error(err)
		}
		w.gone(w.node, "bond0")
		if err := w.a.Check(t.Context(), plan); err == nil || !strings.Contains(err.Error(), `parent "bond0.77": it is not there`) {
			t.Errorf("%v, want what is missing", err)
		}
	})
}

// TestParentMissing refuses what is to be there and is not.
func TestParentMissing(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		pod := w.podOf()
		for _, parent := range []Parent{{Name: "eth9"}, {Name: "eth9.7", Members: []string{"eth9"}, VLANID: 7}} {
			pod.Parents = []Parent{parent}
			if _, err := w.a.Plan(t.Context(), pod); err == nil || !strings.Contains(err.Error(), `parent "eth9": the node has no such link`) {
				t.Errorf("%+v: %v", parent, err)
			}
		}
	})
}

// TestMembersOfNode refuses to make a bond of links that the node has something on,
// before anything is done, and says what. What the kernel gives links by itself does
// not count, nor what the members of a bond have that is there.
func TestMembersOfNode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		requests []rtnl.Request
		words    []string // of the error; none: it is fine
	}{
		"nothing":    {},
		"link-local": {[]rtnl.Request{address(116, "fe80::1/64")}, nil},
		"IPv4":       {[]rtnl.Request{address(116, "192.0.2.1/24")}, []string{`parent "bond0": member ` + parentName(6), "address 192.0.2.1/24"}},
		"IPv6":       {[]rtnl.Request{address(117, "2001:db8::1/64")}, []string{`parent "bond0": member ` + parentName(7), "address 2001:db8::1/64"}},
		"both": {
			[]rtnl.Request{address(116, "192.0.2.1/24"), address(117, "2001:db8::1/64")},
			[]string{`parent "bond0": member ` + parentName(6), "address 192.0.2.1/24", parentName(7), "address 2001:db8::1/64"},
		},
		"route": {
			[]rtnl.Request{rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("198.51.100.0/24"), LinkIndex: 116}}},
			[]string{`parent "bond0": member ` + parentName(6), "route to 198.51.100.0/24"},
		},
		"bridge": {
			[]rtnl.Request{rtnl.LinkAdd{Name: "br0", Kind: "bridge", Index: 400}, rtnl.LinkSet{Index: 117, Master: new(400)}},
			[]string{`parent "bond0": member ` + parentName(7), "another bond or bridge (index 400)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.must(w.node, test.requests...)
				before := w.snapshot()
				pod := w.podOf()
				pod.Parents = []Parent{{Name: "bond0", Members: []string{parentName(6), parentName(7)}, Bond: &Bond{Mode: "1"}}}
				_, err := w.a.Plan(t.Context(), pod)
				if (err != nil) != (test.words != nil) {
					t.Errorf("%v, want words %q", err, test.words)
				}
				for _, word := range test.words {
					if err != nil && !strings.Contains(err.Error(), word) {
						t.Errorf("%v: want %q in it", err, word)
					}
				}
				w.same("planned", before)
			})
		})
	}
}

// TestMemberDead has a card die that is in a bond, so that it cannot be set up: that is
// told once, and then keeps neither the bond's other member from being up again nor the
// bond from going. A bridge is no less a link with members, and every kernel has it.
func TestMemberDead(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		const dead, sound = 116, 117
		before := w.snapshot()
		plan := w.plan(w.podOf())
		plan.Shared = []SharedLink{{Name: "bond0", Kind: "bridge", Members: []Former{formerOf(w.link(w.node, parentName(6))), formerOf(w.link(w.node, parentName(7)))}}}
		w.must(w.node, rtnl.LinkAdd{Name: "bond0", Kind: "bridge", Index: 400, Group: SharedGroup})
		for _, member := range []int{dead, sound} {
			w.must(w.node, rtnl.LinkSet{Index: member, Up: new(false)}, rtnl.LinkSet{Index: member, Master: new(400)})
		}
		later := w.relayed(func(_ string, m netlink.Message) error {
			const index, flags = 4, 8 // in struct ifinfomsg
			isUp := m.Header.Type == unix.RTM_SETLINK && binary.NativeEndian.Uint32(m.Data[flags:])&unix.IFF_UP != 0
			if isUp && binary.NativeEndian.Uint32(m.Data[index:]) == dead {
				return errKernel
			}
			return nil
		})
		if err := later.Undo(t.Context(), plan, nil); err == nil || !strings.Contains(err.Error(), "member "+parentName(6)) || strings.Contains(err.Error(), parentName(7)) {
			t.Errorf("%v, want that %s cannot be set up", err, parentName(6))
		}
		if l := w.link(w.node, parentName(7)); !l.Up || l.MasterIndex != 0 {
			t.Errorf("the other member: %+v", l)
		}
		if err := later.Undo(t.Context(), plan, nil); err != nil {
			t.Errorf("again: %v", err)
		}
		w.gone(w.node, "bond0")
		if l := w.link(w.node, parentName(6)); l.Up || l.MasterIndex != 0 {
			t.Errorf("the dead member: %+v, want it to be out of the bond", l)
		}
		w.must(w.node, rtnl.LinkSet{Index: dead, Up: new(true)})
		w.same("undone", before)
	})
}
