package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestCheck changes one thing after the other of a pod, and holds that Check
// tells exactly that.
func TestCheck(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		pod := w.eightRails("46")
		for n := range pod.Interfaces {
			pod.Interfaces[n].Link.MTU = 1400 // so that it can change both ways
		}
		pod.Interfaces[0].Link.MTU = 0
		pod.Interfaces[1].Coordinator = coordinated(func(o *routing.Options) { o.DefaultRouteNIC, o.TxQueueLen = "net1", 100 })
		for n := 2; n < len(pod.Interfaces); n++ {
			pod.Interfaces[n].Coordinator = coordinated(func(o *routing.Options) { o.DefaultRouteNIC = "net1" })
		}
		plan := w.plan(pod)
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		if err := w.a.Check(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		index := func(n int) int { return plan.Interfaces[n].Index }
		rule := rtnl.Rule{Family: "inet", Priority: 32760, Src: prefix("172.16.13.10/32"), Table: 102}
		tests := []struct {
			name         string
			node         bool
			change, back []rtnl.Request
			want         []string
		}{
			{
				name: "MTU", change: []rtnl.Request{rtnl.LinkSet{Index: index(2), MTU: 1300}}, back: []rtnl.Request{rtnl.LinkSet{Index: index(2), MTU: 1400}},
				want: []string{"interface net2: MTU is 1300: want 1400"},
			},
			{
				name: "MAC", change: []rtnl.Request{rtnl.LinkSet{Index: index(2), MAC: mac("02:00:00:00:00:01")}}, back: []rtnl.Request{rtnl.LinkSet{Index: index(2), MAC: mac("02:01:ac:10:0c:0a")}},
				want: []string{"interface net2: MAC address is 02:00:00:00:00:01: want 02:01:ac:10:0c:0a"},
			},
			{
				name: "queue", change: []rtnl.Request{rtnl.LinkSet{Index: index(1), TxQueueLen: new(7)}}, back: []rtnl.Request{rtnl.LinkSet{Index: index(1), TxQueueLen: new(100)}},
				want: []string{"interface net1: transmit queue length is 7: want 100"},
			},
			{
				name: "rule", change: []rtnl.Request{rtnl.RuleDelete{Rule: rule}}, back: []rtnl.Request{rtnl.RuleAdd{Rule: rule}},
				want: []string{"interface net3: rule of priority 32760 from 172.16.13.10/32 for table 102 (inet): it is not there"},
			},
			{
				name: "route", change: []rtnl.Request{rtnl.RouteDelete{Route: rtnl.Route{Table: 102, Dst: prefix("0.0.0.0/0")}}},
				back: []rtnl.Request{rtnl.RouteAdd{Route: rtnl.Route{Table: 102, Dst: prefix("0.0.0.0/0"), Gateway: ip("172.16.13.254"), LinkIndex: index(3)}}},
				want: []string{"interface net3: route 0.0.0.0/0 via 172.16.13.254 dev net3 in table 102: it is not there"},
			},
			{
				name: "route in the way", change: []rtnl.Request{rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("0.0.0.0/0"), Gateway: ip("169.254.1.1"), LinkIndex: 3}, Replace: true}},
				back: []rtnl.Request{rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("0.0.0.0/0"), Gateway: ip("172.16.11.254"), LinkIndex: index(1)}, Replace: true}},
				want: []string{
					"interface net1: route 0.0.0.0/0 via 172.16.11.254 dev net1 in table 254: it is not there",
					"route 0.0.0.0/0 via 169.254.1.1 in table 254: it is there: want none, it is in the way of others",
				},
			},
			{
				name: "neighbour", change: []rtnl.Request{rtnl.NeighbourDelete{Neighbour: rtnl.Neighbour{LinkIndex: 3, IP: ip("10.1.20.4")}}},
				back: []rtnl.Request{rtnl.NeighbourSet{Neighbour: rtnl.Neighbour{LinkIndex: 3, IP: ip("10.1.20.4"), Address: "ee:ee:ee:ee:ee:ee"}}},
				want: []string{"interface eth0: neighbour 10.1.20.4 at ee:ee:ee:ee:ee:ee dev eth0: it is not there"},
			},
			{
				name: "the node's rule", node: true, change: []rtnl.Request{rtnl.RuleDelete{Rule: rtnl.Rule{Family: "inet", Priority: 1000, Table: 500}}},
				back: []rtnl.Request{rtnl.RuleAdd{Rule: rtnl.Rule{Family: "inet", Priority: 1000, Table: 500, Protocol: hostRuleProtocol}}},
				want: []string{"interface net1: the node's rule of priority 1000 for table 500 (inet): it is not there"},
			},
			{
				name: "the node's route", node: true, change: []rtnl.Request{rtnl.RouteDelete{Route: rtnl.Route{Table: 500, Dst: prefix("172.16.12.10/32")}}},
				back: []rtnl.Request{rtnl.RouteAdd{Route: rtnl.Route{Table: 500, Dst: prefix("172.16.12.10/32"), LinkIndex: 300}}},
				want: []string{"interface net2: the node's route 172.16.12.10/32 dev " + podPeer + " in table 500: it is not there"},
			},
			{
				name: "address", change: []rtnl.Request{rtnl.AddressDelete{Address: rtnl.Address{LinkIndex: index(8), Prefix: prefix("172.16.18.10/24")}}},
				want: []string{
					"interface net8: address 172.16.18.10/24: it is not there",
					"interface net8: route 172.16.18.0/24 dev net8 in table 100: it is not there",
				},
			},
		}
		for _, tt := range tests {
			c := w.pod
			if tt.node {
				c = w.node
			}
			w.must(c, tt.change...)
			err := w.a.Check(t.Context(), plan)
			if tt.back == nil { // the last: what goes with it depends on the kernel
				for _, want := range tt.want[:1] {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v, want %q", tt.name, err, want)
					}
				}
				break
			}
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), fmt.Sprint(err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
			w.must(c, tt.back...)
			if err := w.a.Check(t.Context(), plan); err != nil {
				t.Fatalf("%s, and back: %v", tt.name, err)
			}
		}
		w.inside(w.ns, func() {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/net2/rp_filter", []byte("2"), 0); err != nil {
				t.Error(err)
			}
		})
		w.must(w.pod, rtnl.LinkSet{Index: index(4), Up: new(false)}, rtnl.LinkDelete{Index: index(5)})
		w.must(w.node, rtnl.LinkDelete{Name: podPeer})
		err := w.a.Check(t.Context(), plan)
		for _, want := range []string{
			`interface net2: sysctl net/ipv4/conf/net2/rp_filter is "2": want "0"`, "interface net4: up is false: want true",
			"interface net5: link: it is not there", "interface eth0: link: it is not there", "the node's link " + podPeer + ": it is not there",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("check: want %q in\n%v", want, err)
			}
		}
	})
}

// TestSpec003 compares the rules and routes that the kernel has with those that
// spec/003 prints.
func TestSpec003(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		if _, err := w.a.Apply(t.Context(), w.plan(w.eightRails("4"))); err != nil {
			t.Fatal(err)
		}
		have, err := contentsOf(w.pod)
		if err != nil {
			t.Fatal(err)
		}
		var rules, table, main []string
		for _, r := range have.rules {
			if r.Family == "inet" && r.Src.IsValid() && strings.HasPrefix(r.Src.String(), "172.16.") {
				rules = append(rules, fmt.Sprintf("%d: from %s lookup %d proto %s", r.Priority, r.Src.Addr(), r.Table, r.Protocol))
			}
		}
		for _, r := range have.routes {
			text := fmt.Sprintf("%s via %s dev %d proto %s scope %s src %s", r.Dst, r.Gateway, r.LinkIndex, r.Protocol, r.Scope, r.Src)
			switch {
			case r.Table == 100 && r.Dst.Bits() == 0:
				table = append(table, text)
			case r.Table == routing.TableMain && r.Protocol == "kernel" && r.Dst.Addr().Is4(), r.Table == routing.TableMain && r.Dst == prefix("0.0.0.0/0"):
				main = append(main, text)
			}
		}
		slices.Sort(main)
		wantMain := []string{"0.0.0.0/0 via 169.254.1.1 dev 3 proto boot scope global src invalid IP"}
		var wantRules []string
		for n := range 8 {
			wantRules = append(wantRules, fmt.Sprintf("%d: from 172.16.%d.10 lookup %d proto unspec", 32758+n, 11+n, 100+n))
			wantMain = append(wantMain, fmt.Sprintf("172.16.%d.0/24 via invalid IP dev %d proto kernel scope link src 172.16.%d.10", 11+n, firstIndex+n, 11+n))
		}
		wantTable := []string{fmt.Sprintf("0.0.0.0/0 via 172.16.11.254 dev %d proto boot scope global src invalid IP", firstIndex)}
		if diff := cmp.Diff([][]string{wantRules, wantTable, wantMain}, [][]string{rules, table, main}); diff != "" {
			t.Errorf("rules, table 100 and main (-want +got):\n%s", diff)
		}
	})
}

// TestPlanErrors holds what is said of pods that cannot be.
func TestPlanErrors(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		tests := []struct {
			name   string
			change func(pod *Pod, net1 *Interface)
			want   string
		}{
			{"no namespace", func(pod *Pod, _ *Interface) { pod.NetNS = "/run/netns/none" }, "network namespace: open /run/netns/none: no such file or directory"},
			{"the node's", func(pod *Pod, _ *Interface) { pod.NetNS = pathOf(w.home) }, "network namespace " + pathOf(w.home) + ": it is the node's: want a pod's"},
			{"name taken", func(_ *Pod, i *Interface) { i.Name = "eth0"; i.IsDefaultNetwork = false }, `interface eth0: name: the pod has a link "eth0" already (index 3, veth): want a free one`},
			{"no parent", func(_ *Pod, i *Interface) { i.Link.Parent.Name = "enp99" }, `interface net1: parent "enp99": the node has no such link: `},
			{"no parent at all", func(_ *Pod, i *Interface) { i.Link.Parent.Name = "" }, `interface net1: parent: want the name of a netdev`},
			{"no parent in the pod", func(_ *Pod, i *Interface) { i.Link.InContainer = true }, `interface net1: parent "enp11s0f0np0": the pod has no such link: file does not exist`},
			{"foreign", func(_ *Pod, i *Interface) { i.Link = Link{} }, `interface net1: the pod has no link "net1", which the network's own plugin should have made: file does not exist`},
			{"kind", func(_ *Pod, i *Interface) { i.Link.Kind = "sriov" }, `interface net1: kind "sriov": want macvlan, ipvlan, vlan or host-device, or none for one that another's plugin makes`},
			{"mode", func(_ *Pod, i *Interface) { i.Link.Mode = "foo" }, `interface net1: mode "foo": want bridge, private, vepa, passthru`},
			{"MTU", func(_ *Pod, i *Interface) { i.Link.MTU = 9000 }, `interface net1: mtu 9000: want 1280 to 1500, that of enp11s0f0np0`},
			{"small MTU", func(_ *Pod, i *Interface) { i.Tuning.MTU = 1000 }, `interface net1: mtu 1000: want 1280 to 1500, that of enp11s0f0np0`},
			{"VLAN", func(_ *Pod, i *Interface) { i.Link.Kind, i.Link.VLANID = VLAN, 4095 }, `interface net1: VLAN 4095: want 1 to 4094`},
			{"VLAN of a macvlan", func(_ *Pod, i *Interface) { i.Link.VLANID = 5 }, `interface net1: VLAN 5: want none for kind macvlan`},
			{"shared without members", func(_ *Pod, i *Interface) { i.Link.Parent.VLANID = 5 }, `interface net1: parent "enp11s0f0np0": want the netdevs that it is made of`},
			{"shared of two", func(_ *Pod, i *Interface) {
				i.Link.Parent = Parent{Name: "up0.5", VLANID: 5, Members: []string{"up0", "up1"}}
			}, `interface net1: parent "up0.5": 2 members up0, up1: want one, or a bond of them`},
			{"shared is another", func(_ *Pod, i *Interface) {
				i.Link.Parent = Parent{Name: "up1", VLANID: 5, Members: []string{"up0"}}
			}, `interface net1: parent "up1": the node has a link of that name with kind "veth": want "vlan", or another name`},
			{"bond mode", func(_ *Pod, i *Interface) {
				i.Link.Parent = Parent{Name: "b", Members: []string{"up0"}, Bond: &Bond{Mode: "lacp"}}
			}, `interface net1: parent "b": bond mode "lacp": want one of balance-rr, active-backup, balance-xor, broadcast, 802.3ad, balance-tlb, balance-alb, or its number`},
			{"no device", func(_ *Pod, i *Interface) { i.Link = Link{Kind: HostDevice, Device: Device{Name: "none"}} }, `interface net1: device name "none": the node has no such link: file does not exist`},
			{"two devices", func(_ *Pod, i *Interface) {
				i.Link = Link{Kind: HostDevice, Device: Device{Name: "up0", PCIAddress: "0000:00:00.0"}}
			}, `interface net1: device: 2 of name, MAC, kernelpath and PCI address are given: want one`},
			{"sysctl", func(_ *Pod, i *Interface) { i.Tuning.Sysctls = map[string]string{"kernel.panic": "1"} }, `interface net1: sysctl "kernel.panic": want one of the pod's network, such as net.ipv4.conf.IFNAME.rp_filter`},
			{"sysctl upwards", func(_ *Pod, i *Interface) { i.Tuning.Sysctls = map[string]string{"net/../kernel/panic": "1"} }, `interface net1: sysctl "net/../kernel/panic": want one of the pod's network, such as net.ipv4.conf.IFNAME.rp_filter`},
			{"sysctl that is not", func(_ *Pod, i *Interface) { i.Tuning.Sysctls = map[string]string{"net.none": "1"} }, `interface net1: sysctl net/none: no such file or directory`},
			{"tuned MAC", func(_ *Pod, i *Interface) { i.Link.Mode, i.Tuning.MAC = "passthru", mac("02:00:00:00:00:01") }, `interface net1: tuning mac 02:00:00:00:00:01: want none: a macvlan passthru has its parent's`},
			{"routing", func(_ *Pod, i *Interface) { i.Rail = 200 }, `interface net1 is rail 200: want 0 to 151`},
		}
		before := w.snapshot()
		for _, tt := range tests {
			pod := w.eightRails("46")
			pod.Interfaces = pod.Interfaces[:2]
			tt.change(&pod, &pod.Interfaces[1])
			_, err := w.a.Plan(t.Context(), pod)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%s: %v\nwant %s", tt.name, err, tt.want)
			}
		}
		w.same("planned", before)
	})
}

// TestPlanEnds wants nothing to be planned for somebody who waits no more.
func TestPlanEnds(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		pod := w.eightRails("4")
		pod.Interfaces[1].Link.Parent.Name = "enp99"
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if _, err := w.a.Plan(ctx, pod); !errors.Is(err, gone) || strings.Contains(err.Error(), "enp99") {
			t.Errorf("error %v, want %v and nothing of a parent that is missing", err, gone)
		}
	})
}

// TestSameMAC holds that two rails may have one MAC address where they are in
// different networks, and that what the kernel would only call busy is said.
func TestSameMAC(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.rails = 3
		pod := w.eightRails("4")
		pod.Interfaces[1].MAC = mac("02:00:00:00:00:07")
		pod.Interfaces[3].MAC = mac("02:00:00:00:00:07")
		plan := w.plan(pod)
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Errorf("on different parents: %v", err)
		}
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		pod.Interfaces[3].Link.Parent.Name = parentName(0)
		_, err := w.a.Plan(t.Context(), pod)
		if want := "interfaces net1 and net3: both have MAC address 02:00:00:00:00:07 on parent enp11s0f0np0: want one of its own for each"; err == nil || err.Error() != want {
			t.Errorf("on one parent: %v\nwant %s", err, want)
		}
	})
}

// TestApplyErrors holds what is said of what has changed since it was planned.
func TestApplyErrors(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.rails = 2
		plan := w.plan(w.eightRails("4"))

		w.must(w.pod, rtnl.LinkAdd{Name: "net2", Kind: "bridge"})
		before := w.snapshot()
		_, err := w.a.Apply(t.Context(), plan)
		if err == nil || !errors.Is(err, fs.ErrExist) || !strings.HasPrefix(err.Error(), `interface net2: links: name "net2" is taken in the pod: want a free one: `) {
			t.Errorf("name taken: %v", err)
		}
		w.same("name taken", before)
		w.must(w.pod, rtnl.LinkDelete{Name: "net2"})

		w.must(w.node, rtnl.LinkDelete{Name: parentName(1)})
		before = w.snapshot()
		_, err = w.a.Apply(t.Context(), plan)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), `interface net2: links: parent of index 111: the node has no such link any more: `) {
			t.Errorf("parent gone: %v", err)
		}
		w.same("parent gone", before)

		plan.Version = Version + 1
		if err := w.a.Undo(t.Context(), plan, nil); err == nil {
			t.Error("a plan of a later release: want an error")
		}
	})
}

// TestPeer holds that the node's end of eth0 is found.
func TestPeer(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		newPod(t, w) // whose eth0 has the same number
		pod := w.eightRails("46")
		told := w.plan(pod)
		pod.Peer = routing.Peer{}
		if diff := cmp.Diff(told, w.plan(pod), comparable()...); diff != "" {
			t.Errorf("plan with the peer that is told and with that which is found (-told +found):\n%s", diff)
		}
		w.must(w.node, rtnl.LinkSet{Index: 300, NetNS: int(kerneltest.NewNetNS(t).Fd())})
		if host := w.plan(pod).Routing.Host; len(host.Routes) != 0 {
			t.Errorf("the other end is not on the node: %+v, want nothing there", host)
		}
	})
}

// TestParentDown holds that a parent that is down is told of, and stays so.
func TestParentDown(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.rails = 1
		w.must(w.node, rtnl.LinkSet{Index: 110, Up: new(false)})
		plan := w.plan(w.eightRails("4"))
		if want := []string{"net1: parent enp11s0f0np0 is down: nothing passes until somebody sets it up"}; !slices.Equal(plan.Notes, want) {
			t.Errorf("notes %q, want %q", plan.Notes, want)
		}
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Error(err)
		}
		if l := w.link(w.node, parentName(0)); l.Up {
			t.Error("the parent is up: want it left down")
		}
	})
}

// TestManyPods attaches and detaches pods at once.
func TestManyPods(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.rails = 2
		before := w.snapshot()
		var all sync.WaitGroup
		for n := range 8 {
			other := newPodAt(t, w, n+1)
			pod := other.eightRails("4")
			pod.ContainerID = fmt.Sprintf("%032d", n)
			for i := 1; i < len(pod.Interfaces); i++ {
				pod.Interfaces[i].Addresses = []netip.Prefix{prefix(fmt.Sprintf("172.16.%d.%d/24", 10+i, 100+n))}
			}
			all.Go(func() {
				for range 3 {
					plan, err := w.a.Plan(t.Context(), pod)
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := w.a.Apply(t.Context(), plan); err != nil {
						t.Error(err)
					}
					if err := w.a.Check(t.Context(), plan); err != nil {
						t.Error(err)
					}
					if err := w.a.Undo(t.Context(), plan, nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if rules := w.hostRules(); len(rules) != 0 {
			t.Errorf("rules %v: want none after the last pod", rules)
		}
		after := w.snapshot()
		if diff := cmp.Diff(before.Pod, after.Pod); diff != "" {
			t.Errorf("a pod that was left alone (-before +after):\n%s", diff)
		}
	})
}

func TestSysctlPath(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"net.core.somaxconn":                   "net/core/somaxconn",
		"net.ipv4.conf.IFNAME.rp_filter":       "net/ipv4/conf/net1.5/rp_filter",
		"net/ipv4/conf/IFNAME/rp_filter":       "net/ipv4/conf/net1.5/rp_filter",
		"net/ipv4/conf/eth0.100/rp_filter":     "net/ipv4/conf/eth0.100/rp_filter",
		"net.ipv4.conf.eth0/100.rp_filter":     "net/ipv4/conf/eth0.100/rp_filter",
		"net.ipv4.neigh.IFNAME.base_reachable": "net/ipv4/neigh/net1.5/base_reachable",
	} {
		if got := sysctlPath(name, "net1.5"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// FuzzTuned holds that no sysctl of a network is outside of the pod's network.
func FuzzTuned(f *testing.F) {
	for _, name := range []string{"net.core.somaxconn", "net/ipv4/conf/IFNAME/rp_filter", "net/../kernel/panic", "net..kernel", "/net/x", "net.", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		all, err := tuned(Interface{Interface: routing.Interface{Name: "net1"}, Tuning: Tuning{Sysctls: map[string]string{name: "1"}}})
		if err != nil {
			return
		}
		path := filepath.Join("/proc/sys", all[0].Path)
		if !strings.HasPrefix(path, "/proc/sys/net/") || path != "/proc/sys/"+all[0].Path {
			t.Errorf("%q is written to %s", name, path)
		}
	})
}
