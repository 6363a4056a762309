package rtnl

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/golden"
)

// body returns what a request says, or the error that it cannot be.
func body(r Request) ([]byte, error) {
	var e encoder
	r.encode(&e)
	return e.b, e.err
}

// TestEncodeGolden pins the bytes of requests, those for kinds of links among
// them that the kernel of a test may not have.
func TestEncodeGolden(t *testing.T) {
	t.Parallel()
	prefix, ip := netip.MustParsePrefix, netip.MustParseAddr
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 7}
	requests := []Request{
		LinkAdd{Name: "net1", Kind: "macvlan", Mode: "bridge", Parent: 5, NetNS: 9, MAC: mac, MTU: 9000, TxQueueLen: 100, Group: 77, Up: true, Index: 200},
		LinkAdd{Name: "net1", Kind: "ipvlan", Mode: "l3s", Parent: 5, NetNS: 9, Up: true},
		LinkAdd{Name: "eth1.100", Kind: "vlan", VLANID: 100, Parent: 5},
		LinkAdd{Name: "bond0", Kind: "bond"},
		LinkAdd{Name: "bond0", Kind: "bond", BondMode: "802.3ad", BondOptions: everyBondOption()},
		LinkAdd{Name: "eth0", Kind: "veth", NetNS: 9, Peer: VethPeer{Name: "veth1", MAC: mac, MTU: 9000, Group: 77, NetNS: 8}},
		LinkAdd{Name: "d0", Kind: "dummy"},
		LinkSet{Index: 5, NetNS: 9, Name: "net1", MTU: 9000, Up: new(true)},
		LinkSet{Index: 5, Master: new(0), Up: new(false), Group: new(0), TxQueueLen: new(0)},
		LinkDelete{Index: 5},
		LinkDelete{Name: "net1"},
		LinkDeleteGroup{Group: 77},
		AddressAdd{Address{LinkIndex: 5, Prefix: prefix("172.16.11.2/24"), Broadcast: ip("172.16.11.255"), Deprecated: true}},
		AddressAdd{Address{LinkIndex: 5, Prefix: prefix("2001:db8::2/64"), NoDAD: true, NoPrefixRoute: true}},
		AddressDelete{Address{LinkIndex: 5, Prefix: prefix("172.16.11.2/32"), Peer: prefix("172.16.11.1/30")}},
		RouteAdd{Route: Route{Dst: prefix("0.0.0.0/0"), Gateway: ip("172.16.11.254"), LinkIndex: 5, Src: ip("172.16.11.2"), Table: 100, MTU: 4200, OnLink: true}},
		RouteAdd{Replace: true, Route: Route{Dst: prefix("2001:db8::/32"), Type: "unreachable", Table: 1000, Priority: 50}},
		RouteAdd{Append: true, Route: Route{Dst: prefix("2001:db8::/32"), Gateway: ip("fe80::1"), LinkIndex: 5}},
		RouteAdd{Route: Route{Dst: prefix("10.0.0.0/8"), NextHops: []NextHop{{LinkIndex: 5, Gateway: ip("fe80::1"), Weight: 2}, {LinkIndex: 6, Weight: 1, OnLink: true}}}},
		RouteDelete{Route{Dst: prefix("10.0.0.0/8"), Table: 100}},
		RuleAdd{Rule{Src: prefix("172.16.11.2/32"), Table: 100, Priority: 1000}},
		RuleAdd{Rule{Family: "inet6", Dst: prefix("2001:db8::/32"), Mark: 16, MarkMask: 240, Table: 1000, Priority: 1000, IIF: "net1"}},
		RuleDelete{Rule{Src: prefix("172.16.11.2/32"), Table: 100, Priority: 1000}},
		NeighbourSet{Neighbour: Neighbour{LinkIndex: 5, IP: ip("172.16.11.254"), Address: "02:00:00:00:00:01"}},
		NeighbourSet{Neighbour: Neighbour{LinkIndex: 5, IP: ip("fe80::1"), Flags: []string{"managed"}}, Use: true},
		NeighbourDelete{Neighbour{LinkIndex: 5, IP: ip("fe80::1")}},
	}
	var got bytes.Buffer
	for _, r := range requests {
		var e encoder
		typ, flags := r.encode(&e)
		if e.err != nil {
			t.Fatalf("%s: %v", r.describe(), e.err)
		}
		fmt.Fprintf(&got, "%s\n%s %#x\n%x\n\n", r.describe(), typeName(typ), uint16(flags), e.b)
	}
	golden.Equal(t, "testdata/requests.txt", got.Bytes())
}

// everyBondOption gives each option a value, the last that has a name if any has.
func everyBondOption() map[string]string {
	options := make(map[string]string)
	for key, option := range bondOptions {
		switch option.form {
		case listIPv4:
			options[key] = "192.0.2.1, 192.0.2.2"
		case listIPv6:
			options[key] = "2001:db8::1,2001:db8::2"
		case hardwareAddress:
			options[key] = "02:00:00:00:00:01"
		default:
			options[key] = "7"
			if n := len(option.names); n > 0 {
				options[key] = option.names[uint32(n-1)]
			}
		}
	}
	return options
}

// TestBondOptions decodes every option of a bond again, by its place in
// include/uapi/linux/if_link.h and by the width that bond_netlink.c wants.
func TestBondOptions(t *testing.T) {
	t.Parallel()
	want := map[uint16]string{
		1: "04", 2: "07000000", 3: "07000000", 4: "07000000", 5: "07000000", 6: "01", 7: "07000000",
		8: "08000000c000020108000100c0000202", 9: "06000000", 10: "01000000", 11: "07000000", 12: "02", 13: "02", 14: "05", 15: "07000000",
		16: "07", 17: "01", 18: "07000000", 19: "07000000", 20: "07000000", 21: "01", 22: "03", 24: "0700", 25: "0700", 26: "020000000001",
		27: "01", 28: "07000000", 29: "01", 30: "07", 31: "1400000020010db8000000000000000000000001" + "1400010020010db8000000000000000000000002",
		32: "01", 33: "01",
	}
	got := make(map[uint16]string)
	var e encoder
	e.bond("802.3ad", everyBondOption())
	if e.err != nil {
		t.Fatal(e.err)
	}
	a := attributes{rest: e.b}
	for a.next() {
		got[a.typ] = fmt.Sprintf("%x", a.data)
	}
	if diff := cmp.Diff(want, got); diff != "" || a.err != nil {
		t.Errorf("options (-want +got), %v:\n%s", a.err, diff)
	}
}

// FuzzLinkAdd holds that what is encoded is decoded as what it was.
func FuzzLinkAdd(f *testing.F) {
	kinds := []string{"macvlan", "ipvlan", "vlan", "bond", "veth", "dummy", "bridge"}
	f.Add("net1", 0, "bridge", 5, 0, "", []byte{2, 0, 0, 0, 0, 1}, 9000, 1000, 77, 3, true)
	f.Add("net1", 1, "l2", 5, 0, "", []byte(nil), 0, 0, 0, 0, false)
	f.Add("eth1.100", 2, "", 5, 100, "", []byte(nil), 0, 0, 0, 0, true)
	f.Add("bond0", 3, "", 0, 0, "802.3ad", []byte{1}, 0, 0, 0, 0, true)
	f.Add("x", 4, "", 0, 0, "", []byte{1}, -1, 1<<32, 0, 0, true)
	f.Fuzz(func(t *testing.T, name string, kind int, mode string, parent, vlanID int, bondMode string, mac []byte, mtu, queue, group, index int, up bool) {
		l := LinkAdd{
			Name: name, Kind: kinds[uint(kind)%uint(len(kinds))], Index: index, Parent: parent, MAC: mac, MTU: mtu, TxQueueLen: queue, Group: group,
			Up: up, Mode: mode, VLANID: vlanID, BondMode: bondMode,
		}
		if l.Kind == veth {
			l.Peer.Name = "peer"
		}
		b, err := body(l)
		if err != nil {
			return
		}
		got, err := parseLink(b)
		if err != nil {
			t.Fatal(err)
		}
		want := Link{
			Name: l.Name, Kind: l.Kind, Index: l.Index, ParentIndex: l.Parent, Address: hexBytes(mac), MTU: int(int32(l.MTU)),
			TxQueueLen: int(int32(l.TxQueueLen)), Group: l.Group, Up: l.Up, Mode: got.Mode, VLANID: l.VLANID, BondMode: got.BondMode,
		}
		if want.ParentIndex == want.Index {
			want.ParentIndex = 0 // which is how the kernel says that there is none
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("link (-want +got):\n%s", diff)
		}
		if !same(macvlanModes, l.Mode, got.Mode) && !same(ipvlanModes, l.Mode, got.Mode) || !same(bondModes, l.BondMode, got.BondMode) {
			t.Errorf("wrote modes %q and %q, read %q and %q", l.Mode, l.BondMode, got.Mode, got.BondMode)
		}
	})
}

// same reports whether two names, or numbers, mean the same.
func same(names map[uint32]string, a, b string) bool {
	x, err1 := value(names, a, 1<<32-1)
	y, err2 := value(names, b, 1<<32-1)
	return a == b || err1 == nil && err2 == nil && x == y
}

// writtenBack holds that a value that was decoded can be encoded and is decoded as
// the same. State is what the kernel says of it, and not written.
func writtenBack[T any](t *testing.T, b []byte, parse func([]byte) (T, error), request func(T) Request, forget func(*T)) {
	t.Helper()
	v, err := parse(b)
	if err != nil {
		return
	}
	again, err := body(request(v))
	if err != nil {
		return // a value that the kernel has and would not take, or never would have
	}
	got, err := parse(again)
	if err != nil {
		t.Fatalf("%+v written back: %v", v, err)
	}
	forget(&v)
	if diff := cmp.Diff(v, got, ipTypes); diff != "" {
		t.Errorf("written back (-was +is):\n%s", diff)
	}
}

func FuzzAddressAdd(f *testing.F) {
	addCaptured(f, unix.RTM_NEWADDR)
	f.Fuzz(func(t *testing.T, b []byte) {
		writtenBack(t, b, parseAddress, func(a Address) Request { return AddressAdd{a} }, func(a *Address) {
			a.Tentative, a.DADFailed, a.Dynamic = false, false, false
		})
	})
}

func FuzzRouteAdd(f *testing.F) {
	addCaptured(f, unix.RTM_NEWROUTE)
	f.Fuzz(func(t *testing.T, b []byte) {
		writtenBack(t, b, parseRoute, func(r Route) Request { return RouteAdd{Route: r} }, func(r *Route) {
			r.Dead, r.LinkDown = false, false
			for i := range r.NextHops {
				r.NextHops[i].Dead, r.NextHops[i].LinkDown = false, false
			}
			if r.Table == 0 {
				r.Table = unix.RT_TABLE_MAIN
			}
		})
	})
}

func FuzzRuleAdd(f *testing.F) {
	addCaptured(f, unix.RTM_NEWRULE)
	f.Fuzz(func(t *testing.T, b []byte) {
		writtenBack(t, b, parseRule, func(r Rule) Request { return RuleAdd{r} }, func(r *Rule) {
			if r.Protocol == "" {
				r.Protocol = "boot"
			}
		})
	})
}

func FuzzNeighbourSet(f *testing.F) {
	addCaptured(f, unix.RTM_NEWNEIGH)
	f.Fuzz(func(t *testing.T, b []byte) {
		writtenBack(t, b, parseNeighbour, func(n Neighbour) Request { return NeighbourSet{Neighbour: n} }, func(*Neighbour) {})
	})
}

// TestCapturedWrittenBack has none of what a kernel sent refused: the fuzz targets
// pass over what is.
func TestCapturedWrittenBack(t *testing.T) {
	t.Parallel()
	for i, m := range captured(t) {
		if !ours(m.Header.Type, m.Data) {
			continue
		}
		var err error
		switch m.Header.Type {
		case unix.RTM_NEWADDR:
			err = encodable(m, parseAddress, func(a Address) Request { return AddressAdd{a} })
		case unix.RTM_NEWROUTE:
			err = encodable(m, parseRoute, func(r Route) Request { return RouteAdd{Route: r} })
		case unix.RTM_NEWRULE:
			err = encodable(m, parseRule, func(r Rule) Request { return RuleAdd{r} })
		case unix.RTM_NEWNEIGH:
			err = encodable(m, parseNeighbour, func(n Neighbour) Request { return NeighbourSet{Neighbour: n} })
		}
		if err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

func encodable[T any](m netlink.Message, parse func([]byte) (T, error), request func(T) Request) error {
	v, err := parse(m.Data)
	if err != nil {
		return err
	}
	_, err = body(request(v))
	return err
}
