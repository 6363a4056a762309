package standin

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/standin/deviceplugin"
)

func TestNodes(t *testing.T) {
	t.Parallel()
	o := Options{Nodes: MaxNodes, Dir: "/run/s", IPv4: true, IPv6: true}
	all := o.nodes()
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	gateways := prefixes("10.98.0.1/16", "fd00:98::1/64")
	want := map[int]Node{
		1: {
			Index: 1, Name: "standin1", Root: "/run/s/standin1", Uplink: "s1", Gateways: gateways,
			Hosts: prefixes("10.98.0.11/16", "fd00:98::b/64"), Pods: prefixes("10.128.1.0/24", "fd00:128:0:1::/64"),
		},
		1000: {
			Index: 1000, Name: "standin1000", Root: "/run/s/standin1000", Uplink: "s1000", Gateways: gateways,
			Hosts: prefixes("10.98.3.242/16", "fd00:98::3f2/64"), Pods: prefixes("10.131.232.0/24", "fd00:128:0:3e8::/64"),
		},
	}
	for i, n := range want {
		if diff := cmp.Diff(n, all[i-1], cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("node %d (-want +got):\n%s", i, diff)
		}
	}
}

// No two nodes have anything in common, nor with the nodes, rails and services that the rest of the cluster has.
func TestNodesAreApart(t *testing.T) {
	t.Parallel()
	c, err := plan.New(plan.Options{Nodes: plan.MaxNodes, Rails: plan.MaxRails, IPv4: true, IPv6: true})
	if err != nil {
		t.Fatal(err)
	}
	taken := slices.Concat(c.Host, c.Pods, c.Services)
	for _, r := range c.Rails {
		taken = append(taken, r.Gateways...)
	}
	o := Options{Nodes: MaxNodes, Dir: "/run/s", IPv4: true, IPv6: true}
	hosts, pods := map[netip.Addr]bool{}, map[netip.Prefix]bool{}
	for _, n := range o.nodes() {
		for i, host := range n.Hosts {
			if hosts[host.Addr()] || host.Addr() == n.Gateways[i].Addr() || pods[n.Pods[i]] {
				t.Errorf("%s: %s or %s is taken", n.Name, host, n.Pods[i])
			}
			hosts[host.Addr()], pods[n.Pods[i]] = true, true
			for _, p := range taken {
				if p.Overlaps(host) || p.Overlaps(n.Pods[i]) || host.Overlaps(n.Pods[i]) {
					t.Errorf("%s: %s and %s overlap with each other or with %s", n.Name, host, n.Pods[i], p)
				}
			}
		}
	}
}

func TestCheckTellsEverything(t *testing.T) {
	t.Parallel()
	err := (&Options{Dir: "here"}).check()
	for _, want := range []string{"nodes 0", `directory "here"`, "neither IPv4 nor IPv6", "no directory with CNI plugins"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: want %s", err, want)
		}
	}
}

// fullPod is a pod with everything that is read.
func fullPod() *core.Pod {
	always := core.ContainerRestartPolicyAlways
	limits := func(pairs map[core.ResourceName]string) core.ResourceRequirements {
		list := core.ResourceList{}
		for name, quantity := range pairs {
			list[name] = resource.MustParse(quantity)
		}
		return core.ResourceRequirements{Limits: list}
	}
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{Namespace: "ns", Name: "job-1", UID: "0-1", Annotations: map[string]string{RunsFor: "30s", ExitCode: "3", StopsIn: "1s"}},
		Spec: core.PodSpec{
			NodeName: "standin1", RestartPolicy: core.RestartPolicyNever,
			InitContainers: []core.Container{
				{Name: "first", Image: "i", Resources: limits(map[core.ResourceName]string{"example.com/vf": "1"})},
				{Name: "beside", Image: "s", RestartPolicy: &always},
			},
			Containers: []core.Container{
				{Name: "main", Image: "m", Resources: limits(map[core.ResourceName]string{"example.com/vf": "8", "cpu": "2", "hugepages-2Mi": "4Mi", "node.kubernetes.io/x": "1"})},
			},
		},
	}
}

func TestNewPod(t *testing.T) {
	t.Parallel()
	from := fullPod()
	got, err := newPod(from)
	if err != nil {
		t.Fatal(err)
	}
	want := &pod{
		uid: "0-1", namespace: "ns", name: "job-1", node: "standin1", annotations: maps.Clone(from.Annotations),
		containers: []container{{"main", "m", false}},
		initials:   []container{{"first", "i", false}, {"beside", "s", true}},
		devices: []deviceplugin.Container{
			{Name: "first", Init: true, Devices: map[string]int{"example.com/vf": 1}},
			{Name: "beside"},
			{Name: "main", Devices: map[string]int{"example.com/vf": 8}},
		},
		behaviour: behaviour{runsFor: 30 * time.Second, exitCode: 3, stopsIn: time.Second},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pod{}, container{}, behaviour{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBehaviourTellsEverything(t *testing.T) {
	t.Parallel()
	b, err := readBehaviour(map[string]string{RunsFor: "soon", StopsIn: "-1s", ExitCode: "256"})
	for _, want := range []string{RunsFor + `: "soon"`, StopsIn + `: "-1s"`, ExitCode + `: "256": want 0 to 255`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: want %s", err, want)
		}
	}
	if b.runsFor != 0 || b.stopsIn != 0 {
		t.Errorf("behaviour %+v", b)
	}
}

// A status goes over what the pod had before: what the scheduler said stays, addresses of before do not.
func TestStatusPatch(t *testing.T) {
	t.Parallel()
	from := fullPod()
	p, err := newPod(from)
	if err != nil {
		t.Fatal(err)
	}
	from.Status = core.PodStatus{
		Phase: core.PodPending, PodIP: "10.0.0.1", PodIPs: []core.PodIP{{IP: "10.0.0.1"}},
		Conditions: []core.PodCondition{{Type: core.PodScheduled, Status: core.ConditionTrue}, {Type: core.PodReady, Status: core.ConditionFalse}},
	}
	since := meta.NewTime(time.Unix(1700000000, 0))
	got := apply(t, p, from, p.running([]netip.Addr{netip.MustParseAddr("10.98.0.11")}, []netip.Addr{netip.MustParseAddr("10.128.1.2"), netip.MustParseAddr("fd00:128:0:1::2")}, since))
	if got.Phase != core.PodRunning || got.PodIP != "10.128.1.2" || got.HostIP != "10.98.0.11" || !got.StartTime.Equal(&since) {
		t.Errorf("status %+v", got)
	}
	if diff := cmp.Diff([]core.PodIP{{IP: "10.128.1.2"}, {IP: "fd00:128:0:1::2"}}, got.PodIPs); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	ready := map[string]bool{}
	for _, c := range slices.Concat(got.ContainerStatuses, got.InitContainerStatuses) {
		ready[c.Name] = c.Ready && (c.State.Running != nil) == (c.Name != "first") && (c.State.Terminated != nil) == (c.Name == "first")
	}
	if diff := cmp.Diff(map[string]bool{"main": true, "beside": true, "first": true}, ready); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	conditions := map[core.PodConditionType]core.ConditionStatus{}
	for _, c := range got.Conditions {
		conditions[c.Type] = c.Status
	}
	want := map[core.PodConditionType]core.ConditionStatus{
		core.PodScheduled: "True", core.PodReady: "True", core.ContainersReady: "True", core.PodInitialized: "True", core.PodReadyToStartContainers: "True",
	}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}

	from.Status = got
	over := apply(t, p, from, p.finished(3, since, meta.NewTime(since.Add(time.Minute))))
	if state := over.ContainerStatuses[0].State.Terminated; over.Phase != core.PodFailed || over.PodIP != got.PodIP || state == nil || state.ExitCode != 3 {
		t.Errorf("status at the end %+v", over)
	}
}

// apply is what an API server makes of a status.
func apply(t *testing.T, p *pod, to *core.Pod, s *core.PodStatus) core.PodStatus {
	t.Helper()
	patch, err := p.patch(s)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, &core.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	var merged core.Pod
	if err := json.Unmarshal(after, &merged); err != nil {
		t.Fatal(err)
	}
	return merged.Status
}

func TestPodAddresses(t *testing.T) {
	t.Parallel()
	interfaces := []*types100.Interface{{Name: "cni0"}, {Name: "eth0"}, {Name: "eth0", Sandbox: "/run/netns/x"}, {Name: "net1", Sandbox: "/run/netns/x"}}
	ip := func(text string, on *int) *types100.IPConfig {
		prefix, err := types.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		return &types100.IPConfig{Address: *prefix, Interface: on}
	}
	index := func(i int) *int { return &i }
	result := &types100.Result{
		CNIVersion: "1.0.0", Interfaces: interfaces,
		IPs: []*types100.IPConfig{ip("10.0.0.1/24", index(0)), ip("10.0.0.2/24", index(2)), ip("172.16.0.1/24", index(3)), ip("fd00::2/64", index(2)), ip("fd00::3/64", nil), ip("10.0.0.9/24", index(1))},
	}
	got, err := podAddresses(result)
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2"), netip.MustParseAddr("fd00::3")}
	if !slices.Equal(want, got) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	if _, err := podAddresses(&types100.Result{CNIVersion: "1.0.0"}); err == nil {
		t.Error("a pod without an address")
	}
}

func TestDefaultConflist(t *testing.T) {
	t.Parallel()
	o := Options{Nodes: 7, Dir: "/run/s", IPv4: true, IPv6: true}
	template, err := o.conflistTemplate()
	if err != nil {
		t.Fatal(err)
	}
	w, err := newNetwork(template, o.nodes()[6], nil)
	if err != nil {
		t.Fatal(err)
	}
	var bridge struct {
		Type string
		IPAM struct {
			DataDir string
			Ranges  [][]struct{ Subnet string }
		}
	}
	if err := json.Unmarshal(w.list.Plugins[0].Bytes, &bridge); err != nil {
		t.Fatal(err)
	}
	if got := bridge.IPAM.Ranges; bridge.Type != "bridge" || bridge.IPAM.DataDir != "/run/s/standin7/run/cni/networks" || len(got) != 2 ||
		got[0][0].Subnet != "10.128.7.0/24" || got[1][0].Subnet != "fd00:128:0:7::/64" {
		t.Errorf("plugin %+v", bridge)
	}
}

func TestMountsBelow(t *testing.T) {
	t.Parallel()
	const text = `22 1 0:4 net:[1] /run/s/n1.netns rw - nsfs x rw
23 1 0:4 net:[2] /run/s/n1/run/netns/cni-1 rw shared:3 - nsfs x rw
24 1 0:4 net:[3] /run/standins rw - nsfs x rw
25 1 0:4 net:[4] /run/s/a\040b\134 rw - nsfs x rw
26 1 0:5 / /run/s rw - tmpfs y rw
`
	got, err := mountsBelow("/run/s", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/run/s/n1.netns", "/run/s/n1/run/netns/cni-1", `/run/s/a b\`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := mountsBelow("/run/s", strings.NewReader("22 1 0:4\n")); err == nil {
		t.Error("a line without a mount point was read")
	}
}

func FuzzMountsBelow(f *testing.F) {
	f.Add(`22 1 0:4 net:[1] /run/s/x rw - nsfs x rw`)
	f.Fuzz(func(t *testing.T, text string) {
		found, err := mountsBelow("/run/s", strings.NewReader(text))
		for _, target := range found {
			if !strings.HasPrefix(target, "/run/s/") {
				t.Errorf("%q is not below (error %v)", target, err)
			}
		}
	})
}
