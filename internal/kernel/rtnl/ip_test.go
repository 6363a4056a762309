package rtnl

import (
	"cmp"
	"encoding/json"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
)

// furnish makes some of everything in the namespace. Link-local addresses and
// their detection would change the picture while it is looked at.
const furnish = `
ip link add name v0 alias "to the rack" type veth peer name v1
ip link property add dev v0 altname a-name-longer-than-15-bytes
ip link add link v0 name m0 type macvlan mode bridge
ip link add br0 type bridge
ip link set v1 master br0
ip link set v0 up
ip link set v1 up
ip link set m0 up mtu 1400 group 77
ip addr add 192.0.2.1/24 brd + dev v0 label v0:rail
ip addr add 198.51.100.1 peer 198.51.100.2/30 dev m0
ip addr add 2001:db8::1/64 dev v0 nodad preferred_lft 0
ip addr add 2001:db8:1::1 peer 2001:db8:1::2 dev m0 nodad noprefixroute
ip route add default via 192.0.2.254 dev v0 table 1000 metric 100 mtu 4200 src 192.0.2.1 proto static
ip route add 203.0.113.0/24 nexthop via 192.0.2.253 dev v0 weight 3 nexthop via inet6 fe80::1 dev m0 onlink
ip route add blackhole 203.0.112.0/24
ip nexthop add id 7 via 192.0.2.252 dev v0
ip route add 203.0.111.0/24 nhid 7
ip -6 route add 2001:db8:2::/48 via 2001:db8::2 dev v0 pref high
ip rule add priority 100 from 192.0.2.0/24 to 203.0.113.0/24 iif v0 oif m0 fwmark 0x10/0xf0 sport 1000-2000 dport 4791 table 1000
ip rule add priority 101 not from 198.51.100.0/24 blackhole
ip rule add priority 102 goto 32766
ip rule add priority 103 lookup main suppress_prefixlength 0
ip -6 rule add priority 104 from 2001:db8::/32 lookup 1000
ip neigh add 192.0.2.7 lladdr 02:00:00:00:00:07 dev v0 nud permanent router
ip neigh add 2001:db8::7 lladdr 02:00:00:00:00:08 dev v0 nud stale
`

// TestAgainstIP compares what this package reads with what iproute2 does.
func TestAgainstIP(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ip"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("iproute2 is needed in CI: %v", err)
		}
		t.Skipf("nothing to compare with: %v; install iproute2", err)
	}
	kerneltest.NetNS(t, func() {
		for _, name := range []string{"all", "default"} {
			file := "/proc/sys/net/ipv6/conf/" + name + "/addr_gen_mode"
			if err := os.WriteFile(file, []byte("1"), 0); err != nil {
				t.Fatal(err)
			}
		}
		for line := range strings.Lines(strings.TrimSpace(furnish)) {
			if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
				t.Fatalf("%s%v\n%s", line, err, out)
			}
		}
		c := dialLive(t)
		names := make(map[string]int)
		links, err := c.Links()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			names[l.Name] = l.Index
		}
		compare(t, "links", c.Links, func() []Link { return ipLinks(t, names) })
		compare(t, "addresses", c.Addresses, func() []Address { return ipAddresses(t) })
		compare(t, "routes", c.Routes, func() []Route { return append(ipRoutes(t, "-4", names), ipRoutes(t, "-6", names)...) })
		compare(t, "rules", c.Rules, func() []Rule { return append(ipRules(t, "-4"), ipRules(t, "-6")...) })
		resolved := func() ([]Neighbour, error) { // ip leaves out multicast groups
			all, err := c.Neighbours()
			return slices.DeleteFunc(all, func(n Neighbour) bool { return n.State == "noarp" }), err
		}
		compare(t, "neighbours", resolved, func() []Neighbour { return ipNeighbours(t, names) })
	})
}

// compare compares two lists once the namespace has settled: links come up in
// the background.
func compare[T any](t *testing.T, what string, ours func() ([]T, error), theirs func() []T) {
	t.Helper()
	for {
		before, err := ours()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		want := theirs()
		after, err := ours()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !gocmp.Equal(before, after, ipTypes) {
			continue
		}
		if len(want) == 0 {
			t.Errorf("%s: ip lists none", what)
		}
		if diff := gocmp.Diff(want, after, ipTypes); diff != "" {
			t.Errorf("%s (-ip +ours):\n%s", what, diff)
		}
		return
	}
}

// ipJSON decodes what ip prints.
func ipJSON[T any](t *testing.T, args ...string) []T {
	t.Helper()
	out, err := exec.Command("ip", append([]string{"-j", "-d"}, args...)...).Output()
	if err != nil {
		t.Fatalf("ip %v: %v", args, err)
	}
	var list []T
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("ip %v: %v\n%s", args, err, out)
	}
	return list
}

func ipLinks(t *testing.T, names map[string]int) []Link {
	t.Helper()
	types := map[string]int{"loopback": 772, "ether": 1}
	var links []Link
	for _, l := range ipJSON[struct {
		Index     int      `json:"ifindex"`
		Name      string   `json:"ifname"`
		Parent    string   `json:"link"`
		Master    string   `json:"master"`
		Flags     []string `json:"flags"`
		AltNames  []string `json:"altnames"`
		Alias     string   `json:"ifalias"`
		MTU       int      `json:"mtu"`
		MinMTU    int      `json:"min_mtu"`
		MaxMTU    int      `json:"max_mtu"`
		Queue     int      `json:"txqlen"`
		Group     string   `json:"group"`
		OperState string   `json:"operstate"`
		Type      string   `json:"link_type"`
		Address   string   `json:"address"`
		Info      struct {
			Kind string `json:"info_kind"`
			Data struct {
				Mode string `json:"mode"`
			} `json:"info_data"`
		} `json:"linkinfo"`
	}](t, "link", "show") {
		links = append(links, Link{
			Index: l.Index, Name: l.Name, AltNames: l.AltNames, Alias: l.Alias, Kind: l.Info.Kind,
			Type: types[l.Type], Address: l.Address,
			Up: slices.Contains(l.Flags, "UP"), Running: slices.Contains(l.Flags, "LOWER_UP"),
			OperState: strings.ToLower(l.OperState), MTU: l.MTU, MinMTU: l.MinMTU, MaxMTU: l.MaxMTU, TxQueueLen: l.Queue,
			Group: ipGroup(t, l.Group), ParentIndex: names[l.Parent], MasterIndex: names[l.Master], Mode: l.Info.Data.Mode,
		})
	}
	return links
}

func ipAddresses(t *testing.T) []Address {
	t.Helper()
	var addresses, v6 []Address
	for _, l := range ipJSON[struct {
		Index     int `json:"ifindex"`
		Addresses []struct {
			Family     string     `json:"family"`
			Local      netip.Addr `json:"local"`
			Peer       netip.Addr `json:"address"`
			Bits       int        `json:"prefixlen"`
			Scope      string     `json:"scope"`
			Label      string     `json:"label"`
			Deprecated bool       `json:"deprecated"`
			Broadcast  netip.Addr `json:"broadcast"`
			NoDAD      bool       `json:"nodad"`
			NoRoute    bool       `json:"noprefixroute"`
			Valid      uint32     `json:"valid_life_time"`
		} `json:"addr_info"`
	}](t, "address", "show") {
		for _, a := range l.Addresses {
			address := Address{
				LinkIndex: l.Index, Prefix: netip.PrefixFrom(a.Local, a.Bits),
				Label: a.Label, Scope: a.Scope, Deprecated: a.Deprecated, Broadcast: a.Broadcast, NoDAD: a.NoDAD, NoPrefixRoute: a.NoRoute,
				Dynamic: a.Valid != math.MaxUint32,
			}
			if a.Peer.IsValid() {
				address.Prefix = netip.PrefixFrom(a.Local, a.Local.BitLen())
				address.Peer = netip.PrefixFrom(a.Peer, a.Bits)
			}
			if a.Family == "inet6" {
				v6 = append(v6, address)
			} else {
				addresses = append(addresses, address)
			}
		}
	}
	return append(addresses, v6...)
}

func ipRoutes(t *testing.T, family string, names map[string]int) []Route {
	t.Helper()
	type hop struct {
		Gateway netip.Addr `json:"gateway"`
		Via     struct {
			Host netip.Addr `json:"host"`
		} `json:"via"`
		Link   string   `json:"dev"`
		Weight int      `json:"weight"`
		Flags  []string `json:"flags"`
	}
	var routes []Route
	for _, r := range ipJSON[struct {
		hop
		Type     string     `json:"type"`
		Dst      string     `json:"dst"`
		Table    string     `json:"table"`
		Protocol string     `json:"protocol"`
		Scope    string     `json:"scope"`
		Src      netip.Addr `json:"prefsrc"`
		Metric   int        `json:"metric"`
		Metrics  []struct {
			MTU int `json:"mtu"`
		} `json:"metrics"`
		NextHopID  int    `json:"nhid"`
		Preference string `json:"pref"`
		Hops       []hop  `json:"nexthops"`
	}](t, family, "route", "show", "table", "all") {
		route := Route{
			Table: ipTable(t, r.Table), Type: r.Type, Dst: ipPrefix(t, family, r.Dst), Protocol: r.Protocol, Scope: r.Scope,
			Src: r.Src, Gateway: cmp.Or(r.Gateway, r.Via.Host), LinkIndex: names[r.Link], Priority: r.Metric,
			NextHopID: r.NextHopID, Preference: r.Preference, OnLink: slices.Contains(r.Flags, "onlink"),
			Dead: slices.Contains(r.Flags, "dead"), LinkDown: slices.Contains(r.Flags, "linkdown"),
		}
		for _, m := range r.Metrics {
			route.MTU = m.MTU
		}
		for _, h := range r.Hops {
			route.NextHops = append(route.NextHops, NextHop{
				LinkIndex: names[h.Link], Gateway: cmp.Or(h.Gateway, h.Via.Host), Weight: h.Weight,
				OnLink: slices.Contains(h.Flags, "onlink"), Dead: slices.Contains(h.Flags, "dead"), LinkDown: slices.Contains(h.Flags, "linkdown"),
			})
		}
		routes = append(routes, route)
	}
	return routes
}

func ipRules(t *testing.T, family string) []Rule {
	t.Helper()
	var rules []Rule
	for _, r := range ipJSON[struct {
		Priority  int     `json:"priority"`
		Not       present `json:"not"`
		Src       string  `json:"src"`
		SrcBits   int     `json:"srclen"`
		Dst       string  `json:"dst"`
		DstBits   int     `json:"dstlen"`
		IIF       string  `json:"iif"`
		OIF       string  `json:"oif"`
		Mark      string  `json:"fwmark"`
		Mask      string  `json:"fwmask"`
		SportMin  uint32  `json:"sport_start"`
		SportMax  uint32  `json:"sport_end"`
		Dport     uint32  `json:"dport"`
		Table     string  `json:"table"`
		Goto      int     `json:"goto"`
		Action    string  `json:"action"`
		MinPrefix *int    `json:"suppress_prefixlen"`
		Protocol  string  `json:"protocol"`
	}](t, family, "rule", "show") {
		rule := Rule{
			Family: "inet", Priority: r.Priority, Invert: bool(r.Not), IIF: r.IIF, OIF: r.OIF, Mark: ipMark(t, r.Mark), MarkMask: ipMark(t, r.Mask),
			Action: r.Action, Goto: r.Goto, SuppressPrefixLength: r.MinPrefix, Protocol: r.Protocol,
		}
		if family == "-6" {
			rule.Family = "inet6"
		}
		if r.Src != "all" {
			rule.Src = netip.PrefixFrom(netip.MustParseAddr(r.Src), r.SrcBits)
		}
		if r.Dst != "" {
			rule.Dst = netip.PrefixFrom(netip.MustParseAddr(r.Dst), r.DstBits)
		}
		if r.SportMax != 0 {
			rule.SrcPorts = &Range{r.SportMin, r.SportMax}
		}
		if r.Dport != 0 {
			rule.DstPorts = &Range{r.Dport, r.Dport}
		}
		switch {
		case r.Table != "":
			rule.Action, rule.Table = "lookup", ipTable(t, r.Table)
		case r.Goto != 0:
			rule.Action = "goto"
		}
		rules = append(rules, rule)
	}
	return rules
}

func ipNeighbours(t *testing.T, names map[string]int) []Neighbour {
	t.Helper()
	var neighbours []Neighbour
	for _, n := range ipJSON[struct {
		IP      netip.Addr `json:"dst"`
		Link    string     `json:"dev"`
		Address string     `json:"lladdr"`
		State   []string   `json:"state"`
		Router  present    `json:"router"`
	}](t, "neighbour", "show") {
		neighbour := Neighbour{
			LinkIndex: names[n.Link], IP: n.IP, Address: n.Address,
			State: strings.ToLower(strings.Join(n.State, " ")),
		}
		if n.Router {
			neighbour.Flags = []string{"router"}
		}
		neighbours = append(neighbours, neighbour)
	}
	return neighbours
}

// present is a key that ip prints, with null, or does not.
type present bool

func (p *present) UnmarshalJSON([]byte) error {
	*p = true
	return nil
}

// ipTable returns the number of a table, which ip knows names for.
func ipTable(t *testing.T, table string) int {
	t.Helper()
	names := map[string]int{"default": 253, "main": 254, "local": 255}
	if n, ok := names[table]; ok {
		return n
	}
	n, err := strconv.Atoi(table)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ipGroup returns the number of a group, which ip knows a name for.
func ipGroup(t *testing.T, group string) int {
	t.Helper()
	if group == "default" {
		return 0
	}
	n, err := strconv.Atoi(group)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ipPrefix returns a destination, of which ip leaves out what goes without saying.
func ipPrefix(t *testing.T, family, dst string) netip.Prefix {
	t.Helper()
	if dst == "default" {
		dst = map[string]string{"-4": "0.0.0.0/0", "-6": "::/0"}[family]
	}
	if addr, err := netip.ParseAddr(dst); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen())
	}
	p, err := netip.ParsePrefix(dst)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ipMark returns a mark, which ip writes in hex, or not at all.
func ipMark(t *testing.T, s string) uint32 {
	t.Helper()
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}
