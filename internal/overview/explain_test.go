package overview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// podObjects are of a pod on node n1 with one rail, which has 10.0.0.1 of pool a.
func podObjects() *PodObjects {
	e := endpoint("p", "a", "10.0.0.1/24")
	e.Status.Current.UID, e.Status.Current.Node, e.Status.Current.IPs[0].Interface = "u1", "n1", "net1"
	o := &PodObjects{
		Pod:          metav1.ObjectMeta{Namespace: "ai", Name: "p", UID: "u1", Annotations: map[string]string{cniv1.AnnotationNetworks: "rail"}},
		PodNamespace: metav1.ObjectMeta{Name: "ai"}, PodNode: metav1.ObjectMeta{Name: "n1"},
		Config: policy.DefaultConfig(), Endpoint: e, EndpointRead: true, LeaseRead: true,
		Lease: &v1alpha1.AddressLease{ObjectMeta: metav1.ObjectMeta{Name: "n1", Generation: 3}, Status: v1alpha1.AddressLeaseStatus{
			ObservedGeneration: 3,
			Pools:              []v1alpha1.LeasedPool{{Pool: "a", Grants: []v1alpha1.Grant{{Epoch: 5, Addresses: []string{"10.0.0.1-10.0.0.4"}}}}},
		}},
	}
	o.Pools = []*v2beta1.SpiderIPPool{poolObject("a", "10.0.0.0/24", "10.0.0.1-10.0.0.9")}
	o.NADs = []*cniv1.NetworkAttachmentDefinition{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: "rail"},
		Spec:       cniv1.NetworkAttachmentDefinitionSpec{Config: `{"ipam":{"type":"spiderpool","default_ipv4_ippool":["a"]}}`},
	}}
	o.Ledgers = []*v1alpha1.PoolLedger{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.PoolLedgerSpec{
		Pool: "a", Part: "10.0.0.0-10.0.0.255", Epoch: 6, Runs: []v1alpha1.Run{{Addresses: "10.0.0.1-10.0.0.4", Epoch: 5, Node: "n1"}},
	}}}
	return o
}

// TestGiven has one contradiction each.
func TestGiven(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*PodObjects)
		want   string // the problem
	}{
		"none": {func(*PodObjects) {}, ""},
		"kept in quarantine": {func(o *PodObjects) {
			o.Ledgers[0].Spec.Runs[0] = v1alpha1.Run{Addresses: "10.0.0.1", Quarantine: &v1alpha1.Quarantine{Reason: "in use before Railhead", Pod: "ai/p"}}
		}, ""},
		"in quarantine": {func(o *PodObjects) {
			o.Ledgers[0].Spec.Runs[0] = v1alpha1.Run{Addresses: "10.0.0.1", Quarantine: &v1alpha1.Quarantine{Reason: "node is gone"}}
		}, "the ledger gives it to nobody (in quarantine: node is gone)"},
		"free":                  {func(o *PodObjects) { o.Ledgers[0].Spec.Runs[0].Addresses = "10.0.0.2-10.0.0.4" }, "the ledger has it free"},
		"of another node":       {func(o *PodObjects) { o.Ledgers[0].Spec.Runs[0].Node = "n2" }, "the ledger gives it to node n2"},
		"by another epoch":      {func(o *PodObjects) { o.Ledgers[0].Spec.Runs[0].Epoch = 6 }, "the AddressLease shows it by epoch 5"},
		"not leased":            {func(o *PodObjects) { o.Lease.Status.Pools = nil }, "the AddressLease of node n1 does not show it"},
		"lease not read":        {func(o *PodObjects) { o.Lease, o.LeaseRead = nil, false }, ""},
		"no ledger":             {func(o *PodObjects) { o.Ledgers[0].Spec.Pool = "b" }, "no ledger knows of it"},
		"ledgers not read":      {func(o *PodObjects) { o.Ledgers = nil }, ""},
		"without prefix length": {func(o *PodObjects) { o.Endpoint.Status.Current.IPs[0].IPv4 = new("10.0.0.1") }, "is no address with a prefix length"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := podObjects()
			tt.change(o)
			e, errs := Explain(o)
			if len(errs) > 0 || len(e.Interfaces) != 2 || len(e.Interfaces[1].Given) != 1 {
				t.Fatalf("%+v, %v", e, errs)
			}
			if got := e.Interfaces[1].Given[0].Problem; got != tt.want {
				t.Errorf("problem %q, want %q", got, tt.want)
			}
		})
	}
}

// TestNotGiven has one reason each why the pod has nothing.
func TestNotGiven(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*PodObjects)
		want   string // part of what is said
	}{
		"nothing is short":    {func(*PodObjects) {}, "net1: node n1 is short of nothing: its container runtime has not asked for the pod yet, or"},
		"not answered":        {func(o *PodObjects) { o.Lease.Generation = 4 }, "the controller has not answered AddressLease n1 yet (generation 4, answered 3)"},
		"short":               {func(o *PodObjects) { o.Lease.Status.Pools[0].Short = "all is held" }, "net1: node n1 is short of pool a: all is held"},
		"another pool short":  {func(o *PodObjects) { o.Lease.Status.Pools = []v1alpha1.LeasedPool{{Pool: "b", Short: "x"}} }, "is short of nothing"},
		"an earlier pod's":    {func(o *PodObjects) { o.Endpoint = podObjects().Endpoint; o.Pod.UID = "u2" }, "SpiderEndpoint ai/p is of an earlier pod (UID u1) and not of this one"},
		"no node yet":         {func(o *PodObjects) { o.PodNode = metav1.ObjectMeta{} }, "the pod is on no node yet"},
		"fenced":              {func(o *PodObjects) { o.Lease.Status = fenced(); o.Lease.Generation = 9 }, "node n1, by its AddressLease: node is fenced"},
		"runs":                {func(o *PodObjects) { o.Phase = "Running" }, "the pod runs, and has no SpiderEndpoint: it was started before"},
		"unread":              {func(o *PodObjects) { o.EndpointRead = false }, "since its SpiderEndpoint could not be read"},
		"no lease":            {func(o *PodObjects) { o.Lease = nil }, "node n1 has no AddressLease"},
		"a pool of no use":    {func(o *PodObjects) { o.Pools[0].Spec.Subnet = "10.9.0.0/24" }, "not ready: spec.ips[0]"},
		"the controller says": {func(o *PodObjects) { o.Pools[0].Status.Conditions = notReady() }, "a: not ready: Overlaps: it overlaps pool b"},
		"a bad annotation":    {func(o *PodObjects) { o.Pod.Annotations[v2beta1.AnnotationRoutes] = "x" }, "metadata.annotations[ipam.spidernet.io/routes]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := podObjects()
			o.Endpoint = nil
			tt.change(o)
			e, _ := Explain(o)
			said := strings.Join(e.Why, "\n") + "\n" + e.Interfaces[1].Why
			if !strings.Contains(said, tt.want) || len(e.Interfaces[1].Given) > 0 {
				t.Errorf("given %+v, said %q, want %q", e.Interfaces[1].Given, said, tt.want)
			}
		})
	}
}

func notReady() []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Overlaps", Message: "it overlaps pool b"}}
}

// TestExplainBadLedger: one that cannot be understood hides no other.
func TestExplainBadLedger(t *testing.T) {
	t.Parallel()
	o := podObjects()
	o.Ledgers = append([]*v1alpha1.PoolLedger{{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}}, o.Ledgers...)
	e, errs := Explain(o)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "ledger bad") {
		t.Errorf("errors %v, want one of ledger bad", errs)
	}
	if g := e.Interfaces[1].Given[0]; g.Epoch != 5 || g.Problem != "" || g.Lease != "n1" {
		t.Errorf("given %+v", g)
	}
}

func fenced() v1alpha1.AddressLeaseStatus {
	return v1alpha1.AddressLeaseStatus{ObservedGeneration: 3, Reason: "node is fenced"}
}

// TestPodStates has pods that get nothing for what they are.
func TestPodStates(t *testing.T) {
	t.Parallel()
	gone := func(o *PodObjects) { o.Endpoint = nil }
	for name, tt := range map[string]struct {
		change []func(*PodObjects)
		want   Explanation // of which why, warnings and how many addresses are compared
		given  int
	}{
		"on the node's network": {
			[]func(*PodObjects){gone, func(o *PodObjects) { o.HostNetwork = true }},
			Explanation{
				Why:      []string{"the pod uses the node's network (spec.hostNetwork): it gets no addresses"},
				Warnings: []string{"annotation k8s.v1.cni.cncf.io/networks has no effect: a pod on the node's network is attached to no other"},
			},
			0,
		},
		"ended": {
			[]func(*PodObjects){gone, func(o *PodObjects) { o.Phase = "Succeeded" }},
			Explanation{Why: []string{"the pod has ended (Succeeded): it holds no addresses"}},
			0,
		},
		"ended, on no node": {
			[]func(*PodObjects){gone, func(o *PodObjects) { o.Phase, o.PodNode = "Failed", metav1.ObjectMeta{} }},
			Explanation{Why: []string{"the pod has ended (Failed): it holds no addresses"}},
			0,
		},
		"ended just now": {
			[]func(*PodObjects){func(o *PodObjects) { o.Phase = "Failed" }},
			Explanation{Why: []string{"the pod has ended (Failed) and still holds addresses: the agent of node n1 releases them when the container runtime says that it ended, or within seven minutes"}},
			1,
		},
		"ended, not known": {
			[]func(*PodObjects){gone, func(o *PodObjects) { o.Phase, o.EndpointRead = "Failed", false }},
			Explanation{Why: []string{"the pod has ended (Failed): what it still holds is not known, since its SpiderEndpoint could not be read"}},
			0,
		},
		"ended, keeps its address": {
			[]func(*PodObjects){func(o *PodObjects) {
				o.Pod.Name, o.Phase, o.Endpoint.Status.Current.Node = "web-0", "Succeeded", ""
				o.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Controller: new(true)}}
				o.Ledgers[0].Spec.Runs[0] = v1alpha1.Run{Addresses: "10.0.0.1", Identity: "StatefulSet/ai/web/0"}
			}},
			Explanation{Why: []string{"the pod has ended (Succeeded): its addresses are kept for the next pod of StatefulSet/ai/web/0"}},
			1,
		},
		"no network": {
			[]func(*PodObjects){gone, func(o *PodObjects) { o.Pod.Annotations = nil }},
			Explanation{Why: []string{"the pod is on the cluster's network alone: want annotation k8s.v1.cni.cncf.io/networks with networks whose addresses are of SpiderIPPools"}},
			0,
		},
		"none of ours": {
			[]func(*PodObjects){gone, func(o *PodObjects) { o.NADs[0].Spec.Config = `{"ipam":{"type":"whereabouts"}}` }},
			Explanation{Why: []string{"none of the networks that the pod's annotations name takes addresses of SpiderIPPools: want ipam.type spiderpool in the configuration of one"}},
			0,
		},
		"fenced, with addresses": {
			[]func(*PodObjects){func(o *PodObjects) { o.Lease.Status.Reason = "node is fenced" }},
			Explanation{Why: []string{"node n1, by its AddressLease: node is fenced"}},
			1,
		},
		"of before": {
			[]func(*PodObjects){func(o *PodObjects) {
				o.Ledgers[0].Spec.Runs[0] = v1alpha1.Run{Addresses: "10.0.0.1", Quarantine: &v1alpha1.Quarantine{Reason: "in use before Railhead", Pod: "ai/p"}}
			}},
			Explanation{Warnings: []string{"net1: 10.0.0.1 is kept for the pod in quarantine (in use before Railhead): nobody else gets it, and it is free when the pod is gone"}},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := podObjects()
			for _, change := range tt.change {
				change(o)
			}
			e, errs := Explain(o)
			given := 0
			for i := range e.Interfaces {
				for _, g := range e.Interfaces[i].Given {
					if given++; g.Problem != "" {
						t.Errorf("problem with %s: %s", g.Address, g.Problem)
					}
				}
			}
			if diff := cmp.Diff(tt.want, Explanation{Why: e.Why, Warnings: e.Warnings}); diff != "" || given != tt.given || len(errs) > 0 {
				t.Errorf("%d addresses, want %d; errors %v; -want +got:\n%s", given, tt.given, errs, diff)
			}
		})
	}
}
