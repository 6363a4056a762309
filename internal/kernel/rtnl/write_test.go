package rtnl

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// must makes changes that have to succeed.
func must(tb testing.TB, c *Client, requests ...Request) {
	tb.Helper()
	if err := errors.Join(c.Do(requests...)...); err != nil {
		tb.Fatal(err)
	}
}

func dialIn(tb testing.TB, ns *os.File) *Client {
	tb.Helper()
	c, err := Dial(&Config{NetNS: int(ns.Fd())})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func linkNamed(tb testing.TB, c *Client, name string) Link {
	tb.Helper()
	l, err := c.LinkByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// pair makes a veth pair, v0 and v1, that is up. Nothing sends or detects by
// itself: link-local addresses would come and go while tests look.
func pair(tb testing.TB, c *Client) (v0, v1 Link) {
	tb.Helper()
	quiet(tb)
	must(tb, c, LinkAdd{Name: "v0", Kind: "veth", Index: 100, Up: true, Peer: VethPeer{Name: "v1", Index: 101}},
		LinkSet{Index: 101, Up: new(true)})
	return linkNamed(tb, c, "v0"), linkNamed(tb, c, "v1")
}

func quiet(tb testing.TB) {
	tb.Helper()
	for _, name := range []string{"all", "default"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/addr_gen_mode", []byte("1"), 0); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestDoReports has changes of which some cannot be, more than fit one system
// call, and holds that each has its own error and that the others are made.
func TestDoReports(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		c := dialLive(t)
		v0, _ := pair(t, c)
		var requests []Request
		var want []error
		ip := netip.MustParseAddr("10.0.0.1")
		add := func(err error, r Request) { requests, want = append(requests, r), append(want, err) }
		for range 3 * batchRequests {
			a := AddressAdd{Address{LinkIndex: v0.Index, Prefix: netip.PrefixFrom(ip, 32)}}
			add(nil, a)
			add(fs.ErrExist, a)
			add(fs.ErrNotExist, LinkDelete{Index: 1 << 30})
			add(errInvalid, LinkAdd{Kind: "none"})
			ip = ip.Next()
		}
		errs := c.Do(requests...)
		for i, err := range errs {
			var refusal *Error
			switch {
			case errors.Is(want[i], errInvalid):
				if err == nil || errors.As(err, &refusal) {
					t.Errorf("request %d: error %v, want one that the kernel was not asked for", i, err)
				}
			case !errors.Is(err, want[i]) || err != nil && !errors.As(err, &refusal):
				t.Errorf("request %d: error %v, want %v", i, err, want[i])
			}
		}
		all, err := c.Addresses()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(slices.DeleteFunc(all, func(a Address) bool { return a.LinkIndex != v0.Index })); n != 3*batchRequests {
			t.Errorf("%d addresses, want %d", n, 3*batchRequests)
		}
		if errs := c.Do(); errs != nil {
			t.Errorf("nothing to do: %v", errs)
		}
		if errs := c.Do(LinkSet{Index: v0.Index, MTU: 1400}); errs != nil {
			t.Errorf("all done: %v, want nil", errs)
		}
	})
}

var errInvalid = errors.New("not sent")

// TestDoSplits has a socket with room for a few requests only.
func TestDoSplits(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		v0, _ := pair(t, dialLive(t))
		s, port, err := openSocket(nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.conn.SetWriteBuffer(1); err != nil { // the kernel makes it 4,608
			t.Fatal(err)
		}
		c := &Client{conn: netlink.NewConn(s, port), socket: s}
		defer func() { _ = c.Close() }()
		var hops []NextHop
		for range 60 {
			hops = append(hops, NextHop{LinkIndex: v0.Index, Weight: 1})
		}
		var requests []Request
		for i := range 20 {
			dst := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)
			requests = append(requests, RouteAdd{Route: Route{Dst: dst, Table: testTable, NextHops: hops}})
		}
		hops = slices.Repeat(hops, 10)
		tooLong := RouteAdd{Route: Route{Dst: netip.MustParsePrefix("10.1.0.0/16"), NextHops: hops}}
		errs := c.Do(append(requests, tooLong)...)
		for i, err := range errs {
			if i < len(requests) && err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		}
		if err := errs[len(requests)]; !errors.Is(err, unix.EMSGSIZE) || errors.Is(err, ErrUnanswered) {
			t.Errorf("request that is too long: %v, want %v", err, unix.EMSGSIZE)
		}
		if n := len(testRoutes(t, c)); n != len(requests) {
			t.Errorf("%d routes, want %d", n, len(requests))
		}
	})
}

// testTable is where tests make routes that are not for themselves.
const testTable = 1000

// testRoutes returns the routes of testTable.
func testRoutes(tb testing.TB, c *Client) []Route {
	tb.Helper()
	all, err := c.Routes()
	if err != nil {
		tb.Fatal(err)
	}
	return slices.DeleteFunc(all, func(r Route) bool { return r.Table != testTable })
}

// TestDoLosesAnswers has a socket with no room for the answers: what is not
// known is said to be, and the next requests get their own answers.
func TestDoLosesAnswers(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		v0, _ := pair(t, dialLive(t))
		s, port, err := openSocket(nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.conn.SetReadBuffer(1); err != nil { // the kernel makes it 2,304
			t.Fatal(err)
		}
		c := &Client{conn: netlink.NewConn(s, port), socket: s}
		defer func() { _ = c.Close() }()
		var requests []Request
		ip := netip.MustParseAddr("10.0.0.1")
		for range batchRequests {
			requests = append(requests, AddressAdd{Address{LinkIndex: v0.Index, Prefix: netip.PrefixFrom(ip, 32)}})
			ip = ip.Next()
		}
		unknown := 0
		for i, err := range c.Do(requests...) {
			switch {
			case errors.Is(err, ErrUnanswered) && errors.Is(err, unix.ENOBUFS):
				unknown++
			case err != nil:
				t.Errorf("request %d: %v, want %v", i, err, ErrUnanswered)
			}
		}
		if unknown == 0 || unknown == len(requests) {
			t.Errorf("%d of %d have no answer, want some", unknown, len(requests))
		}
		for i, r := range requests {
			if errs := c.Do(r); len(errs) != 1 || !errors.Is(errs[0], fs.ErrExist) {
				t.Fatalf("request %d once more: %v, want %v", i, errs, fs.ErrExist)
			}
		}
	})
}

// TestDoUnanswered has a request among others that the kernel gives no answer to:
// nothing waits for that, and the others have theirs.
func TestDoUnanswered(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		c := dialLive(t)
		v0, _ := pair(t, c)
		changes := make([]change, 3)
		var todo []*change
		for i := range changes {
			prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 32)
			changes[i].prepare(AddressAdd{Address{LinkIndex: v0.Index, Prefix: prefix}})
			todo = append(todo, &changes[i])
		}
		changes[1].message.Header.Flags &^= netlink.Acknowledge
		c.do(todo)
		if changes[0].err != nil || !errors.Is(changes[1].err, ErrUnanswered) || changes[2].err != nil {
			t.Errorf("errors %v, %v, %v; want %v of the second", changes[0].err, changes[1].err, changes[2].err, ErrUnanswered)
		}
		if _, err := c.Links(); err != nil {
			t.Errorf("links after that: %v", err)
		}
	})
}

// TestDoFails has sockets that do not work.
func TestDoFails(t *testing.T) {
	t.Parallel()
	c, err := Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for i, err := range c.Do(LinkDelete{Index: 1 << 30}, LinkDelete{Name: "none"}) {
		if !errors.Is(err, fs.ErrClosed) || errors.Is(err, ErrUnanswered) {
			t.Errorf("closed: request %d: %v, want %v", i, err, fs.ErrClosed)
		}
	}
}

// TestDoElsewhere has a connection that is no socket of the kernel, which gets
// one request at a time.
func TestDoElsewhere(t *testing.T) {
	t.Parallel()
	const flags = netlink.Request | netlink.Acknowledge
	remove := func(index int32, errno unix.Errno) exchange {
		body := linkBody(index)
		body[2] = 0 // no type
		e := exchange{typ: unix.RTM_DELLINK, flags: flags, body: body, errno: errno}
		if errno == 0 {
			e.answer = []netlink.Message{message(netlink.Error, 0, make([]byte, 20))}
		}
		return e
	}
	c := serve(t, remove(5, 0), remove(6, unix.EBUSY), remove(7, 0), remove(8, unix.EPERM))
	errs := c.Do(LinkDelete{Index: 5}, LinkDelete{Index: 6}, LinkDelete{Index: 7}, LinkDelete{Index: 8})
	want := []string{
		"", "delete link 6: RTM_DELLINK: device or resource busy: because",
		"", "delete link 8: RTM_DELLINK: operation not permitted: because",
	}
	var got []string
	for _, err := range errs {
		got = append(got, errorText(err))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if !errors.Is(errs[3], fs.ErrPermission) {
		t.Errorf("error %v, want %v", errs[3], fs.ErrPermission)
	}
}

// TestDoMisanswered has a kernel that answers something else.
func TestDoMisanswered(t *testing.T) {
	t.Parallel()
	body := linkBody(5)
	body[2] = 0
	for name, answers := range map[string][]netlink.Message{
		"a link":   {linkMessage(5, "eth0")},
		"too much": {message(netlink.Error, 0, make([]byte, 20)), message(netlink.Error, 0, make([]byte, 20))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, exchange{
				typ: unix.RTM_DELLINK, flags: netlink.Request | netlink.Acknowledge, body: body, answer: answers,
			})
			errs := c.Do(LinkDelete{Index: 5})
			if len(errs) != 1 || !errors.Is(errs[0], ErrUnanswered) {
				t.Errorf("errors %v, want %v", errs, ErrUnanswered)
			}
		})
	}
}

// TestDoConcurrently mixes changes and lists on one client; it is of most use
// with -race.
func TestDoConcurrently(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		c := dialLive(t)
		v0, _ := pair(t, c)
		var wg sync.WaitGroup
		for i := range 8 {
			address := AddressAdd{Address{LinkIndex: v0.Index, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 32)}}
			wg.Go(func() {
				for range 20 {
					errs := c.Do(address, address, AddressDelete(address), AddressDelete(address))
					if len(errs) != 4 || errs[0] != nil || !errors.Is(errs[1], fs.ErrExist) || errs[2] != nil || !errors.Is(errs[3], fs.ErrNotExist) {
						t.Errorf("errors %v", errs)
					}
				}
			})
			wg.Go(func() {
				for range 20 {
					if links, err := c.Links(); err != nil || len(links) != 3 {
						t.Errorf("%d links, %v; want 3", len(links), err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// TestNotPermitted makes changes to a namespace that the caller has no rights in.
func TestNotPermitted(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		const nobody = 65534
		runtime.LockOSThread() // never unlocked: the thread, which alone is another user's, ends with the test
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			t.Fatalf("becoming another user: %v", errno)
		}
	}
	c := dialLive(t)
	requests := []Request{
		LinkAdd{Name: "x0", Kind: "bridge"},
		LinkSet{Index: 1, MTU: 1000},
		LinkDeleteGroup{Group: 1 << 30},
		AddressAdd{Address{LinkIndex: 1, Prefix: netip.MustParsePrefix("127.9.9.9/32")}},
	}
	errs := c.Do(requests...)
	for i := range requests {
		if errs == nil || !errors.Is(errs[i], fs.ErrPermission) {
			t.Errorf("%s: %v, want %v", requests[i].describe(), errs, fs.ErrPermission)
		}
	}
}

// TestDoInAnotherNamespace writes by a client of another namespace.
func TestDoInAnotherNamespace(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		here := dialLive(t)
		there := dialIn(t, kerneltest.NewNetNS(t))
		must(t, there, LinkAdd{Name: "br0", Kind: "bridge", Index: 50}, LinkSet{Index: 1, Up: new(true)},
			RouteAdd{Route: Route{Dst: netip.MustParsePrefix("10.0.0.0/8"), Type: "blackhole", Table: testTable}})
		if l := linkNamed(t, there, "br0"); l.Index != 50 {
			t.Errorf("br0 is %+v", l)
		}
		if n := len(testRoutes(t, there)); n != 1 {
			t.Errorf("%d routes there, want 1", n)
		}
		if _, err := here.LinkByName("br0"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("br0 here: %v, want %v", err, fs.ErrNotExist)
		}
		if n := len(testRoutes(t, here)); n != 0 {
			t.Errorf("%d routes here, want none", n)
		}
	})
}

// TestInvalid holds what is refused without asking the kernel, and in which
// words.
func TestInvalid(t *testing.T) {
	t.Parallel()
	prefix, prefix6 := netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("2001:db8::1/64")
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	tests := []struct {
		request Request
		want    string
	}{
		{LinkAdd{Name: "x", Kind: "vxlan"}, `add vxlan x: kind "vxlan": want one of macvlan, ipvlan, vlan, bond, veth, dummy, bridge`},
		{LinkAdd{Kind: "dummy"}, `add dummy : name "": 0 bytes, want 1 to 15`},
		{LinkAdd{Name: "net%d", Kind: "dummy"}, `add dummy net%d: name "net%d": want no %, /, :, space or control character in it, and neither . nor ..`},
		{LinkAdd{Name: strings.Repeat("x", 16), Kind: "dummy"}, `add dummy xxxxxxxxxxxxxxxx: name "xxxxxxxxxxxxxxxx": 16 bytes, want 1 to 15`},
		{LinkAdd{Name: "x", Kind: "macvlan", Mode: "bridge", NetNS: 5}, `add macvlan x in another network namespace: parent 0: want the index of a link, 1 to 2147483647`},
		{LinkAdd{Name: "x", Kind: "macvlan", Parent: 5, Mode: "l2"}, `add macvlan x on link 5: mode "l2": want "private", "vepa", "bridge", "passthru", "source" or a number, 0 to 4294967295`},
		{LinkAdd{Name: "x", Kind: "ipvlan", Parent: 5}, `add ipvlan x on link 5: mode "": want "l2", "l3", "l3s" or a number, 0 to 65535`},
		{LinkAdd{Name: "x", Kind: "ipvlan", Parent: 5, Mode: "l2", MAC: mac}, `add ipvlan x on link 5: MAC: want none for kind ipvlan`},
		{LinkAdd{Name: "x", Kind: "macvlan", Parent: 5, Mode: "passthru", MAC: mac}, `add macvlan x on link 5: MAC: want none for a macvlan of mode passthru, which has its parent's`},
		{LinkAdd{Name: "x", Kind: "vlan", Parent: 5, VLANID: 4095}, `add vlan x on link 5: VLAN 4095: want 1 to 4094`},
		{LinkAdd{Name: "x", Kind: "vlan", Parent: 5, VLANID: 7, Mode: "bridge"}, `add vlan x on link 5: mode: want none for kind vlan`},
		{LinkAdd{Name: "x", Kind: "dummy", MTU: -1}, `add dummy x: MTU -1: want 0 to 4294967295`},
		{LinkAdd{Name: "x", Kind: "veth"}, `add veth x: name of the peer "": 0 bytes, want 1 to 15`},
		{LinkAdd{Name: "x", Kind: "veth", NetNS: 3, Peer: VethPeer{Name: "y/"}}, `add veth x in another network namespace, peer y/: name of the peer "y/": want no %, /, :, space or control character in it, and neither . nor ..`},
		{LinkAdd{Name: "x", Kind: "bond", BondOptions: map[string]string{"lacp_rate": "often"}}, `add bond x: bond option lacp_rate "often": want "slow", "fast" or a number, 0 to 255`},
		{LinkAdd{Name: "x", Kind: "bond", BondOptions: map[string]string{"miimon": "-1"}}, `add bond x: bond option miimon "-1": want a number, 0 to 4294967295`},
		{LinkAdd{Name: "x", Kind: "bond", BondOptions: map[string]string{"arp_ip_target": "192.0.2.1,fe80::1"}}, `add bond x: bond option arp_ip_target, address 2: fe80::1: want one of family inet`},
		{LinkAdd{Name: "x", Kind: "bond", BondOptions: map[string]string{"ad_actor_system": "x"}}, `add bond x: bond option ad_actor_system "x": want a MAC address`},
		{LinkSet{MTU: 9000, MAC: mac, Up: new(true), Name: "net1", Group: new(7), Master: new(0), TxQueueLen: new(9), NetNS: 3}, `set link 0 to another network namespace MAC 02:00:00:00:00:01 MTU 9000 group 7 name net1 master 0 up transmit queue length 9: index 0: want the index of a link, 1 to 2147483647`},
		{LinkDelete{}, `delete link 0: index 0: want the index of a link, 1 to 2147483647`},
		{LinkDelete{Index: 5, Name: "x"}, `delete link x: index 5 and name "x": want one of the two`},
		{LinkDeleteGroup{}, `delete links of group 0: group 0: want 1 to 4294967295`},
		{AddressAdd{Address{LinkIndex: 5}}, `add address invalid Prefix to link 5: address: want an address`},
		{AddressAdd{Address{Prefix: prefix}}, `add address 192.0.2.1/24 to link 0: link 0: want the index of a link, 1 to 2147483647`},
		{AddressAdd{Address{LinkIndex: 5, Prefix: prefix, Scope: "near"}}, `add address 192.0.2.1/24 to link 5: scope "near": want "global", "site", "link", "host", "nowhere" or a number, 0 to 255`},
		{AddressAdd{Address{LinkIndex: 5, Prefix: prefix6, Broadcast: prefix.Addr()}}, `add address 2001:db8::1/64 to link 5: broadcast 192.0.2.1: want none for IPv6`},
		{AddressAdd{Address{LinkIndex: 5, Prefix: prefix6, Label: "x"}}, `add address 2001:db8::1/64 to link 5: label "x": want none for IPv6`},
		{AddressAdd{Address{LinkIndex: 5, Prefix: prefix, Peer: prefix}}, `add address 192.0.2.1/24 to link 5: address 192.0.2.1/24 with a peer: want it of its own length, the subnet's goes with the peer`},
		{AddressDelete{Address{LinkIndex: 5, Prefix: netip.MustParsePrefix("192.0.2.1/32"), Peer: prefix}}, `delete address 192.0.2.1/32 from link 5: peer 192.0.2.1/24: want another than the address itself`},
		{RouteAdd{}, `add route invalid Prefix in table 254: destination: want a prefix; 0.0.0.0/0 or ::/0 for a default route`},
		{RouteAdd{Replace: true, Route: Route{Dst: prefix.Masked(), Gateway: prefix.Addr(), LinkIndex: 5, Table: -1}}, `replace route 192.0.2.0/24 via 192.0.2.1 on link 5 in table -1: table -1: want 0 to 4294967295`},
		{RouteAdd{Route: Route{Dst: prefix.Masked(), Gateway: netip.MustParseAddr("fe80::1%eth0")}}, `add route 192.0.2.0/24 via fe80::1%eth0 in table 254: gateway fe80::1%eth0: want it without a zone; which link it is for the link index says`},
		{RouteAdd{Route: Route{Dst: prefix.Masked(), Src: prefix6.Addr(), Type: "blackhole"}}, `add blackhole route 192.0.2.0/24 in table 254: source address 2001:db8::1: want one of family inet`},
		{RouteAdd{Route: Route{Dst: prefix.Masked(), NextHops: []NextHop{{}}}}, `add route 192.0.2.0/24 in table 254: next hop 0: weight 0: want 1 to 256`},
		{RouteDelete{Route{Dst: prefix.Masked(), Priority: -1}}, `delete route 192.0.2.0/24 in table 254: priority -1: want 0 to 4294967295`},
		{RuleAdd{Rule{Table: 100}}, `add rule of priority 0 for table 100: family "": want "inet" or "inet6"`},
		{RuleAdd{Rule{Src: prefix, Mark: 16, Dst: prefix, Invert: true}}, `add inet rule of priority 0 not from 192.0.2.1/24 to 192.0.2.1/24 mark 0x10: table 0: want that to look up, 1 or more`},
		{RuleAdd{Rule{Family: "inet", Src: prefix6, Table: 100}}, `add inet rule of priority 0 from 2001:db8::1/64 for table 100: source 2001:db8::1: want one of family inet`},
		{RuleAdd{Rule{Family: "inet", Table: 100, Unknown: []uint16{99}}}, `add inet rule of priority 0 for table 100: attributes [99]: want none without a name`},
		{RuleDelete{Rule{Family: "inet", SrcPorts: &Range{1, 70000}}}, `delete inet rule of priority 0: source ports 1 to 70000: want 0 to 65535`},
		{NeighbourSet{Neighbour: Neighbour{LinkIndex: 5}}, `set neighbour invalid IP on link 5: address: want an address`},
		{NeighbourSet{Neighbour: Neighbour{LinkIndex: 5, IP: prefix.Addr(), Address: "0:1"}}, `set neighbour 192.0.2.1 on link 5: link-layer address "0:1": want bytes in hex, aa:bb:…`},
		{NeighbourSet{Neighbour: Neighbour{LinkIndex: 5, IP: prefix.Addr(), Flags: []string{"friend"}}}, `set neighbour 192.0.2.1 on link 5: flags: "friend": want "use", "self", "master", "proxy", "extern_learn", "offloaded", "sticky", "router", "managed", "locked", "extern_valid" or a number, 0 to 4294967295`},
		{NeighbourSet{Use: true, Neighbour: Neighbour{IP: prefix.Addr()}}, `probe neighbour 192.0.2.1 on link 0: link 0: want the index of a link, 1 to 2147483647`},
		{NeighbourDelete{Neighbour{IP: prefix.Addr()}}, `delete neighbour 192.0.2.1 on link 0: link 0: want the index of a link, 1 to 2147483647`},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			errs := serve(t).Do(tt.request)
			if len(errs) != 1 || errorText(errs[0]) != tt.want {
				t.Errorf("error %v\nwant  %s", errs, tt.want)
			}
		})
	}
}

// TestUnknownBondOption has an error that lists all that there are.
func TestUnknownBondOption(t *testing.T) {
	t.Parallel()
	errs := serve(t).Do(LinkAdd{Name: "x", Kind: "bond", BondOptions: map[string]string{"miimonn": "100"}})
	if err := errors.Join(errs...); err == nil || !strings.HasPrefix(err.Error(), `add bond x: bond option "miimonn": want one of active_slave, `) {
		t.Errorf("error %v", err)
	}
}
