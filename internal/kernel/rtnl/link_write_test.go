package rtnl

import (
	"errors"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// TestLinkAddLive makes links of all kinds, here and in another namespace, and
// reads them back.
func TestLinkAddLive(t *testing.T) {
	t.Parallel()
	mac, macString := net.HardwareAddr{2, 0, 0, 0, 0, 7}, "02:00:00:00:00:07"
	with := func(kind string, change func(*LinkAdd)) LinkAdd {
		l := LinkAdd{Name: "net1", Kind: kind, MAC: mac, MTU: 1400, TxQueueLen: 17, Group: 77, Up: true}
		if change != nil {
			change(&l)
		}
		return l
	}
	tests := []struct {
		name  string
		add   LinkAdd
		under bool // on top of v0
		want  Link
	}{
		{name: "macvlan bridge", add: with("macvlan", func(l *LinkAdd) { l.Mode = "bridge" }), under: true, want: Link{Mode: "bridge"}},
		{name: "macvlan private", add: with("macvlan", func(l *LinkAdd) { l.Mode = "private" }), under: true, want: Link{Mode: "private"}},
		{name: "macvlan vepa", add: with("macvlan", func(l *LinkAdd) { l.Mode = "vepa" }), under: true, want: Link{Mode: "vepa"}},
		{name: "macvlan passthru", add: with("macvlan", func(l *LinkAdd) { l.Mode, l.MAC = "passthru", nil }), under: true, want: Link{Mode: "passthru"}},
		{name: "ipvlan l2", add: with("ipvlan", func(l *LinkAdd) { l.Mode, l.MAC = "l2", nil }), under: true, want: Link{Mode: "l2"}},
		{name: "ipvlan l3", add: with("ipvlan", func(l *LinkAdd) { l.Mode, l.MAC = "l3", nil }), under: true, want: Link{Mode: "l3"}},
		{name: "ipvlan l3s", add: with("ipvlan", func(l *LinkAdd) { l.Mode, l.MAC = "l3s", nil }), under: true, want: Link{Mode: "l3s"}},
		{name: "vlan", add: with("vlan", func(l *LinkAdd) { l.VLANID = 100 }), under: true, want: Link{VLANID: 100}},
		{name: "bond", add: with("bond", func(l *LinkAdd) {
			l.BondMode, l.BondOptions = "802.3ad", map[string]string{"miimon": "100", "lacp_rate": "fast", "xmit_hash_policy": "layer3+4"}
		}), want: Link{BondMode: "802.3ad"}},
		{name: "bond by number", add: with("bond", func(l *LinkAdd) { l.BondMode = "1" }), want: Link{BondMode: "active-backup"}},
		{name: "veth", add: with("veth", func(l *LinkAdd) { l.Peer.Name = "peer" }), want: Link{}},
		{name: "dummy", add: with("dummy", nil), want: Link{}},
		{name: "bridge", add: with("bridge", nil), want: Link{}},
	}
	for _, tt := range tests {
		for _, where := range []string{"here", "there"} {
			t.Run(tt.name+"/"+where, func(t *testing.T) {
				t.Parallel()
				kerneltest.NetNS(t, func() {
					here := dialLive(t)
					there := here
					v0, _ := pair(t, here)
					add := tt.add
					if tt.under {
						add.Parent = v0.Index
					}
					if where == "there" {
						ns := kerneltest.NewNetNS(t)
						add.NetNS = int(ns.Fd())
						there = dialIn(t, ns)
					}
					err := errors.Join(here.Do(add)...)
					if errors.Is(err, ErrNotSupported) {
						t.Skipf("this kernel has no %s: %v", add.Kind, err)
					}
					if err != nil {
						t.Fatal(err)
					}
					got := linkNamed(t, there, "net1")
					want := tt.want
					want.Name, want.Kind, want.Type, want.Up, want.Group = "net1", add.Kind, unix.ARPHRD_ETHER, true, 77
					want.MTU, want.TxQueueLen, want.Address = 1400, 17, macString
					if add.MAC == nil { // it has that of the link below
						want.Address = v0.Address
					}
					if tt.under {
						want.ParentIndex = v0.Index
					}
					if add.Kind == "veth" { // the peer stays here
						want.ParentIndex = linkNamed(t, here, "peer").Index
					}
					if (got.ParentNetNS != nil) != (where == "there" && want.ParentIndex != 0) {
						t.Errorf("parent of %+v is in namespace %v", got, got.ParentNetNS)
					}
					// What comes up in the background, or is of the kind.
					got.Index, got.OperState, got.Running, got.ParentNetNS, got.MinMTU, got.MaxMTU, got.PermAddress = 0, "", false, nil, 0, 0, ""
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("link (-want +got):\n%s", diff)
					}
					if errs := here.Do(add); len(errs) != 1 || !errors.Is(errs[0], fs.ErrExist) {
						t.Errorf("once more: %v, want %v", errs, fs.ErrExist)
					}
				})
			})
		}
	}
}

// TestLinkNames has names and indexes that are taken, here and there.
func TestLinkNames(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		here := dialLive(t)
		ns := kerneltest.NewNetNS(t)
		there := dialIn(t, ns)
		v0, _ := pair(t, here)
		// With an index, kernels of all ages look for the name where the link is made only.
		must(t, here, LinkAdd{Name: "v1", Index: 500, Kind: "macvlan", Mode: "bridge", Parent: v0.Index, NetNS: int(ns.Fd())})
		if l := linkNamed(t, there, "v1"); l.Index != 500 {
			t.Errorf("v1 there is %+v", l)
		}
		taken := here.Do(
			LinkAdd{Name: "v1", Index: 501, Kind: "macvlan", Mode: "bridge", Parent: v0.Index, NetNS: int(ns.Fd())},
			LinkAdd{Name: "v2", Index: 500, Kind: "macvlan", Mode: "bridge", Parent: v0.Index, NetNS: int(ns.Fd())},
			LinkAdd{Name: "v0", Kind: "bridge"},
			LinkAdd{Name: "v2", Kind: "macvlan", Mode: "bridge", Parent: 1 << 30},
		)
		if len(taken) != 4 || !errors.Is(taken[0], fs.ErrExist) || !errors.Is(taken[1], fs.ErrExist) && !errors.Is(taken[1], unix.EBUSY) ||
			!errors.Is(taken[2], fs.ErrExist) || !errors.Is(taken[3], fs.ErrNotExist) {
			t.Errorf("errors %v, want three times that it is there already, and a parent that is not", taken)
		}
		const want = "add macvlan v1 on link 100 in another network namespace: RTM_NEWLINK: file exists"
		if got := errorText(taken[0]); got != want {
			t.Errorf("error %q, want %q", got, want)
		}
		links, err := there.Links()
		if err != nil || len(links) != 2 {
			t.Errorf("links %v, %v; want lo and v1", links, err)
		}
	})
}

// TestVethPeer makes a pair with its ends in two other namespaces, one index at
// each.
func TestVethPeer(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		here := dialLive(t)
		one, other := kerneltest.NewNetNS(t), kerneltest.NewNetNS(t)
		must(t, here, LinkAdd{
			Name: "eth0", Kind: "veth", Index: 7, NetNS: int(one.Fd()), MTU: 9000, Up: true,
			Peer: VethPeer{Name: "host0", Index: 8, NetNS: int(other.Fd()), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 8}, MTU: 1400, Group: 5},
		})
		eth0, host0 := linkNamed(t, dialIn(t, one), "eth0"), linkNamed(t, dialIn(t, other), "host0")
		if eth0.Index != 7 || eth0.MTU != 9000 || !eth0.Up || eth0.Group != 0 {
			t.Errorf("eth0 is %+v", eth0)
		}
		if host0.Index != 8 || host0.MTU != 1400 || host0.Up || host0.Group != 5 || host0.Address != "02:00:00:00:00:08" {
			t.Errorf("host0 is %+v", host0)
		}
		links, err := here.Links()
		if err != nil || len(links) != 1 {
			t.Errorf("links here %v, %v; want lo", links, err)
		}
	})
}

// TestLinkSetLive changes all of a link at once, on its way to another namespace.
func TestLinkSetLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		here := dialLive(t)
		ns := kerneltest.NewNetNS(t)
		there := dialIn(t, ns)
		quiet(t)
		must(t, here, LinkAdd{Name: "v0", Kind: "veth", Peer: VethPeer{Name: "v1"}})
		must(t, there, LinkAdd{Name: "br0", Kind: "bridge", Index: 300})
		v0 := linkNamed(t, here, "v0")
		must(t, here, LinkSet{
			Index: v0.Index, NetNS: int(ns.Fd()), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 9}, MTU: 1300, Group: new(9), Name: "net1",
			Master: new(300), Up: new(true), TxQueueLen: new(0),
		})
		got := linkNamed(t, there, "net1")
		if got.Address != "02:00:00:00:00:09" || got.MTU != 1300 || got.Group != 9 || got.MasterIndex != 300 || !got.Up || got.TxQueueLen != 0 {
			t.Errorf("net1 is %+v", got)
		}
		must(t, there, LinkSet{Index: got.Index, Up: new(false), Master: new(0), Group: new(0)})
		got = linkNamed(t, there, "net1")
		if got.Up || got.MasterIndex != 0 || got.Group != 0 || got.MTU != 1300 || got.Name != "net1" {
			t.Errorf("net1 is %+v", got)
		}
		if errs := here.Do(LinkSet{Index: v0.Index, MTU: 1300}); len(errs) != 1 || !errors.Is(errs[0], fs.ErrNotExist) {
			t.Errorf("the link that is gone: %v, want %v", errs, fs.ErrNotExist)
		}
		if errs := there.Do(LinkSet{Index: got.Index, MTU: 1}); len(errs) != 1 || !errors.Is(errs[0], unix.EINVAL) ||
			errs[0].Error() != "set link "+strconv.Itoa(got.Index)+" MTU 1: RTM_SETLINK: invalid argument: mtu less than device minimum" {
			t.Errorf("an MTU of 1: %v, want EINVAL with the kernel's explanation", errs)
		}
	})
}

// TestLinkDeleteLive removes links by index, by name and by group.
func TestLinkDeleteLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		c := dialLive(t)
		v0, _ := pair(t, c)
		add := func(name string, group int) LinkAdd {
			return LinkAdd{Name: name, Kind: "macvlan", Mode: "bridge", Parent: v0.Index, Group: group}
		}
		must(t, c, add("m0", 0), add("m1", 0), add("g0", 7), add("g1", 7), add("g2", 8))
		must(t, c, LinkDelete{Index: linkNamed(t, c, "m0").Index}, LinkDelete{Name: "m1"}, LinkDeleteGroup{Group: 7})
		links, err := c.Links()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range links {
			names = append(names, l.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff([]string{"g2", "lo", "v0", "v1"}, names); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
		for _, r := range []Request{LinkDelete{Index: 1 << 30}, LinkDelete{Name: "m1"}, LinkDeleteGroup{Group: 7}} {
			if errs := c.Do(r); len(errs) != 1 || !errors.Is(errs[0], fs.ErrNotExist) {
				t.Errorf("%s once more: %v, want %v", r.describe(), errs, fs.ErrNotExist)
			}
		}
		must(t, c, LinkSet{Index: 1, Group: new(8)}) // lo can be in a group and not be deleted
		if errs := c.Do(LinkDeleteGroup{Group: 8}); len(errs) != 1 || !errors.Is(errs[0], ErrNotSupported) {
			t.Errorf("group with lo: %v, want %v", errs, ErrNotSupported)
		}
		linkNamed(t, c, "g2") // was not removed
	})
}
