package routing

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"railhead/internal/policy"
)

// check wants what holds for every Result.
func check(tb testing.TB, pod Pod, r Result) {
	tb.Helper()
	checkTables(tb, r)
	checkRoutes(tb, r)
	checkDefaults(tb, pod, r)
	shuffled := pod
	shuffled.Interfaces = slices.Clone(pod.Interfaces)
	for seed := range uint64(3) {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled.Interfaces), func(a, b int) {
			shuffled.Interfaces[a], shuffled.Interfaces[b] = shuffled.Interfaces[b], shuffled.Interfaces[a]
		})
		again, err := Plan(shuffled)
		if err != nil {
			tb.Fatalf("shuffled: %v", err)
		}
		if diff := gocmp.Diff(render(r), render(again)); diff != "" {
			tb.Fatalf("(-ordered +shuffled):\n%s", diff)
		}
	}
}

// checkTables: a table is of one interface, rules lead to it from that one's
// addresses only, and each leads to routes of its family.
func checkTables(tb testing.TB, r Result) {
	tb.Helper()
	owner := map[uint32]string{}
	for _, l := range r.Links {
		if l.Table != 0 && owner[l.Table] != "" {
			tb.Errorf("table %d is of %s and of %s", l.Table, owner[l.Table], l.Owner)
		}
		owner[l.Table] = l.Owner
	}
	for _, rule := range r.Pod.Rules {
		if rule.Table != tableAnswers && owner[rule.Table] != rule.Owner {
			tb.Errorf("rule %+v leads to the table of %q", rule, owner[rule.Table])
		}
		if rule.From.IsValid() == (rule.Mask != 0) {
			tb.Errorf("rule %+v is for everything, or for both an address and a mark", rule)
		}
		if !slices.ContainsFunc(r.Pod.Routes, func(x Route) bool {
			return x.Table == rule.Table && int(familyOf(x.Dst.Addr())) == rule.Family
		}) {
			tb.Errorf("rule %+v leads to no route", rule)
		}
	}
	for _, x := range r.Pod.Routes {
		if x.Table != TableMain && x.Table != tableAnswers && owner[x.Table] != x.Owner {
			tb.Errorf("route %s of %s is in table %d of %q", renderRoute(x), x.Owner, x.Table, owner[x.Table])
		}
	}
}

// checkRoutes: no two for the kernel to refuse, families agree, gateways are
// reached by a route on the link before them, or the route says so.
func checkRoutes(tb testing.TB, r Result) {
	tb.Helper()
	type key struct {
		table  uint32
		dst    netip.Prefix
		metric uint32
	}
	seen := map[key]bool{}
	for n, x := range r.Pod.Routes {
		k := key{x.Table, x.Dst, x.Metric}
		if seen[k] {
			tb.Errorf("route %s is there twice in table %d", renderRoute(x), x.Table)
		}
		seen[k] = true
		f := familyOf(x.Dst.Addr())
		switch {
		case x.Owner == "" || x.Dev == "" || x.Why == "" || x.Table == 0 || x.Dst != x.Dst.Masked():
			tb.Errorf("route %+v lacks something", x)
		case x.Via.IsValid() && (familyOf(x.Via) != f || x.Scope != ScopeGlobal), x.Src.IsValid() && familyOf(x.Src) != f:
			tb.Errorf("route %+v mixes families or scopes", x)
		case !x.Via.IsValid() && (x.OnLink || f == ipv4 && x.Scope != ScopeLink):
			tb.Errorf("route %+v is on the link and does not say so", x)
		case x.Via.IsValid() && x.Dev == podVeth && !x.OnLink && !slices.ContainsFunc(r.Pod.Routes[:n], func(y Route) bool {
			return y.Table == x.Table && y.Dev == x.Dev && !y.Via.IsValid() && y.Dst.Contains(x.Via)
		}):
			tb.Errorf("route %+v: nothing leads to its gateway", x)
		}
	}
}

// checkDefaults: main has the default of one interface, with what others' plugins left there.
func checkDefaults(tb testing.TB, pod Pod, r Result) {
	tb.Helper()
	active := slices.ContainsFunc(r.Links, func(l Link) bool { return l.Mode == "underlay" || l.Mode == "overlay" })
	for _, f := range families() {
		devs := map[string]bool{}
		for _, x := range r.Pod.Routes {
			if x.Table == TableMain && x.Dst == f.everything() {
				devs[x.Dev] = true
			}
		}
		for _, i := range pod.Interfaces {
			gw := i.gateway(f)
			removed := slices.ContainsFunc(r.Pod.Remove, func(x Route) bool { return x.Dev == i.Name && x.Via == gw })
			if i.Foreign && i.IsDefaultNetwork && gw.IsValid() && !removed {
				devs[i.Name] = true
			}
		}
		if active && len(devs) > 1 {
			tb.Errorf("IPv%d has default routes in main by %v", f, devs)
		}
	}
}

// pick reads choices out of what the fuzzer gives; at its end it reads zeros.
type pick struct{ data []byte }

func (p *pick) n(below int) int {
	if len(p.data) == 0 {
		return 0
	}
	b := int(p.data[0])
	p.data = p.data[1:]
	return b % below
}

func (p *pick) yes() bool { return p.n(2) == 1 }

// addr is one of few addresses, so that they meet.
func (p *pick) addr() netip.Addr {
	switch p.n(12) {
	case 0:
		return netip.AddrFrom4([4]byte{10, 1, 20, byte(p.n(4))})
	case 1, 2, 3:
		return netip.AddrFrom4([4]byte{172, 16, byte(11 + p.n(3)), byte(p.n(16))})
	case 4, 5, 6:
		return netip.AddrFrom16([16]byte{0xfd, 0, 0, byte(11 + p.n(3)), 15: byte(p.n(16))})
	case 7:
		return netip.AddrFrom16([16]byte{0xfe, 0x80, 15: byte(p.n(16))})
	case 8:
		return netip.AddrFrom4([4]byte{169, 254, 1, 1})
	case 9:
		return netip.IPv4Unspecified()
	case 10:
		return netip.IPv6Unspecified()
	}
	return netip.Addr{}
}

func (p *pick) addrs(most int) []netip.Addr {
	var all []netip.Addr
	for range p.n(most + 1) {
		all = append(all, p.addr())
	}
	return all
}

func (p *pick) prefix() netip.Prefix {
	a := p.addr()
	bits := []int{24, 16, 32, 64, 128, 0, 12, 8}[p.n(8)]
	return netip.PrefixFrom(a, min(bits, max(a.BitLen(), 0)))
}

func (p *pick) prefixes(most int) []netip.Prefix {
	var all []netip.Prefix
	for range p.n(most + 1) {
		all = append(all, p.prefix())
	}
	return all
}

func (p *pick) routes(most int) []policy.Route {
	var all []policy.Route
	for range p.n(most + 1) {
		all = append(all, policy.Route{Dst: p.prefix(), Gw: p.addr()})
	}
	return all
}

func (p *pick) options() *Options {
	if p.n(4) == 0 {
		return nil
	}
	return &Options{
		Mode:             []string{"auto", "auto", "auto", "underlay", "overlay", "disabled", ""}[p.n(7)],
		TunePodRoutes:    !p.yes(),
		PodCIDRs:         p.prefixes(2),
		ServiceCIDRs:     p.prefixes(2),
		HijackCIDRs:      p.prefixes(3),
		PolicyRoutes:     p.routes(2),
		PolicyRoutesFrom: Origin(p.n(2)),
		DefaultRouteNIC:  []string{"", "", "eth0", "net0", "net1", "net9"}[p.n(6)],
		DefaultRouteFrom: Origin(p.n(3)),
		MACPrefix:        [][]byte{nil, {0x0a, 0x1b}, {1}}[p.n(3)],
		HostRuleTable:    uint32([]int{500, 501, 0}[p.n(3)]),
		PodRPFilter:      p.n(4) - 1,
		VethLinkAddress:  p.addr(),
	}
}

func (p *pick) pod() Pod {
	pod := Pod{ContainerID: []string{"0123456789abcdef", "ab", "", "a/b"}[p.n(4)], NodeAddresses: p.addrs(4)}
	if p.yes() {
		pod.Peer = Peer{"cali1", mac("ee:ee:ee:ee:ee:ee")}
	}
	for n := range p.n(5) {
		i := Interface{
			Name: []string{"eth0", "net0", "net1", "net2", "net3"}[n], Rail: n, IsDefaultNetwork: n == 0 && !p.yes(), Foreign: p.yes(),
			Addresses: p.prefixes(3), Gateways: p.addrs(2), Routes: p.routes(2), SharesMAC: p.yes(), Coordinator: p.options(),
		}
		pod.Interfaces = append(pod.Interfaces, i)
	}
	return pod
}

// FuzzPlan: no pod makes it panic, and what it answers keeps the rules of check.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(64) {
		data := make([]byte, 256)
		source := rand.New(rand.NewPCG(seed, 1))
		for n := range data {
			data[n] = byte(source.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pod := (&pick{data}).pod()
		r, err := Plan(pod)
		if err != nil {
			return
		}
		check(t, pod, r)
	})
}

// TestRandomPods: the same with pods that are mostly right, of which few are refused.
func TestRandomPods(t *testing.T) {
	t.Parallel()
	planned := 0
	for seed := range uint64(3000) {
		pod := randomPod(rand.New(rand.NewPCG(seed, 2)))
		r, err := Plan(pod)
		if err != nil {
			continue
		}
		planned++
		check(t, pod, r)
		if t.Failed() {
			t.Fatalf("seed %d: %+v\n%s", seed, pod, render(r))
		}
	}
	if planned < 1500 {
		t.Errorf("%d of 3000 pods were planned, want half of them at least", planned)
	}
}

// randomPod has distinct addresses and gateways in their families.
func randomPod(r *rand.Rand) Pod {
	data := make([]byte, 512)
	for n := range data {
		data[n] = byte(r.Uint32())
	}
	p := &pick{data}
	pod := Pod{ContainerID: "0123456789abcdef", NodeAddresses: addrs("10.1.20.4", "fd00:20::4", "172.16.11.254")[p.n(3):]}
	for n := range 1 + p.n(4) {
		i := Interface{Name: []string{"eth0", "net0", "net1", "net2"}[n], Rail: p.n(30)*5 + n, IsDefaultNetwork: n == 0, Foreign: p.n(3) == 0}
		if p.n(4) > 0 {
			i.Addresses = append(i.Addresses, netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, byte(11 + p.n(2)), byte(10 + n)}), []int{16, 24, 24, 32}[p.n(4)]))
			i.Gateways = append(i.Gateways, netip.AddrFrom4([4]byte{172, 16, byte(11 + p.n(2)), 254}))
		}
		if p.yes() {
			i.Addresses = append(i.Addresses, netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 3: byte(11 + p.n(2)), 15: byte(10 + n)}), []int{64, 128}[p.n(2)]))
			i.Gateways = append(i.Gateways, addrs("fd00:b::fe", "fe80::1")[p.n(2)])
		}
		if i.Coordinator = p.options(); i.Coordinator != nil {
			o := i.Coordinator
			o.Mode = cmp.Or([]string{"auto", "auto", "auto", "auto", "disabled"}[p.n(5)], o.Mode)
			o.PolicyRoutes, o.DefaultRouteNIC = nil, []string{"", "", "eth0"}[p.n(3)]
			o.DefaultRouteFrom = FromPod
			for _, list := range []*[]netip.Prefix{&o.PodCIDRs, &o.ServiceCIDRs, &o.HijackCIDRs} {
				*list = slices.DeleteFunc(*list, func(x netip.Prefix) bool { return !x.IsValid() })
			}
		}
		pod.Interfaces = append(pod.Interfaces, i)
	}
	return pod
}
