package overview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/policy/nad"
)

func poolObject(name, subnet string, ips ...string) *v2beta1.SpiderIPPool {
	return &v2beta1.SpiderIPPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       v2beta1.IPPoolSpec{Subnet: subnet, IPs: ips},
	}
}

func endpoint(pod string, addresses ...string) *v2beta1.SpiderEndpoint {
	e := &v2beta1.SpiderEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: pod}}
	for i := 0; i+1 < len(addresses); i += 2 {
		e.Status.Current.IPs = append(e.Status.Current.IPs, v2beta1.EndpointInterface{IPv4Pool: &addresses[i], IPv4: &addresses[i+1]})
	}
	return e
}

// TestPoolCounts has pool a, of 10.0.0.1 to .10, in one state each.
func TestPoolCounts(t *testing.T) {
	t.Parallel()
	reserved := []*v2beta1.SpiderReservedIP{{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: v2beta1.ReservedIPSpec{IPs: []string{"10.0.0.9-10.0.0.20"}}}}
	whole := func() *Objects {
		return &Objects{
			Pools: []*v2beta1.SpiderIPPool{poolObject("a", "10.0.0.0/24", "10.0.0.1-10.0.0.10")}, Reserved: reserved,
			Endpoints: []*v2beta1.SpiderEndpoint{
				endpoint("p0", "a", "10.0.0.1/24"), endpoint("p1", "a", "10.0.0.2/24", "b", "10.1.0.1/24"), endpoint("p2", "a", "10.0.0.9/24"),
			},
			Ledgers: []*v1alpha1.PoolLedger{},
		}
	}
	books := func(runs ...v1alpha1.Run) []*v1alpha1.PoolLedger {
		return []*v1alpha1.PoolLedger{ledgerObject("a", "10.0.0.0-10.0.0.255", runs...)}
	}
	held := v1alpha1.Run{Addresses: "10.0.0.1-10.0.0.4", Epoch: 1, Node: "n1"}
	pinned := v1alpha1.Run{Addresses: "10.0.0.5", Epoch: 1, Identity: "StatefulSet/ai/web/0"}
	quarantined := v1alpha1.Run{Addresses: "10.0.0.6-10.0.0.7", Epoch: 1, Quarantine: &v1alpha1.Quarantine{Reason: "node is gone", Pod: "ai/lost"}}
	tests := []struct {
		name   string
		change func(*Objects)
		want   string // total, reserved, used, held, quarantined, free
	}{
		{"no ledger yet", func(*Objects) {}, "10 2 3 0 0 6"},
		{"a ledger", func(o *Objects) { o.Ledgers = books(held, pinned, quarantined) }, "10 2 5 5 2 1"},
		{"held and no more of the pool", func(o *Objects) {
			o.Ledgers = books(held, v1alpha1.Run{Addresses: "10.0.0.20-10.0.0.29", Epoch: 1, Node: "n1"})
		}, "10 2 3 14 0 4"},
		{"a ledger that is made again", func(o *Objects) {
			o.Ledgers = books(held)
			o.Ledgers[0].Annotations = map[string]string{"railhead.io/rebuilding": "since a minute"}
		}, "10 2 3 4 0 0"},
		{"another pool's ledger", func(o *Objects) {
			o.Ledgers = []*v1alpha1.PoolLedger{ledgerObject("b", "10.0.0.0-10.0.0.255", v1alpha1.Run{Addresses: "10.0.0.3-10.0.0.4", Epoch: 1, Node: "n1"})}
			o.Ledgers[0].Annotations = map[string]string{"railhead.io/gives": "10.0.0.4-10.0.0.6"}
		}, "10 2 3 0 0 2"},
		{"ledgers unknown", func(o *Objects) { o.Ledgers = nil }, "10 2 3 - - -"},
		{"a ledger left out", func(o *Objects) { o.LedgersLeftOut = true }, "10 2 3 - - -"},
		{"reservations unknown", func(o *Objects) { o.Reserved = nil }, "10 - 3 0 0 -"},
		{"endpoints unknown", func(o *Objects) { o.Endpoints = nil }, "10 2 - 0 0 -"},
		{"endpoints unknown, but to the controller", func(o *Objects) {
			o.Endpoints, o.Pools[0].Status.AllocatedIPCount = nil, new(int64(5))
		}, "10 2 5 0 0 -"},
		{"no reservations and no endpoints", func(o *Objects) {
			o.Reserved, o.Endpoints = []*v2beta1.SpiderReservedIP{}, []*v2beta1.SpiderEndpoint{}
		}, "10 0 0 0 0 10"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := whole()
			tt.change(o)
			p := onePool(t, o)
			got := strings.Join([]string{number(p.Total), number(p.Reserved), number(p.Used), number(p.Held), number(p.Quarantined), number(p.Free)}, " ")
			if got != tt.want {
				t.Errorf("total, reserved, used, held, quarantined, free: %s, want %s", got, tt.want)
			}
		})
	}
}

// TestPoolBrokenLedger: what a ledger says that cannot be understood is not
// known, of its pool and of those that it may hold addresses of.
func TestPoolBrokenLedger(t *testing.T) {
	t.Parallel()
	pools, errs := Pools(&Objects{
		Pools: []*v2beta1.SpiderIPPool{
			poolObject("a", "10.0.0.0/24", "10.0.0.1-10.0.0.10"), poolObject("b", "10.0.0.0/16", "10.0.0.11-10.0.0.20"), poolObject("c", "10.9.0.0/24", "10.9.0.1"),
		},
		Reserved: []*v2beta1.SpiderReservedIP{}, Endpoints: []*v2beta1.SpiderEndpoint{},
		Ledgers: []*v1alpha1.PoolLedger{ledgerObject("a", "10.0.0.0-10.0.0.255", v1alpha1.Run{Addresses: "10.0.0.5-10.0.0.1", Node: "n1"})},
	})
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), `"10.0.0.5-10.0.0.1"`) || !strings.Contains(errs[0].Error(), "pool a") {
		t.Errorf("errors %v", errs)
	}
	for i, want := range []string{"a - - -", "b 0 0 -", "c 0 0 1"} {
		p := &pools[i]
		if got := strings.Join([]string{p.Name, number(p.Held), number(p.Quarantined), number(p.Free)}, " "); got != want {
			t.Errorf("held, quarantined, free of pool %s, want %s", got, want)
		}
	}
}

func ledgerObject(pool, part string, runs ...v1alpha1.Run) *v1alpha1.PoolLedger {
	return &v1alpha1.PoolLedger{ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: v1alpha1.PoolLedgerSpec{Pool: pool, Part: part, Epoch: 9, Runs: runs}}
}

// onePool shows the first pool, whose ledgers can all be understood.
func onePool(t *testing.T, o *Objects) Pool {
	t.Helper()
	pools, errs := Pools(o)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return pools[0]
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// TestOneBadPool wants a pool that breaks rules among others that do not.
func TestOneBadPool(t *testing.T) {
	t.Parallel()
	o := &Objects{Pools: []*v2beta1.SpiderIPPool{poolObject("b", "10.1.0.0/24", "10.9.0.1"), poolObject("a", "10.0.0.0/24"), poolObject("c", "x")}}
	pools, _ := Pools(o)
	var got []string
	for _, p := range pools {
		got = append(got, fmt.Sprintf("%s IPv%d refused:%v", p.Name, p.Family, p.Ready != nil && !*p.Ready && p.Why != ""))
	}
	want := []string{"a IPv4 refused:false", "b IPv4 refused:true", "c IPv0 refused:true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestControllerKnows: what the controller says of a pool counts, since it may
// have another configuration, such as one without SpiderSubnets.
func TestControllerKnows(t *testing.T) {
	t.Parallel()
	good := poolObject("a", "10.0.0.0/24", "10.0.0.1-10.0.0.10")
	good.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	silent := poolObject("b", "10.0.0.0/24", "10.0.0.11-10.0.0.20")
	subnet := &v2beta1.SpiderSubnet{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v2beta1.SubnetSpec{Subnet: "10.0.0.0/24", IPs: []string{"10.0.0.99"}}}
	pools, _ := Pools(&Objects{Pools: []*v2beta1.SpiderIPPool{good, silent}, Subnets: []*v2beta1.SpiderSubnet{subnet}})
	if p := pools[0]; p.Ready == nil || !*p.Ready || p.Why != "" {
		t.Errorf("the controller's pool: ready %v, why %q", p.Ready, p.Why)
	}
	if p := pools[1]; p.Ready == nil || *p.Ready || p.Why == "" {
		t.Errorf("the other: ready %v, why %q", p.Ready, p.Why)
	}
}

func TestFullestFirst(t *testing.T) {
	t.Parallel()
	of := func(name string, total, used int64) Pool { return Pool{Name: name, Total: &total, Used: &used} }
	pools := []Pool{{Name: "unknown"}, of("empty", 10, 0), of("half", 10, 5), of("full", 2, 2), of("all", 9, 9), of("none", 0, 0)}
	FullestFirst(pools)
	var got []string
	for _, p := range pools {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"all", "full", "half", "empty", "none", "unknown"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func config(name string, annotations map[string]string) *v2beta1.SpiderMultusConfig {
	return &v2beta1.SpiderMultusConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: name, UID: types.UID(name), Annotations: annotations},
		Spec: v2beta1.MultusConfigSpec{
			CNIType: new(v2beta1.CNIMacvlan),
			Macvlan: &v2beta1.MacvlanSpec{Parent: v2beta1.Parent{Master: []string{"eth1"}}},
		},
	}
}

func TestNADStates(t *testing.T) {
	t.Parallel()
	object := config("rail0", nil)
	catalog := (&Objects{Configs: []*v2beta1.SpiderMultusConfig{object}}).catalog()
	network, ok := catalog.Network("ai", "rail0")
	if !ok {
		t.Fatal("the network is refused")
	}
	made, err := nad.For(network)
	if err != nil {
		t.Fatal(err)
	}
	change := func(change func(*cniv1.NetworkAttachmentDefinition)) []*cniv1.NetworkAttachmentDefinition {
		n := made.DeepCopy()
		change(n)
		return []*cniv1.NetworkAttachmentDefinition{n}
	}
	tests := []struct {
		name  string
		nads  []*cniv1.NetworkAttachmentDefinition
		state NADState
		why   string
	}{
		{"not read", nil, NADUnknown, ""},
		{"missing", []*cniv1.NetworkAttachmentDefinition{}, NADMissing, ""},
		{"as made", change(func(*cniv1.NetworkAttachmentDefinition) {}), NADPresent, ""},
		{"written otherwise", change(func(n *cniv1.NetworkAttachmentDefinition) {
			n.Spec.Config = strings.ReplaceAll(n.Spec.Config, ",", ",\n ")
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, "example.com/theirs", "x")
		}), NADPresent, ""},
		{"another master", change(func(n *cniv1.NetworkAttachmentDefinition) {
			n.Spec.Config = strings.ReplaceAll(n.Spec.Config, "eth1", "eth2")
		}), NADDiffers, "spec.config"},
		{"no JSON", change(func(n *cniv1.NetworkAttachmentDefinition) { n.Spec.Config = "{" }), NADDiffers, "spec.config"},
		{"another name", change(func(n *cniv1.NetworkAttachmentDefinition) { n.Name = "other" }), NADMissing, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := &Objects{Configs: []*v2beta1.SpiderMultusConfig{object}, NADs: tt.nads}
			networks := Networks(o)
			i := len(networks) - 1 // after one of another name
			if got := networks[i].NAD; got.State != tt.state || got.Why != tt.why {
				t.Errorf("it is %+v, want %s %q", got, tt.state, tt.why)
			}
		})
	}
}

func pod(name string, annotations map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Annotations: annotations}}
}

// TestUsers is about whose network a pod means, and about pods that mean none.
func TestUsers(t *testing.T) {
	t.Parallel()
	key := func(namespace, name string) *cniv1.NetworkAttachmentDefinition {
		return &cniv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	o := &Objects{
		NADs: []*cniv1.NetworkAttachmentDefinition{key("ml", "rail0"), key("ai", "rail0"), key("kube-system", "eth"), key("ml", "idle")},
		Pods: []*metav1.PartialObjectMetadata{
			pod("b", map[string]string{cniv1.AnnotationNetworks: "rail0, ai/rail0@net7,rail0"}),
			pod("a", map[string]string{cniv1.AnnotationNetworks: `[{"name":"rail0"}]`, cniv1.AnnotationDefaultNetwork: "eth"}),
			pod("lost", map[string]string{cniv1.AnnotationNetworks: "rail9,rail9,ai/idle"}),
			pod("wrong", map[string]string{cniv1.AnnotationNetworks: "[", cniv1.AnnotationDefaultNetwork: "kube-system/eth"}),
			pod("lost-too", map[string]string{cniv1.AnnotationNetworks: "ai/idle"}),
			pod("plain", nil),
		},
	}
	got := map[string][]PodName{}
	for _, n := range Networks(o) {
		got[n.FullName()] = n.Pods
	}
	want := map[string][]PodName{
		"ml/rail0":        {{"ml", "a", 1}, {"ml", "b", 2}},
		"ai/rail0":        {{"ml", "b", 1}},
		"kube-system/eth": {{"ml", "a", 1}, {"ml", "wrong", 1}},
		"ml/idle":         {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	for namespace, parts := range map[string][]string{
		"":   {"pod ml/wrong: metadata.annotations", "2 pods, such as ml/lost, ask for NetworkAttachmentDefinition ai/idle", "pod ml/lost asks for NetworkAttachmentDefinition ml/rail9"},
		"ai": {"2 pods, such as ml/lost, ask for NetworkAttachmentDefinition ai/idle"},
	} {
		o.Namespace = namespace
		stray := Stray(o)
		if len(stray) != len(parts) {
			t.Fatalf("in namespace %q: %v, want %d", namespace, stray, len(parts))
		}
		for i, part := range parts {
			if !strings.HasPrefix(stray[i].Error(), part) {
				t.Errorf("in namespace %q: %q, want %q", namespace, stray[i], part)
			}
		}
	}
}

// TestPoolNames is about pools that are not there, or not of the family that a
// network names them for.
func TestPoolNames(t *testing.T) {
	t.Parallel()
	rail := config("rail0", nil)
	rail.Spec.Macvlan.IPPools = &v2beta1.NetworkPools{IPv4: []string{"v4", "v6", "v*", "v6*", "nope"}, IPv6: []string{"v4", "broken"}}
	pools := []*v2beta1.SpiderIPPool{
		poolObject("v4", "10.0.0.0/24", "10.0.0.1"), poolObject("v6", "fd00::/64", "fd00::1"), poolObject("broken", "x", "y"),
	}
	networks := Networks(&Objects{Configs: []*v2beta1.SpiderMultusConfig{rail}, Pools: pools})
	want := []PoolName{
		{Name: "v4", Family: 4, Exists: new(true)},
		{Name: "v6", Family: 4, Exists: new(true), WrongFamily: 6},
		{Name: "v*", Family: 4, Exists: new(true)},
		{Name: "v6*", Family: 4, Exists: new(true), WrongFamily: 6},
		{Name: "nope", Family: 4, Exists: new(false)},
		{Name: "v4", Family: 6, Exists: new(true), WrongFamily: 4},
		{Name: "broken", Family: 6, Exists: new(true)},
	}
	if diff := cmp.Diff(want, networks[0].Pools); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	networks = Networks(&Objects{Configs: []*v2beta1.SpiderMultusConfig{rail}})
	if p := networks[0].Pools[1]; p.Exists != nil || p.WrongFamily != 0 {
		t.Errorf("of pools that were not read: %+v", p)
	}
}

// TestLackingPools: a network that the controller has made is not ready for pods
// where no pool is there of those that it names for a family.
func TestLackingPools(t *testing.T) {
	t.Parallel()
	const end = ": pods are not attached for which neither they nor their namespace choose pools"
	for name, tt := range map[string]struct {
		named v2beta1.NetworkPools
		pools []*v2beta1.SpiderIPPool // nil: not read
		ready bool
		why   string
	}{
		"none named":    {v2beta1.NetworkPools{}, []*v2beta1.SpiderIPPool{}, true, ""},
		"not read":      {v2beta1.NetworkPools{IPv4: []string{"rail0"}}, nil, true, ""},
		"one is enough": {v2beta1.NetworkPools{IPv4: []string{"old", "rail*"}}, []*v2beta1.SpiderIPPool{poolObject("rail0", "10.0.0.0/24", "10.0.0.1")}, true, ""},
		"missing": {
			v2beta1.NetworkPools{IPv4: []string{"rail0", "rail-*"}, IPv6: []string{"rails0"}},
			[]*v2beta1.SpiderIPPool{poolObject("rails0", "10.0.0.0/24", "10.0.0.1")},
			false,
			`ippools.ipv4: there is no SpiderIPPool "rail0": the nearest name is "rails0"; ippools.ipv4: there is no SpiderIPPool "rail-*": the nearest name is "rails0"; ippools.ipv6: SpiderIPPool "rails0" is of IPv4` + end,
		},
		"no pools": {v2beta1.NetworkPools{IPv4: []string{"rail0"}}, []*v2beta1.SpiderIPPool{}, false, `ippools.ipv4: there is no SpiderIPPool "rail0", and no other` + end},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rail := config("rail0", nil)
			rail.Spec.Macvlan.IPPools = &tt.named
			rail.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
			n := Networks(&Objects{Configs: []*v2beta1.SpiderMultusConfig{rail}, Pools: tt.pools})[0]
			if n.Ready == nil || *n.Ready != tt.ready || n.Why != tt.why {
				t.Errorf("ready %v: %q, want %t: %q", n.Ready, n.Why, tt.ready, tt.why)
			}
		})
	}
}

// TestOwnPool has an application's own pool name the application, and not the
// selector that does.
func TestOwnPool(t *testing.T) {
	t.Parallel()
	app := policy.Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "app", UID: "u"}
	own := poolObject("own", "10.0.0.0/24", "10.0.0.1")
	own.Labels, own.Spec.PodAffinity, own.Spec.NodeName = app.Labels(), app.Affinity(), []string{"n1"}
	pools, _ := Pools(&Objects{Pools: []*v2beta1.SpiderIPPool{own}})
	if diff := cmp.Diff([]string{"Deployment default/app", "nodes n1"}, pools[0].For); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
