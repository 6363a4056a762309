package rtnl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// TestLinkRequests pins the bytes by which links are asked for: an ifinfomsg
// and IFLA_EXT_MASK, in which RTEXT_FILTER_VF must never be.
func TestLinkRequests(t *testing.T) {
	t.Parallel()
	const mask = "\x08\x00\x1d\x00\x08\x00\x00\x00" // little-endian, as all machines with RDMA are
	tests := []struct {
		name  string
		flags netlink.HeaderFlags
		body  string
		ask   func(*Client) error
	}{
		{
			name: "all", flags: dumpFlags,
			body: strings.Repeat("\x00", 16) + mask,
			ask:  func(c *Client) error { _, err := c.Links(); return err },
		},
		{
			name: "by index", flags: netlink.Request,
			body: "\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + mask,
			ask:  func(c *Client) error { _, err := c.Link(5); return err },
		},
		{
			name: "by name", flags: netlink.Request,
			body: strings.Repeat("\x00", 16) + mask + "\x09\x00\x03\x00rail\x00\x00\x00\x00",
			ask:  func(c *Client) error { _, err := c.LinkByName("rail"); return err },
		},
		{
			name: "by long name", flags: netlink.Request,
			body: strings.Repeat("\x00", 16) + mask + "\x15\x00\x35\x00rail-of-the-rack\x00\x00\x00\x00",
			ask:  func(c *Client) error { _, err := c.LinkByName("rail-of-the-rack"); return err },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, exchange{
				typ: unix.RTM_GETLINK, flags: tt.flags, body: []byte(tt.body),
				answer: []netlink.Message{linkMessage(5, "rail")},
			})
			if err := tt.ask(c); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLinkByNameLength(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", strings.Repeat("x", 128)} {
		if _, err := serve(t).LinkByName(name); err == nil || !strings.Contains(err.Error(), "want 1 to 127") {
			t.Errorf("name of %d bytes: error %v, want one that says what is accepted", len(name), err)
		}
	}
}

func TestParseLink(t *testing.T) {
	t.Parallel()
	id := func(n int) *int { return &n }
	up := linkBody(7)
	copy(up[8:], words(unix.IFF_UP|unix.IFF_LOWER_UP))
	ipoib := linkBody(7)
	ipoib[2] = unix.ARPHRD_INFINIBAND
	info := func(kind string, data []byte) []byte {
		return attribute(unix.IFLA_LINKINFO, nest(attribute(unix.IFLA_INFO_DATA, data), text(unix.IFLA_INFO_KIND, kind)))
	}
	tests := []struct {
		name string
		in   [][]byte
		want Link
	}{
		{name: "nothing said", in: [][]byte{linkBody(7)}, want: Link{Index: 7, Type: 1}},
		{
			name: "physical function",
			in: [][]byte{
				up, text(unix.IFLA_IFNAME, "ens1f0np0"),
				attribute(unix.IFLA_PROP_LIST, nest(text(unix.IFLA_ALT_IFNAME, "enp23s0f0np0"), text(unix.IFLA_ALT_IFNAME, "rail0"))),
				attribute(unix.IFLA_ADDRESS, []byte{2, 0, 0, 0, 0, 1}),
				attribute(unix.IFLA_PERM_ADDRESS, []byte{0x0c, 0x42, 0xa1, 0, 0, 1}),
				attribute(unix.IFLA_OPERSTATE, []byte{6}),
				number(unix.IFLA_MTU, 4200), number(unix.IFLA_MIN_MTU, 68), number(unix.IFLA_MAX_MTU, 9978),
				number(unix.IFLA_TXQLEN, 1000), number(unix.IFLA_GROUP, 7), number(unix.IFLA_MASTER, 9),
				text(unix.IFLA_PARENT_DEV_BUS_NAME, "pci"), text(unix.IFLA_PARENT_DEV_NAME, "0000:17:00.0"),
				text(unix.IFLA_PHYS_PORT_NAME, "p0"), attribute(unix.IFLA_PHYS_SWITCH_ID, []byte{0xca, 0xfe, 0}),
				text(unix.IFLA_IFALIAS, "to the rack"),
			},
			want: Link{
				Index: 7, Type: 1, Name: "ens1f0np0", AltNames: []string{"enp23s0f0np0", "rail0"}, Alias: "to the rack",
				Address: "02:00:00:00:00:01", PermAddress: "0c:42:a1:00:00:01",
				Up: true, Running: true, OperState: "up", MTU: 4200, MinMTU: 68, MaxMTU: 9978, TxQueueLen: 1000, Group: 7, MasterIndex: 9,
				ParentBus: "pci", ParentDev: "0000:17:00.0", PhysPortName: "p0", PhysSwitchID: "cafe00",
			},
		},
		{
			name: "IPoIB",
			in:   [][]byte{ipoib, attribute(unix.IFLA_ADDRESS, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19})},
			want: Link{Index: 7, Type: 32, Address: "00:01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11:12:13"},
		},
		{name: "parent", in: [][]byte{linkBody(7), number(unix.IFLA_LINK, 3)}, want: Link{Index: 7, Type: 1, ParentIndex: 3}},
		{name: "parent is itself", in: [][]byte{linkBody(7), number(unix.IFLA_LINK, 7)}, want: Link{Index: 7, Type: 1}},
		{
			name: "parent of the same index elsewhere",
			in:   [][]byte{linkBody(7), number(unix.IFLA_LINK, 7), number(unix.IFLA_LINK_NETNSID, 0)},
			want: Link{Index: 7, Type: 1, ParentIndex: 7, ParentNetNS: id(0)},
		},
		{
			name: "parent in a namespace without an id",
			in:   [][]byte{linkBody(7), number(unix.IFLA_LINK_NETNSID, 0xffffffff), number(unix.IFLA_LINK, 2)},
			want: Link{Index: 7, Type: 1, ParentIndex: 2, ParentNetNS: id(-1)},
		},
		{
			name: "bond", in: [][]byte{linkBody(7), info("bond", attribute(1, []byte{4}))},
			want: Link{Index: 7, Type: 1, Kind: "bond", BondMode: "802.3ad"},
		},
		{
			name: "bond of a new mode", in: [][]byte{linkBody(7), info("bond", attribute(1, []byte{77}))},
			want: Link{Index: 7, Type: 1, Kind: "bond", BondMode: "77"},
		},
		{
			name: "vlan", in: [][]byte{linkBody(7), info("vlan", short(1, 4094))},
			want: Link{Index: 7, Type: 1, Kind: "vlan", VLANID: 4094},
		},
		{
			name: "macvlan", in: [][]byte{linkBody(7), info("macvlan", nest(short(2, 1), number(1, 8)))},
			want: Link{Index: 7, Type: 1, Kind: "macvlan", Mode: "passthru"},
		},
		{
			name: "ipvlan", in: [][]byte{linkBody(7), info("ipvlan", short(1, 2))},
			want: Link{Index: 7, Type: 1, Kind: "ipvlan", Mode: "l3s"},
		},
		{
			name: "kind without a field of its own", in: [][]byte{linkBody(7), info("vxlan", []byte{1, 2})},
			want: Link{Index: 7, Type: 1, Kind: "vxlan"},
		},
		{
			name: "state of a new kernel", in: [][]byte{linkBody(7), attribute(unix.IFLA_OPERSTATE, []byte{9})},
			want: Link{Index: 7, Type: 1, OperState: "9"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseLink(nest(tt.in...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("link (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseLinkErrors(t *testing.T) {
	t.Parallel()
	info := nest(text(unix.IFLA_INFO_KIND, "vlan"), attribute(unix.IFLA_INFO_DATA, attribute(1, []byte{1})))
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{name: "empty", want: "link: 0 bytes, want a header of 16"},
		{name: "number too short", in: nest(linkBody(7), attribute(unix.IFLA_MTU, nil)), want: "link 7: attribute 4: 0 bytes, want 4"},
		{name: "kind data too short", in: nest(linkBody(7), attribute(unix.IFLA_LINKINFO, info)), want: "link 7: attribute 18: attribute 1: 1 bytes, want 2"},
		{name: "list cut", in: nest(linkBody(7), attribute(unix.IFLA_PROP_LIST, []byte{9, 0})), want: "link 7: attribute 52: 2 bytes after the last attribute"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := parseLink(tt.in); errorText(err) != tt.want {
				t.Errorf("got %+v, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func FuzzParseLink(f *testing.F) {
	addCaptured(f, unix.RTM_NEWLINK)
	f.Fuzz(func(t *testing.T, b []byte) {
		l, ok := checkParser(t, b, parseLink)
		if ok && l.ParentNetNS == nil && l.ParentIndex != 0 && l.ParentIndex == l.Index {
			t.Fatalf("%+v is its own parent", l)
		}
	})
}

func TestLinksLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "v0", "v1")
		kerneltest.AddMacvlan(t, "m0", "v0")
		kerneltest.AddBridge(t, "br0")
		kerneltest.SetMaster(t, "v1", "br0")
		kerneltest.SetUp(t, "v0")
		c := dialLive(t)
		all, err := c.Links()
		if err != nil {
			t.Fatal(err)
		}
		links := make(map[string]Link)
		for _, l := range all {
			links[l.Name] = l
			byIndex, err := c.Link(l.Index)
			if err != nil {
				t.Fatal(err)
			}
			byName, err := c.LinkByName(l.Name)
			if err != nil {
				t.Fatal(err)
			}
			byIndex.OperState, byName.OperState = l.OperState, l.OperState // may be settling
			if diff := cmp.Diff([]Link{l, l}, []Link{byIndex, byName}); diff != "" {
				t.Errorf("%s of the list, and by index and by name (-want +got):\n%s", l.Name, diff)
			}
			if vfs, err := c.VFs(l.Index); err != nil || len(vfs) != 0 {
				t.Errorf("VFs of %s: %v, %v; want none", l.Name, vfs, err)
			}
		}
		if lo := links["lo"]; lo.Type != unix.ARPHRD_LOOPBACK || !lo.Up || !lo.Running {
			t.Errorf("lo is %+v", lo)
		}
		if v0, v1 := links["v0"], links["v1"]; v0.Kind != "veth" || v0.ParentIndex != v1.Index || v1.ParentIndex != v0.Index {
			t.Errorf("not a pair: %+v and %+v", v0, v1)
		}
		if m0 := links["m0"]; m0.Kind != "macvlan" || m0.Mode != "bridge" || m0.ParentIndex != links["v0"].Index {
			t.Errorf("m0 is %+v", m0)
		}
		if v1 := links["v1"]; v1.MasterIndex != links["br0"].Index {
			t.Errorf("v1 is %+v, want it in bridge %d", v1, links["br0"].Index)
		}
	})
}

func dialLive(t *testing.T) *Client {
	t.Helper()
	c, err := Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
