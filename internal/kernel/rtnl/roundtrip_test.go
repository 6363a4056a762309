package rtnl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// TestWritesComeBack makes everything that a request can describe, reads it as it
// was written, cannot make it again, and removes it, once.
func TestWritesComeBack(t *testing.T) {
	t.Parallel()
	prefix, ip := netip.MustParsePrefix, netip.MustParseAddr
	const v0 = 100
	tests := []struct {
		name  string
		first []Request // what it needs
		value any       // Address, Route, Rule or Neighbour
		reads any       // as which it is read, where that is more than was written
	}{
		{name: "IPv4", value: Address{LinkIndex: v0, Prefix: prefix("198.51.100.2/24"), Label: "v0", Scope: "global"}},
		{
			name: "IPv4, short", value: Address{LinkIndex: v0, Prefix: prefix("198.51.100.2/24")},
			reads: Address{LinkIndex: v0, Prefix: prefix("198.51.100.2/24"), Label: "v0", Scope: "global"},
		},
		{name: "IPv4 with all", value: Address{
			LinkIndex: v0, Prefix: prefix("198.51.100.2/24"), Broadcast: ip("198.51.100.255"), Label: "v0:rail", Scope: "link",
			Deprecated: true, NoPrefixRoute: true,
		}},
		{name: "IPv4 peer", value: Address{LinkIndex: v0, Prefix: prefix("198.51.100.2/32"), Peer: prefix("198.51.100.5/30"), Label: "v0", Scope: "global"}},
		{
			name: "IPv4 loopback", value: Address{LinkIndex: v0, Prefix: prefix("127.1.0.1/32")},
			reads: Address{LinkIndex: v0, Prefix: prefix("127.1.0.1/32"), Label: "v0", Scope: "host"},
		},
		{name: "IPv6", value: Address{LinkIndex: v0, Prefix: prefix("2001:db8:1::2/64"), Scope: "global", NoDAD: true}},
		{name: "IPv6 with all", value: Address{LinkIndex: v0, Prefix: prefix("fe80::2/64"), Scope: "link", NoDAD: true, NoPrefixRoute: true, Deprecated: true}},
		{name: "IPv6 peer", value: Address{LinkIndex: v0, Prefix: prefix("2001:db8:1::2/128"), Peer: prefix("2001:db8:1::3/128"), Scope: "global", NoDAD: true}},

		{
			name: "route by link, short", value: Route{Dst: prefix("203.0.113.0/24"), LinkIndex: v0, Table: 100},
			reads: Route{Dst: prefix("203.0.113.0/24"), LinkIndex: v0, Table: 100, Type: "unicast", Protocol: "boot", Scope: "link"},
		},
		{name: "route by gateway", value: Route{
			Dst: prefix("0.0.0.0/0"), Gateway: ip("192.0.2.254"), LinkIndex: v0, Src: ip("192.0.2.1"), Table: 1000, Priority: 100, TOS: 16, MTU: 4200,
			Type: "unicast", Protocol: "static", Scope: "global",
		}},
		{name: "route in a high table", value: Route{Dst: prefix("203.0.113.0/24"), LinkIndex: v0, Table: 1<<32 - 1, Type: "unicast", Protocol: "200", Scope: "link"}},
		{name: "route on link", value: Route{
			Dst: prefix("203.0.113.0/24"), Gateway: ip("198.18.0.1"), LinkIndex: v0, OnLink: true, Table: 101, Type: "unicast", Protocol: "boot", Scope: "global",
		}},
		{name: "route by the other family", value: Route{
			Dst: prefix("203.0.113.0/24"), Gateway: ip("2001:db8::fe"), LinkIndex: v0, Table: 101, Type: "unicast", Protocol: "boot", Scope: "global",
		}},
		{name: "blackhole", value: Route{Dst: prefix("203.0.113.0/24"), Table: 100, Type: "blackhole", Protocol: "boot", Scope: "global"}},
		{name: "unreachable", value: Route{Dst: prefix("203.0.113.0/24"), Table: 100, Type: "unreachable", Protocol: "boot", Scope: "global"}},
		{name: "prohibit", value: Route{Dst: prefix("203.0.113.0/24"), Table: 100, Type: "prohibit", Protocol: "boot", Scope: "global"}},
		{name: "local", value: Route{Dst: prefix("203.0.113.0/24"), LinkIndex: v0, Table: 100, Type: "local", Protocol: "boot", Scope: "host"}},
		{name: "multipath", value: Route{
			Dst: prefix("203.0.113.0/24"), Table: 100, Type: "unicast", Protocol: "boot", Scope: "global",
			NextHops: []NextHop{{LinkIndex: v0, Gateway: ip("192.0.2.254"), Weight: 3}, {LinkIndex: 101, Gateway: ip("fe80::1"), Weight: 256, OnLink: true}},
		}},
		{
			name: "IPv6 route by link, short", value: Route{Dst: prefix("2001:db8:2::/48"), LinkIndex: v0},
			reads: Route{Dst: prefix("2001:db8:2::/48"), LinkIndex: v0, Table: 254, Priority: 1024, Type: "unicast", Protocol: "boot", Scope: "global", Preference: "medium"},
		},
		{name: "IPv6 route by gateway", value: Route{
			Dst: prefix("::/0"), Gateway: ip("2001:db8::fe"), LinkIndex: v0, Src: ip("2001:db8::1"), Table: 1000, Priority: 100, MTU: 4200,
			Type: "unicast", Protocol: "static", Scope: "global", Preference: "high",
		}},
		{name: "IPv6 route on link", value: Route{
			Dst: prefix("2001:db8:2::/48"), Gateway: ip("2001:db8:ffff::1"), LinkIndex: v0, OnLink: true, Table: 100, Priority: 7,
			Type: "unicast", Protocol: "boot", Scope: "global", Preference: "low",
		}},
		{name: "IPv6 blackhole", value: Route{ // the kernel has these on lo
			Dst: prefix("2001:db8:2::/48"), LinkIndex: 1, Table: 100, Priority: 7, Type: "blackhole", Protocol: "boot", Scope: "global", Preference: "medium",
		}},

		{
			name: "rule, short", value: Rule{Priority: 1000, Src: prefix("192.0.2.1/32"), Table: 100},
			reads: Rule{Family: "inet", Priority: 1000, Src: prefix("192.0.2.1/32"), Table: 100, Action: "lookup", Protocol: "boot"},
		},
		{name: "rule with all", value: Rule{
			Family: "inet", Priority: 7, Invert: true, Src: prefix("192.0.2.0/24"), Dst: prefix("203.0.113.0/24"), IIF: "v0", OIF: "lo", Mark: 0x10,
			MarkMask: 0xf0, TOS: 16, IPProto: 17, SrcPorts: &Range{1000, 2000}, DstPorts: &Range{4791, 4791}, UIDs: &Range{0, 0},
			Action: "lookup", Table: 1 << 20, SuppressPrefixLength: new(0), SuppressLinkGroup: new(9), Protocol: "static",
		}},
		{
			name: "rule by mark", value: Rule{Family: "inet6", Priority: 0, Mark: 0x10, Table: 254},
			reads: Rule{Family: "inet6", Mark: 0x10, MarkMask: 0xffffffff, Table: 254, Action: "lookup", Protocol: "boot"},
		},
		{name: "IPv6 rule", value: Rule{
			Family: "inet6", Priority: 1000, Src: prefix("2001:db8::/64"), Dst: prefix("2001:db8:1::/64"), Action: "lookup", Table: 100, Protocol: "boot",
		}},
		{name: "rule that goes on", value: Rule{Family: "inet", Priority: 10, Action: "goto", Goto: 32766, Protocol: "boot"}},
		{name: "rule that ends", value: Rule{Family: "inet", Priority: 10, Dst: prefix("203.0.113.0/24"), Action: "prohibit", Protocol: "boot"}},

		{name: "neighbour", value: Neighbour{LinkIndex: v0, IP: ip("192.0.2.7"), Address: "02:00:00:00:00:07", State: "permanent"}},
		{
			name: "neighbour, short", value: Neighbour{LinkIndex: v0, IP: ip("192.0.2.7"), Address: "02:00:00:00:00:07"},
			reads: Neighbour{LinkIndex: v0, IP: ip("192.0.2.7"), Address: "02:00:00:00:00:07", State: "permanent"},
		},
		{name: "IPv6 neighbour", value: Neighbour{
			LinkIndex: v0, IP: ip("2001:db8::7"), Address: "02:00:00:00:00:07", State: "noarp", Flags: []string{"extern_learn", "router"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				c := dialLive(t)
				pair(t, c)
				must(t, c,
					AddressAdd{Address{LinkIndex: v0, Prefix: prefix("192.0.2.1/24")}},
					AddressAdd{Address{LinkIndex: v0, Prefix: prefix("2001:db8::1/64"), NoDAD: true}},
				)
				must(t, c, tt.first...)
				want := tt.value
				if tt.reads != nil {
					want = tt.reads
				}
				before := everything(t, c)
				add, remove := writes(t, tt.value)
				must(t, c, add)
				added := missing(before, everything(t, c))
				if i := slices.IndexFunc(added, func(v any) bool { return cmp.Equal(v, want, ipTypes) }); i < 0 {
					t.Errorf("wrote\n%+v\nand read\n%+v", tt.value, added)
				}
				if _, ok := tt.value.(Neighbour); !ok { // that would be changed
					if errs := c.Do(add); len(errs) != 1 || !errors.Is(errs[0], fs.ErrExist) {
						t.Errorf("once more: %v, want %v", errs, fs.ErrExist)
					}
				}
				must(t, c, remove)
				if diff := cmp.Diff(before, everything(t, c), ipTypes); diff != "" {
					t.Errorf("after it was removed (-before +after):\n%s", diff)
				}
				if errs := c.Do(remove); len(errs) != 1 || !errors.Is(errs[0], fs.ErrNotExist) {
					t.Errorf("removed once more: %v, want %v", errs, fs.ErrNotExist)
				}
			})
		})
	}
}

// writes returns what makes a value and what removes it.
func writes(tb testing.TB, value any) (add, remove Request) {
	tb.Helper()
	switch v := value.(type) {
	case Address:
		return AddressAdd{v}, AddressDelete{v}
	case Route:
		return RouteAdd{Route: v}, RouteDelete{v}
	case Rule:
		return RuleAdd{v}, RuleDelete{v}
	case Neighbour:
		return NeighbourSet{Neighbour: v}, NeighbourDelete{v}
	}
	tb.Fatalf("no request for a %T", value)
	return nil, nil
}

// everything returns the addresses, routes, rules and neighbours of a namespace,
// in some order, once it has settled: the kernel makes the local routes of IPv6
// addresses in the background.
func everything(tb testing.TB, c *Client) []any {
	tb.Helper()
	for {
		all := list(tb, c)
		if !slices.ContainsFunc(all, func(v any) bool { return lacksRoute(v, all) }) {
			slices.SortFunc(all, func(a, b any) int { return strings.Compare(key(tb, a), key(tb, b)) })
			return all
		}
	}
}

// key orders values: by type, addresses first.
func key(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf("%T %s", v, b)
}

// lacksRoute reports whether v is an IPv6 address without its local route.
func lacksRoute(v any, all []any) bool {
	a, ok := v.(Address)
	return ok && a.Prefix.Addr().Is6() && !slices.ContainsFunc(all, func(v any) bool {
		r, ok := v.(Route)
		return ok && r.Type == "local" && r.Table == 255 && r.Dst.IsSingleIP() && r.Dst.Addr() == a.Prefix.Addr()
	})
}

func list(tb testing.TB, c *Client) []any {
	tb.Helper()
	addresses, err1 := c.Addresses()
	routes, err2 := c.Routes()
	rules, err3 := c.Rules()
	neighbours, err4 := c.Neighbours()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		tb.Fatal(err)
	}
	var all []any
	for _, a := range addresses {
		all = append(all, a)
	}
	for _, r := range routes {
		all = append(all, r)
	}
	for _, r := range rules {
		all = append(all, r)
	}
	for _, n := range neighbours {
		if n.State != "noarp" || n.Address != "" && n.IP.String() == "2001:db8::7" { // multicast groups
			all = append(all, n)
		}
	}
	return all
}

// missing returns what is in after and not in before.
func missing(before, after []any) []any {
	return slices.DeleteFunc(slices.Clone(after), func(v any) bool {
		return slices.ContainsFunc(before, func(w any) bool { return cmp.Equal(v, w, ipTypes) })
	})
}

// TestCopyNamespace reads all of one namespace, writes it into another, and holds
// that they are the same.
func TestCopyNamespace(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		prefix, ip := netip.MustParsePrefix, netip.MustParseAddr
		one := dialLive(t)
		v0, _ := pair(t, one)
		var requests []Request
		for i := range 8 {
			subnet := netip.AddrFrom4([4]byte{172, 16, byte(i), 2})
			subnet6 := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(i), 15: 2})
			gateway := netip.AddrFrom4([4]byte{172, 16, byte(i), 254})
			table := 100 + i
			requests = append(requests,
				LinkAdd{Name: "net" + string(rune('1'+i)), Kind: "macvlan", Mode: "bridge", Parent: v0.Index, Index: 200 + i, Up: true},
				AddressAdd{Address{LinkIndex: 200 + i, Prefix: netip.PrefixFrom(subnet, 24), Broadcast: SubnetBroadcast(netip.PrefixFrom(subnet, 24))}},
				AddressAdd{Address{LinkIndex: 200 + i, Prefix: netip.PrefixFrom(subnet6, 64), NoDAD: true}},
				RouteAdd{Route: Route{Dst: prefix("0.0.0.0/0"), Gateway: gateway, LinkIndex: 200 + i, Src: subnet, Table: table}},
				RouteAdd{Route: Route{Dst: prefix("::/0"), LinkIndex: 200 + i, Table: table}},
				RouteAdd{Route: Route{Dst: netip.PrefixFrom(subnet, 24).Masked(), LinkIndex: 200 + i, Src: subnet, Table: table}},
				RuleAdd{Rule{Src: netip.PrefixFrom(subnet, 32), Table: table, Priority: 1000 + i}},
				RuleAdd{Rule{Src: netip.PrefixFrom(subnet6, 128), Table: table, Priority: 1000 + i}},
				NeighbourSet{Neighbour: Neighbour{LinkIndex: 200 + i, IP: gateway, Address: "02:00:00:00:00:01"}},
			)
		}
		requests = append(requests, RouteAdd{Route: Route{Dst: prefix("10.0.0.0/8"), Type: "unreachable", Table: 5000}},
			RouteAdd{Route: Route{Dst: prefix("10.0.0.0/9"), Table: 5000, NextHops: []NextHop{
				{LinkIndex: 200, Gateway: ip("172.16.0.1"), Weight: 1}, {LinkIndex: 201, Gateway: ip("172.16.1.1"), Weight: 2},
			}}})
		must(t, one, requests...)

		ns := kerneltest.NewNetNS(t)
		two := dialIn(t, ns)
		must(t, two, LinkSet{Index: 1, Up: new(true)}) // before it is quiet, as the lo of one was
		within(t, ns, func() { quiet(t) })
		copyLinks(t, one, two)
		original := everything(t, one)
		must(t, two, copies(t, missing(everything(t, two), original))...)
		if diff := cmp.Diff(original, everything(t, two), ipTypes); diff != "" {
			t.Errorf("copy (-original +copy):\n%s", diff)
		}
	})
}

// within runs fn on a thread that is in a namespace and ends with it.
func within(t *testing.T, ns *os.File, fn func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			fn()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// copyLinks makes the links of one namespace in another, with the same indexes.
func copyLinks(t *testing.T, one, two *Client) {
	t.Helper()
	links, err := one.Links()
	if err != nil {
		t.Fatal(err)
	}
	must(t, two, LinkAdd{Name: "v0", Kind: "veth", Index: 100, Peer: VethPeer{Name: "v1", Index: 101}})
	must(t, two, LinkSet{Index: 100, Up: new(true)}, LinkSet{Index: 101, Up: new(true)})
	for _, l := range links {
		if l.Kind == "macvlan" {
			must(t, two, LinkAdd{
				Name: l.Name, Kind: l.Kind, Index: l.Index, Parent: l.ParentIndex, Mode: l.Mode,
				MTU: l.MTU, TxQueueLen: l.TxQueueLen, Group: l.Group, Up: l.Up,
			})
		}
	}
}

// copies returns requests for values: addresses with the routes that they bring,
// then the rest.
func copies(t *testing.T, values []any) []Request {
	t.Helper()
	var all []Request
	for _, v := range values {
		if r, ok := v.(Route); ok && r.Protocol == "kernel" {
			continue
		}
		add, _ := writes(t, v)
		all = append(all, add)
	}
	return all
}

// TestRouteReplaceLive replaces a route, and makes one where there is none.
func TestRouteReplaceLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		c := dialLive(t)
		v0, v1 := pair(t, c)
		for _, dst := range []string{"203.0.113.0/24", "2001:db8:2::/48"} {
			r := Route{Dst: netip.MustParsePrefix(dst), LinkIndex: v0.Index, Table: testTable, Priority: 5}
			must(t, c, RouteAdd{Route: r, Replace: true})
			r.LinkIndex = v1.Index
			must(t, c, RouteAdd{Route: r, Replace: true})
			if got := testRoutes(t, c); len(got) != 1 || got[0].LinkIndex != v1.Index {
				t.Errorf("%s: routes %+v, want one by link %d", dst, got, v1.Index)
			}
			must(t, c, RouteDelete{Route{Dst: r.Dst, Table: testTable}})
		}
	})
}

// TestRouteAppendLive makes a second route to a destination, once.
func TestRouteAppendLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		c := dialLive(t)
		v0, v1 := pair(t, c)
		dst := netip.MustParsePrefix("203.0.113.0/24")
		first, second := Route{Dst: dst, LinkIndex: v0.Index, Table: testTable}, Route{Dst: dst, LinkIndex: v1.Index, Table: testTable}
		must(t, c, RouteAdd{Route: first}, RouteAdd{Route: second, Append: true})
		if err := errors.Join(c.Do(RouteAdd{Route: second, Append: true})...); !errors.Is(err, fs.ErrExist) {
			t.Errorf("again: %v, want fs.ErrExist", err)
		}
		if got := testRoutes(t, c); len(got) != 2 || got[0].LinkIndex != v0.Index || got[1].LinkIndex != v1.Index {
			t.Errorf("routes %+v, want one by link %d and one by %d", got, v0.Index, v1.Index)
		}
	})
}

// TestProbeLive has the kernel look for neighbours of which one is there.
func TestProbeLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		here := dialLive(t)
		quiet(t)
		ns := kerneltest.NewNetNS(t)
		there := dialIn(t, ns)
		must(t, here, LinkAdd{Name: "v0", Kind: "veth", Index: 100, Up: true, Peer: VethPeer{Name: "v1", NetNS: int(ns.Fd()), Index: 100}})
		must(t, there, LinkSet{Index: 100, Up: new(true)})
		// To ask for a neighbour by itself, IPv6 needs a link-local address.
		must(t, here, AddressAdd{Address{LinkIndex: 100, Prefix: netip.MustParsePrefix("fe80::1/64"), NoDAD: true}})
		for _, family := range [][3]string{{"192.0.2.1/24", "192.0.2.2/24", "192.0.2.3"}, {"2001:db8::1/64", "2001:db8::2/64", "2001:db8::3"}} {
			mine, gateway := netip.MustParsePrefix(family[0]), netip.MustParsePrefix(family[1])
			nobody := netip.MustParseAddr(family[2])
			must(t, here, AddressAdd{Address{LinkIndex: 100, Prefix: mine, NoDAD: true}})
			must(t, there, AddressAdd{Address{LinkIndex: 100, Prefix: gateway, NoDAD: true}})
			events, err := Subscribe(nil, Neighbours)
			if err != nil {
				t.Fatal(err)
			}
			ask(t, "v0", "600") // the other side joins its multicast group when its kernel gets round to it
			must(t, here, NeighbourSet{Neighbour: Neighbour{LinkIndex: 100, IP: gateway.Addr()}, Use: true})
			awaitState(t, events, gateway.Addr(), "reachable")
			ask(t, "v0", "3")
			must(t, here, NeighbourSet{Neighbour: Neighbour{LinkIndex: 100, IP: nobody}, Use: true})
			awaitState(t, events, nobody, "failed")
			reachable := neighbour(t, here, gateway.Addr())
			must(t, here, NeighbourSet{Neighbour: Neighbour{LinkIndex: 100, IP: gateway.Addr()}, Use: true})
			if again := neighbour(t, here, gateway.Addr()); again.Address != reachable.Address || again.Address == "" {
				t.Errorf("probed again it is %+v, was %+v", again, reachable)
			}
			must(t, here, NeighbourDelete{Neighbour{LinkIndex: 100, IP: gateway.Addr()}})
			_ = events.Close()
		}
	})
}

// ask has neighbours of a link asked for so many times, ten times a second.
func ask(t *testing.T, link, times string) {
	t.Helper()
	for _, family := range []string{"ipv4", "ipv6"} {
		for file, value := range map[string]string{"retrans_time_ms": "100", "mcast_solicit": times} {
			if err := os.WriteFile("/proc/sys/net/"+family+"/neigh/"+link+"/"+file, []byte(value), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func awaitState(t *testing.T, s *Subscription, ip netip.Addr, state string) {
	t.Helper()
	for {
		events, err := s.Receive()
		if err != nil {
			t.Fatalf("waiting for %v to be %s: %v", ip, state, err)
		}
		for _, e := range events {
			switch {
			case e.Deleted || e.Neighbour.IP != ip:
			case e.Neighbour.State == state:
				return
			case e.Neighbour.State == "failed":
				t.Fatalf("%v is %+v, want it %s", ip, e.Neighbour, state)
			}
		}
	}
}

func neighbour(t *testing.T, c *Client, ip netip.Addr) Neighbour {
	t.Helper()
	all, err := c.Neighbours()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(n Neighbour) bool { return n.IP == ip })
	if i < 0 {
		t.Fatalf("no neighbour %v among %+v", ip, all)
	}
	return all[i]
}

func TestSubnetBroadcast(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"192.0.2.1/24": "192.0.2.255", "192.0.2.1/30": "192.0.2.3", "10.1.2.3/9": "10.127.255.255", "10.0.0.1/0": "255.255.255.255",
		"192.0.2.1/31": "invalid IP", "192.0.2.1/32": "invalid IP", "2001:db8::1/64": "invalid IP",
	} {
		if got := SubnetBroadcast(netip.MustParsePrefix(in)).String(); got != want {
			t.Errorf("broadcast of %s is %s, want %s", in, got, want)
		}
	}
	if got := SubnetBroadcast(netip.Prefix{}); got.IsValid() {
		t.Errorf("broadcast of nothing is %v", got)
	}
}
