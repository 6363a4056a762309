package rtnl

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// routeBody returns a struct rtmsg of a static unicast route in main.
func routeBody(family, dstLen byte) []byte {
	b := []byte{family, dstLen, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST}
	return append(b, words(0)...)
}

func nextHop(flags, hops byte, index uint32, attributes ...[]byte) []byte {
	body := nest(attributes...)
	b := []byte{byte(8 + len(body)), 0, flags, hops}
	return nest(b, words(index), body)
}

func TestParseRoute(t *testing.T) {
	t.Parallel()
	static := func(dst string) Route {
		return Route{Table: 254, Type: "unicast", Protocol: "static", Scope: "global", Dst: netip.MustParsePrefix(dst)}
	}
	with := func(r Route, change func(*Route)) Route {
		change(&r)
		return r
	}
	fromBody := routeBody(unix.AF_INET6, 48)
	fromBody[2] = 32
	strange := routeBody(unix.AF_INET, 0)
	strange[5], strange[6], strange[7] = 200, 100, 99
	via6 := netip.MustParseAddr("fe80::1").AsSlice()
	tests := []struct {
		name string
		in   [][]byte
		want Route
		err  string
	}{
		{name: "default IPv4", in: [][]byte{routeBody(unix.AF_INET, 0)}, want: static("0.0.0.0/0")},
		{name: "default IPv6", in: [][]byte{routeBody(unix.AF_INET6, 0)}, want: static("::/0")},
		{
			name: "all of a rail", in: [][]byte{
				routeBody(unix.AF_INET, 16), number(unix.RTA_TABLE, 100), ip(unix.RTA_DST, "172.16.0.0"),
				ip(unix.RTA_GATEWAY, "172.16.11.254"), ip(unix.RTA_PREFSRC, "172.16.11.2"),
				number(unix.RTA_OIF, 3), number(unix.RTA_PRIORITY, 50),
				attribute(unix.RTA_METRICS, nest(number(1, 7), number(unix.RTAX_MTU, 4200))),
			},
			want: with(static("172.16.0.0/16"), func(r *Route) {
				r.Table, r.LinkIndex, r.Priority, r.MTU = 100, 3, 50, 4200
				r.Gateway, r.Src = netip.MustParseAddr("172.16.11.254"), netip.MustParseAddr("172.16.11.2")
			}),
		},
		{
			name: "IPv6, by source", in: [][]byte{
				fromBody, ip(unix.RTA_DST, "2001:db8:1::"), ip(unix.RTA_SRC, "2001:db8::"), attribute(unix.RTA_PREF, []byte{3}),
			},
			want: with(static("2001:db8:1::/48"), func(r *Route) {
				r.From, r.Preference = netip.MustParsePrefix("2001:db8::/32"), "low"
			}),
		},
		{
			name: "gateway of the other family",
			in:   [][]byte{routeBody(unix.AF_INET, 0), attribute(unix.RTA_VIA, append([]byte{10, 0}, via6...))},
			want: with(static("0.0.0.0/0"), func(r *Route) { r.Gateway = netip.MustParseAddr("fe80::1") }),
		},
		{
			name: "multipath", in: [][]byte{
				routeBody(unix.AF_INET, 0), number(rtaNextHopID, 7),
				attribute(unix.RTA_MULTIPATH, nest(
					nextHop(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN, 2, 3, ip(unix.RTA_GATEWAY, "192.0.2.1")),
					nextHop(unix.RTNH_F_ONLINK, 255, 4, attribute(unix.RTA_VIA, append([]byte{10, 0}, via6...))),
				)),
			},
			want: with(static("0.0.0.0/0"), func(r *Route) {
				r.NextHopID = 7
				r.NextHops = []NextHop{
					{LinkIndex: 3, Gateway: netip.MustParseAddr("192.0.2.1"), Weight: 3, Dead: true, LinkDown: true},
					{LinkIndex: 4, Gateway: netip.MustParseAddr("fe80::1"), Weight: 256, OnLink: true},
				}
			}),
		},
		{
			name: "values of a new kernel", in: [][]byte{strange},
			want: Route{Table: 254, Type: "99", Protocol: "200", Scope: "100", Dst: netip.MustParsePrefix("0.0.0.0/0")},
		},
		{name: "empty", err: "route: 0 bytes, want a header of 12"},
		{name: "no destination", in: [][]byte{routeBody(unix.AF_INET, 8)}, err: "route in table 254: destination: no address"},
		{
			name: "length too great", in: [][]byte{routeBody(unix.AF_INET, 33), ip(unix.RTA_DST, "192.0.2.0")},
			err: "route in table 254: destination: prefix length 33 of 192.0.2.0, want at most 32",
		},
		{
			name: "source of the other family", in: [][]byte{routeBody(unix.AF_INET6, 0), ip(unix.RTA_SRC, "192.0.2.0")},
			err: "route in table 254: source: address 192.0.2.0 in a message of family 10",
		},
		{
			name: "next hop cut", in: [][]byte{routeBody(unix.AF_INET, 0), attribute(unix.RTA_MULTIPATH, []byte{8, 0, 0})},
			err: "route in table 254: attribute 9: next hop 0: 3 bytes, want a header of 8",
		},
		{
			name: "next hop too long", in: [][]byte{routeBody(unix.AF_INET, 0), attribute(unix.RTA_MULTIPATH, []byte{9, 0, 0, 0, 0, 0, 0, 0})},
			err: "route in table 254: attribute 9: next hop 0: length 9, want 8 to 8",
		},
		{
			name: "next hop of nothing", in: [][]byte{routeBody(unix.AF_INET, 0), attribute(unix.RTA_MULTIPATH, make([]byte, 8))},
			err: "route in table 254: attribute 9: next hop 0: length 0, want 8 to 8",
		},
		{
			name: "no next hops", in: [][]byte{routeBody(unix.AF_INET, 0), attribute(unix.RTA_MULTIPATH, nil)},
			err: "route in table 254: attribute 9: no next hops",
		},
		{
			name: "gateway too short", in: [][]byte{routeBody(unix.AF_INET, 0), attribute(unix.RTA_VIA, []byte{10})},
			err: "route in table 254: attribute 18: 1 bytes, want a family and an address",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseRoute(nest(tt.in...))
			if errorText(err) != tt.err {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got, ipTypes); diff != "" {
				t.Errorf("route (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRoutesCloned has a route and what the kernel learnt about one of its
// destinations, which kernels before 4.20 list with it.
func TestRoutesCloned(t *testing.T) {
	t.Parallel()
	cloned := routeBody(unix.AF_INET, 0)
	copy(cloned[8:], words(unix.RTM_F_CLONED))
	exchanges := dumpsIP(unix.RTM_GETROUTE, unix.SizeofRtMsg)
	exchanges[0].answer = []netlink.Message{
		message(unix.RTM_NEWROUTE, 0, cloned),
		message(unix.RTM_NEWROUTE, 0, routeBody(unix.AF_INET, 0)),
	}
	routes, err := serve(t, exchanges...).Routes()
	if err != nil || len(routes) != 1 {
		t.Errorf("got %+v, %v; want one route", routes, err)
	}
}

func FuzzParseRoute(f *testing.F) {
	addCaptured(f, unix.RTM_NEWROUTE)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := checkParser(t, b, parseRoute)
		if !ok {
			return
		}
		if !r.Dst.IsValid() {
			t.Fatalf("%+v leads nowhere", r)
		}
		for _, hop := range r.NextHops {
			if hop.Weight < 1 || hop.Weight > 256 {
				t.Fatalf("%+v has a weight out of range", hop)
			}
		}
	})
}
