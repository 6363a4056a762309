package routing

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/golden"
	"railhead/internal/policy"
)

// coordinated are the Options of a network whose coordinator says text, in a
// cluster like that of spec/003.
func coordinated(tb testing.TB, text string, more ...func(*Sources)) *Options {
	tb.Helper()
	s := Sources{
		Cluster: v2beta1.CoordinatorSpec{HijackCIDR: []string{"169.254.0.0/16"}},
		Status: v2beta1.CoordinatorStatus{
			Phase:          v2beta1.PhaseSynced,
			OverlayPodCIDR: []string{"10.233.64.0/18", "fd85:ee78:d8a6:8607::1:0/112"},
			ServiceCIDR:    []string{"10.233.0.0/18", "fd85:ee78:d8a6:8607::1000/116"},
		},
		Element: []byte(text),
	}
	for _, m := range more {
		m(&s)
	}
	o, err := Merge(s)
	if err != nil {
		tb.Fatal(err)
	}
	return &o
}

// annotated is a pod with the annotation ipam.spidernet.io/default-route-nic.
func annotated(nic string) func(*Sources) { return func(s *Sources) { s.DefaultRouteNIC = nic } }

// clusterwide is a SpiderCoordinator changed.
func clusterwide(change func(*v2beta1.CoordinatorSpec)) func(*Sources) {
	return func(s *Sources) { change(&s.Cluster) }
}

func prefixesOf(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

func addrs(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, t := range texts {
		all = append(all, netip.MustParseAddr(t))
	}
	return all
}

func route(dst, gw string) policy.Route {
	r := policy.Route{Dst: netip.MustParsePrefix(dst)}
	if gw != "" {
		r.Gw = netip.MustParseAddr(gw)
	}
	return r
}

func mac(text string) net.HardwareAddr {
	m, err := net.ParseMAC(text)
	if err != nil {
		panic(err)
	}
	return m
}

// calico is eth0 as Calico leaves it, spec/003.
func calico() Interface {
	return Interface{
		Name: "eth0", IsDefaultNetwork: true, Foreign: true,
		Addresses: prefixesOf("10.233.119.164/32"), Gateways: addrs("169.254.1.1"),
		Routes: []policy.Route{route("169.254.1.1/32", "")},
		MAC:    mac("ca:39:52:fc:61:cd"),
	}
}

// calicoDual is eth0 as Calico leaves it with both families.
func calicoDual() Interface {
	i := calico()
	i.Addresses = append(i.Addresses, netip.MustParsePrefix("fd85:ee78:d8a6:8607::1:a4/128"))
	i.Gateways = append(i.Gateways, netip.MustParseAddr("fe80::ecee:eeff:feee:eeee"))
	return i
}

// rail is a macvlan of spec/003: rail 0 is net1 with 172.16.11.10.
func rail(n, bits int, o *Options) Interface {
	return Interface{
		Name: fmt.Sprintf("net%d", n+1), Rail: n,
		Addresses:   prefixesOf(fmt.Sprintf("172.16.%d.10/%d", 11+n, bits)),
		Gateways:    addrs(fmt.Sprintf("172.16.%d.254", 11+n)),
		Coordinator: o,
		Masters:     []string{fmt.Sprintf("enp%ds0f0np0", 11+n)},
	}
}

// overlay is a pod on a node of spec/003.
func overlay(interfaces ...Interface) Pod {
	return Pod{
		ContainerID:   "0123456789abcdef0123456789abcdef",
		Interfaces:    interfaces,
		NodeAddresses: addrs("10.1.20.4", "10.233.119.128", "fd00:20::4"),
		Peer:          Peer{"cali0123456789a", mac("ee:ee:ee:ee:ee:ee")},
	}
}

func eightRails(bits int, o *Options) Pod {
	pod := overlay(calico())
	for n := range 8 {
		pod.Interfaces = append(pod.Interfaces, rail(n, bits, o))
	}
	return pod
}

// underlay is a pod of spec/002 whose first interface is a macvlan.
func underlay(o *Options, more ...Interface) Pod {
	eth0 := Interface{
		Name: "eth0", IsDefaultNetwork: true, Addresses: prefixesOf("172.81.0.100/16"), Gateways: addrs("172.81.0.1"),
		Coordinator: o, Masters: []string{"ens6f0np0"},
	}
	pod := overlay(append([]Interface{eth0}, more...)...)
	pod.Peer = Peer{}
	return pod
}

func goldenCases(tb testing.TB) []struct {
	name string
	pod  Pod
} {
	tb.Helper()
	o := coordinated(tb, `{"type": "coordinator"}`)
	with := func(i Interface, change func(*Interface)) Interface {
		change(&i)
		return i
	}
	dual := func(i Interface) Interface {
		return with(i, func(i *Interface) {
			i.Addresses = append(i.Addresses, prefixesOf(fmt.Sprintf("fd00:%d::10/64", 11+i.Rail))...)
			i.Gateways = append(i.Gateways, addrs(fmt.Sprintf("fd00:%d::fe", 11+i.Rail))...)
		})
	}
	second := underlay(o)
	second.Interfaces[0].Addresses = prefixesOf("172.81.0.101/16")
	second.ContainerID = "fedcba98765432100123456789abcdef"
	second.NodeAddresses = addrs("10.1.20.5")
	return []struct {
		name string
		pod  Pod
	}{
		{"ai-cluster-macvlan", eightRails(24, o)},
		{"ai-cluster-macvlan-as-printed", eightRails(16, o)},
		{"two-rails-one-subnet", overlay(calico(), rail(0, 16, o), rail(1, 16, o))},
		{"roce-shared-macvlan-node1", underlay(o)},
		{"roce-shared-macvlan-node2", second},
		{"underlay-options", underlay(coordinated(tb, `{"type": "coordinator", "mode": "underlay", "vethMTU": 1400, "vethLinkAddress": "169.254.100.1", "podMACPrefix": "0a:1b", "hostRuleTable": 501, "podRPFilter": 1, "txQueueLen": 2000, "policyRoutes": [{"dst": "10.9.0.0/16", "gw": "172.81.0.9"}]}`))},
		{"underlay-two-nics", underlay(o, rail(0, 24, o))},
		{"ipv6", Pod{
			ContainerID: "0123456789abcdef", NodeAddresses: addrs("fd00:20::4"), Peer: overlay().Peer,
			Interfaces: []Interface{
				with(calicoDual(), func(i *Interface) { i.Addresses, i.Gateways, i.Routes = i.Addresses[1:], i.Gateways[1:], nil }),
				with(dual(rail(0, 24, o)), func(i *Interface) { i.Addresses, i.Gateways = i.Addresses[1:], i.Gateways[1:] }),
				with(dual(rail(1, 24, o)), func(i *Interface) { i.Addresses, i.Gateways = prefixesOf("fd00:11::11/64"), i.Gateways[1:] }),
			},
		}},
		{"dual-stack", overlay(calicoDual(), dual(rail(0, 24, o)), dual(rail(1, 24, o)))},
		{"dual-stack-underlay", underlay(o, dual(rail(0, 24, o)))},
		{"podDefaultRouteNIC", overlay(calico(), rail(0, 24, coordinated(tb, `{"podDefaultRouteNic": "net1"}`)), rail(1, 24, o))},
		{"default-route-nic-annotation", overlay(
			calico(),
			rail(0, 24, coordinated(tb, `{"podDefaultRouteNic": "net1"}`, annotated("net2"))),
			rail(1, 24, coordinated(tb, `{}`, annotated("net2"))),
		)},
		{"underlay-default-on-net1", underlay(coordinated(tb, `{}`, annotated("net1")), rail(0, 24, coordinated(tb, `{}`, annotated("net1"))))},
		{"tunePodRoutes-false", overlay(calico(), rail(0, 24, coordinated(tb, `{"tunePodRoutes": false}`)))},
		{"tunePodRoutes-false-policy-default", overlay(calico(), rail(0, 24, coordinated(tb, `{"tunePodRoutes": false, "hijackCIDR": ["0.0.0.0/0"], "policyRoutes": [{"dst": "0.0.0.0/0", "gw": "172.16.11.9"}, {"dst": "10.9.0.0/16", "gw": "172.16.11.9"}]}`)))},
		{"disabled", overlay(calico(), rail(0, 24, coordinated(tb, `{"mode": "disabled"}`)), rail(1, 24, nil))},
		{"hijack", overlay(calico(), rail(0, 24, coordinated(tb, `{"hijackCIDR": ["169.254.25.10", "192.0.2.0/24", "172.16.11.0/24", "fd00::1"]}`)))},
		{"policyRoutes", overlay(calico(),
			rail(0, 24, coordinated(tb, `{"policyRoutes": [{"dst": "10.9.0.0/16", "gw": "172.16.11.9"}, {"dst": "10.8.0.1", "gw": "172.16.11.8"}]}`)),
			rail(1, 24, coordinated(tb, `{}`, clusterwide(func(s *v2beta1.CoordinatorSpec) {
				s.PolicyRoutes = []v2beta1.Route{{Dst: "10.7.0.0/16", Gw: "172.16.12.7"}, {Dst: "10.6.0.0/16", Gw: "192.0.2.1"}}
			}))))},
		{"routes-of-pools", overlay(calico(),
			with(rail(0, 24, o), func(i *Interface) {
				i.Routes = []policy.Route{route("172.16.0.0/12", "172.16.11.254"), route("10.5.0.0/16", "")}
			}),
			with(rail(1, 24, o), func(i *Interface) {
				i.Routes = []policy.Route{route("172.16.0.0/12", "172.16.12.254"), route("0.0.0.0/0", "172.16.12.1")}
			}))},
		{"gateway-elsewhere", overlay(with(calico(), func(i *Interface) {
			i.Addresses, i.Gateways, i.Routes = prefixesOf("10.233.65.3/24"), addrs("10.233.65.1"), []policy.Route{route("10.233.64.0/18", "10.233.65.1")}
		}), with(rail(0, 24, o), func(i *Interface) { i.Gateways = addrs("10.1.20.4") }))},
		{"shared-mac", overlay(calico(), with(rail(0, 24, coordinated(tb, `{"podMACPrefix": "0a:1b"}`)), func(i *Interface) { i.SharesMAC = true }))},
		{"no-default-network", Pod{Interfaces: []Interface{rail(0, 24, o)}, NodeAddresses: addrs("10.1.20.4")}},
	}
}

func TestPlanGolden(t *testing.T) {
	t.Parallel()
	for _, tt := range goldenCases(t) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := Plan(tt.pod)
			if err != nil {
				t.Fatal(err)
			}
			check(t, tt.pod, r)
			golden.Equal(t, filepath.Join("testdata", tt.name+".golden"), render(r))
		})
	}
}

func TestPlanErrors(t *testing.T) {
	t.Parallel()
	o := coordinated(t, `{}`)
	named := func(i Interface, name string) Interface {
		i.Name = name
		return i
	}
	tests := []struct {
		name string
		pod  Pod
		want string
	}{
		{
			"no such NIC", overlay(calico(), rail(0, 24, coordinated(t, `{"podDefaultRouteNic": "net7"}`))),
			`podDefaultRouteNIC of the network's coordinator is "net7": the pod has no such interface: want one of eth0, net1`,
		},
		{
			"no such NIC, annotation", overlay(calico(), rail(0, 24, coordinated(t, `{}`, annotated("net7")))),
			`annotation ipam.spidernet.io/default-route-nic is "net7": the pod has no such interface: want one of eth0, net1`,
		},
		{
			"NIC without gateway", overlay(calico(), rail(0, 24, coordinated(t, `{}`, annotated("net2"))), Interface{Name: "net2", Rail: 1, Addresses: prefixesOf("10.0.0.1/24")}),
			`annotation ipam.spidernet.io/default-route-nic is "net2": the interface has no gateway: want one that has, or a gateway in its pool`,
		},
		{
			"NICs disagree", overlay(calico(), rail(0, 24, coordinated(t, `{"podDefaultRouteNic": "net1"}`)), rail(1, 24, coordinated(t, `{"podDefaultRouteNic": "net2"}`))),
			`podDefaultRouteNIC: the network of net1 says "net1", that of net2 says "net2": want the same, or the annotation ipam.spidernet.io/default-route-nic`,
		},
		{
			"overlay on eth0", underlay(coordinated(t, `{"mode": "overlay"}`)),
			`interface eth0: mode "overlay": it is the pod's first interface itself: want auto or underlay`,
		},
		{
			"overlay below underlay", underlay(o, rail(0, 24, coordinated(t, `{"mode": "overlay"}`))),
			`interface net1: mode "overlay": the pod's first interface eth0 is a network of this kind too: want auto or underlay`,
		},
		{
			"underlay below overlay", overlay(calico(), rail(0, 24, coordinated(t, `{"mode": "underlay"}`))),
			`interface net1: mode "underlay": the pod's first interface is the cluster network's: want auto or overlay`,
		},
		{
			"unknown mode", overlay(calico(), rail(0, 24, &Options{Mode: "disable"})),
			`interface net1: mode "disable": want auto, underlay, overlay or disabled`,
		},
		{
			"rails alike", overlay(calico(), rail(0, 24, o), named(rail(0, 24, o), "net2")),
			"interface net2: address 172.16.11.10 is net1's: want another\ninterfaces net1 and net2 are both rail 0: want one each",
		},
		{"rail out of range", overlay(Interface{Name: "net1", Rail: 152}), "interface net1 is rail 152: want 0 to 151"},
		{
			"names", overlay(Interface{Name: "a/b"}, Interface{Name: "\x1b[2J", Rail: 4}, Interface{Name: "net%d", Rail: 5}, Interface{Name: "veth0", Rail: 1}, Interface{Name: "net1", Rail: 2}, Interface{Name: "net1", Rail: 3}),
			`interface "a/b": want the name of a netdev, 1 to 15 bytes without "/", ":", "%", spaces and control characters, and not lo, all, default or veth0` + "\n" +
				`interface "veth0": want the name of a netdev, 1 to 15 bytes without "/", ":", "%", spaces and control characters, and not lo, all, default or veth0` + "\n" +
				`interface net1 is there twice: want one name each` + "\n" +
				`interface "\x1b[2J": want the name of a netdev, 1 to 15 bytes without "/", ":", "%", spaces and control characters, and not lo, all, default or veth0` + "\n" +
				`interface "net%d": want the name of a netdev, 1 to 15 bytes without "/", ":", "%", spaces and control characters, and not lo, all, default or veth0`,
		},
		{
			"two default networks", overlay(calico(), Interface{Name: "eth1", IsDefaultNetwork: true}),
			"interfaces eth0 and eth1 are both the default network's: want one",
		},
		{"values", Pod{
			Interfaces: []Interface{{
				Name: "net1", Addresses: []netip.Prefix{{}, netip.MustParsePrefix("10.0.0.2/0"), netip.MustParsePrefix("10.0.0.1/24")}, Gateways: addrs("10.0.0.1", "fd00::1", "0.0.0.0"),
				Routes:      []policy.Route{{}, {Dst: netip.MustParsePrefix("10.0.0.0/8"), Gw: netip.MustParseAddr("fd00::1")}},
				Coordinator: &Options{Mode: "auto", PolicyRoutes: []policy.Route{{Dst: netip.MustParsePrefix("10.0.0.0/8")}}},
			}},
			NodeAddresses: addrs("::ffff:10.0.0.1"),
		}, strings.Join([]string{
			"interface net1: address invalid Prefix: want the address of one host with its prefix length",
			"interface net1: address 10.0.0.2/0: want the address of one host with its prefix length",
			"interface net1: gateway fd00::1: want one of a family that the interface has an address of",
			"interface net1: gateway 0.0.0.0: want the address of one host",
			"interface net1: route to invalid Prefix: want a CIDR",
			"interface net1: route to 10.0.0.0/8 over fd00::1: want a gateway of the same family",
			"interface net1: policyRoutes: 10.0.0.0/8 over invalid IP: want a CIDR and a gateway of the same family",
			"interface net1: gateway 10.0.0.1 is the address of net1: want one outside the pod",
			"node address ::ffff:10.0.0.1: want an IPv4 or IPv6 address",
		}, "\n")},
		{
			"policy route elsewhere", overlay(calico(), rail(0, 24, coordinated(t, `{"policyRoutes": [{"dst": "10.0.0.0/8", "gw": "192.0.2.1"}]}`))),
			"interface net1: policyRoutes: 10.0.0.0/8 over 192.0.2.1: want a gateway on one of its subnets [172.16.11.10/24]",
		},
		{"underlay, CIDRs unknown", underlay(coordinated(t, `{}`, func(s *Sources) {
			s.Status = v2beta1.CoordinatorStatus{Phase: v2beta1.PhaseNotReady, Reason: "no CIDR of Services found"}
		})), `interface eth0: SpiderCoordinator default is not ready (no CIDR of Services found), and Services would be looked for on its network: want phase Synced, or overlayPodCIDR and serviceCIDR in the network's coordinator`},
		{
			"underlay, no container", func() Pod { p := underlay(o); p.ContainerID = ""; return p }(),
			`container ID "": want one that can name the node's link veth…`,
		},
		{
			"underlay, no node address", func() Pod { p := underlay(o); p.NodeAddresses = addrs("fd00:20::4"); return p }(),
			"node addresses [fd00:20::4]: want one of a family of eth0, whose addresses are [172.81.0.100/16]",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := Plan(tt.pod)
			if err == nil {
				t.Fatalf("no error, want %s", tt.want)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(Result{}, r); diff != "" {
				t.Errorf("a part of a Result comes with the error:\n%s", diff)
			}
		})
	}
}

// TestRailsAreStable: a rail keeps table, priority and MAC address, whoever is beside it.
func TestRailsAreStable(t *testing.T) {
	t.Parallel()
	o := coordinated(t, `{}`)
	all, err := Plan(eightRails(24, o))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := Plan(overlay(calico(), rail(5, 24, o)))
	if err != nil {
		t.Fatal(err)
	}
	ofNet6 := func(r Result) (routes []Route, rules []Rule, links []Link) {
		routes = slices.DeleteFunc(slices.Clone(r.Pod.Routes), func(r Route) bool { return r.Table != 105 })
		rules = slices.DeleteFunc(slices.Clone(r.Pod.Rules), func(r Rule) bool { return r.Owner != "net6" })
		links = slices.DeleteFunc(slices.Clone(r.Links), func(l Link) bool { return l.Owner != "net6" })
		return routes, rules, links
	}
	routes, rules, links := ofNet6(all)
	wantRoutes, wantRules, wantLinks := ofNet6(alone)
	if diff := cmp.Diff([]any{wantRoutes, wantRules, wantLinks}, []any{routes, rules, links}, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("(-alone +with seven others):\n%s", diff)
	}
	if len(rules) != 1 || rules[0].Priority != 32763 || rules[0].Table != 105 {
		t.Errorf("rules %+v, want one with priority 32763 for table 105", rules)
	}
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	seen := map[uint32]int{priorityAnswers: -1, priorityDefault: -2}
	for n := range maxRail + 1 {
		p := priorityOf(Interface{Rail: n})
		if other, taken := seen[p]; taken || p <= priorityDefault || p >= 32766 {
			t.Errorf("rail %d has priority %d, which is taken (%v, by %d) or out of range", n, p, taken, other)
		}
		seen[p] = n
	}
}

func TestMACs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		got  net.HardwareAddr
		want string
	}{
		{derivedMAC(0, netip.MustParseAddr("172.16.11.10")), "02:00:ac:10:0b:0a"},
		{derivedMAC(7, netip.MustParseAddr("::ffff:172.16.11.10")), "02:07:ac:10:0b:0a"},
		{derivedMAC(7, netip.MustParseAddr("fd00:11::10")), "02:07:4b:60:e3:bb"},
		{derivedMAC(7, netip.MustParseAddr("fd00:12::10")), "02:07:62:75:4e:7e"},
		{prefixedMAC([]byte{0x0a, 0x1b}, netip.MustParseAddr("172.16.11.10")), "0a:1b:ac:10:0b:0a"},
		{prefixedMAC([]byte{0x0a, 0x1b}, netip.MustParseAddr("fd00:11::1:10")), "0a:1b:00:01:00:10"},
	} {
		if tt.got.String() != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	pod := eightRails(16, coordinated(b, `{"type": "coordinator"}`))
	for b.Loop() {
		if _, err := Plan(pod); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	for b.Loop() {
		coordinated(b, `{"type": "coordinator", "mode": "auto"}`)
	}
}
