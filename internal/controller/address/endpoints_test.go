package address

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// TestEndpointsEnd wants the endpoints of pods that are gone for good to end, as
// far as the configuration says so, and no others.
func TestEndpointsEnd(t *testing.T) {
	t.Parallel()
	deleted := func(e *v2beta1.SpiderEndpoint) {
		e.DeletionTimestamp, e.Finalizers = new(metav1.Now()), []string{v2beta1.Finalizer}
	}
	held := func(e *v2beta1.SpiderEndpoint) { e.Finalizers = []string{v2beta1.Finalizer} }
	otherPod := func(e *v2beta1.SpiderEndpoint) { e.Status.Current.UID = "earlier" }
	noted := func(e *v2beta1.SpiderEndpoint) {
		e.Annotations = map[string]string{v1alpha1.AnnotationIdentity: "Unknown/ns/x"}
	}
	tests := []struct {
		name     string
		endpoint *v2beta1.SpiderEndpoint
		others   []client.Object
		cached   bool // the pod is not in the cache
		keep     bool // enableCleanOutdatedEndpoint is false
		ends     bool
	}{
		{name: "of a pod that owns it", endpoint: testEndpoint("a")},
		{name: "of no pod", endpoint: testEndpoint("a", unowned), ends: true},
		{name: "of no pod, with a finalizer", endpoint: testEndpoint("a", unowned, held), ends: true},
		{name: "of no pod, and kept", endpoint: testEndpoint("a", unowned), keep: true},
		{name: "of a pod", endpoint: testEndpoint("a", unowned), others: []client.Object{testPod("a")}},
		{name: "of a pod that the cache lacks", endpoint: testEndpoint("a", unowned), others: []client.Object{testPod("a")}, cached: true},
		{name: "of an earlier pod", endpoint: testEndpoint("a", unowned, otherPod), others: []client.Object{testPod("a")}, ends: true},
		{name: "deleted, of no pod", endpoint: testEndpoint("a", deleted), keep: true, ends: true},
		{name: "deleted, of a pod", endpoint: testEndpoint("a", deleted), others: []client.Object{testPod("a")}},
		{name: "of an ordinal", endpoint: testEndpoint("web-0", ofSet), others: []client.Object{testSet(1, 0)}},
		{name: "of an ordinal that is gone", endpoint: testEndpoint("web-1", ofSet), others: []client.Object{testSet(1, 0)}, keep: true, ends: true},
		{name: "of an ordinal that is gone, and its pod is not", endpoint: testEndpoint("web-1", ofSet), others: []client.Object{testSet(1, 0), testPod("web-1")}},
		{name: "of what nobody knows", endpoint: testEndpoint("a", unowned, noted)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append(tt.others, tt.endpoint)...)
			w.config.CleanEndpoints = !tt.keep
			if tt.cached {
				if err := w.cache.Delete(t.Context(), tt.others[0].DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			w.look(t, 0)
			w.look(t, 29*time.Second)
			if !w.has(t, tt.endpoint) {
				t.Fatal("it ended by less than two looks half a minute apart")
			}
			w.look(t, 30*time.Second)
			if there := w.has(t, tt.endpoint); there == tt.ends {
				t.Errorf("it is there: %t, told %q", there, w.told)
			}
		})
	}
}

// TestUnclaim wants an endpoint that outlives its pod to name no node once its
// addresses are kept for nobody, or are on another node; and no other endpoint to
// be touched.
func TestUnclaim(t *testing.T) {
	t.Parallel()
	const id = "StatefulSet/ns/web/0"
	for name, tt := range map[string]struct {
		cached, live v1alpha1.Run
		want         string
	}{
		"on its node":           {v1alpha1.Run{Identity: id, Node: "node1"}, v1alpha1.Run{Identity: id, Node: "node1"}, "node1"},
		"on its way there":      {v1alpha1.Run{Identity: id, Node: "node2", Target: "node1"}, v1alpha1.Run{Identity: id, Node: "node2", Target: "node1"}, "node1"},
		"parked":                {v1alpha1.Run{Identity: id}, v1alpha1.Run{Identity: id}, ""},
		"on another":            {v1alpha1.Run{Identity: id, Node: "node2"}, v1alpha1.Run{Identity: id, Node: "node2"}, ""},
		"on its node by now":    {v1alpha1.Run{Identity: id, Node: "node2"}, v1alpha1.Run{Identity: id, Node: "node1"}, "node1"},
		"of others":             {v1alpha1.Run{Identity: "StatefulSet/ns/web/1"}, v1alpha1.Run{Identity: "StatefulSet/ns/web/1"}, "node1"},
		"of no identity at all": {v1alpha1.Run{Node: "node2"}, v1alpha1.Run{Node: "node2"}, "node1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.cached.Addresses, tt.live.Addresses = "10.0.0.1", "10.0.0.1"
			w := newWorld(t, testLedger(tt.live), testEndpoint("web-0", ofSet), testEndpoint("pod", func(e *v2beta1.SpiderEndpoint) { e.Status.Current.Node = "node9" }))
			w.cluster.putLedger(testLedger(tt.cached))
			if err := w.unclaim(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := &v2beta1.SpiderEndpoint{}
			if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "web-0"}, got); err != nil || got.Status.Current.Node != tt.want {
				t.Errorf("it names %q, want %q; error %v", got.Status.Current.Node, tt.want, err)
			}
			if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "pod"}, got); err != nil || got.Status.Current.Node != "node9" {
				t.Errorf("the other names %q; error %v", got.Status.Current.Node, err)
			}
		})
	}
}

// TestLeasesEnd wants the lease of a node that is gone to end once nothing is
// held by it.
func TestLeasesEnd(t *testing.T) {
	t.Parallel()
	granted := testLease("granted", "1")
	granted.Status.Pools = []v1alpha1.LeasedPool{{Pool: "rail0", Grants: []v1alpha1.Grant{{Epoch: 1, Addresses: []string{"10.0.0.2"}}}}}
	empty := testLease("empty", "1")
	empty.Status.Pools = []v1alpha1.LeasedPool{{Pool: "rail0", Short: "no node has this UID"}}
	w := newWorld(t, testNode("there", "1"), testLease("there", "1"), testLease("held", "1"), granted, empty,
		testLedger(v1alpha1.Run{Addresses: "10.0.0.1", Node: "held"}))
	w.look(t, 0)
	for _, name := range []string{"there", "held", "granted", "empty"} {
		if !w.has(t, testLease(name, "")) {
			t.Errorf("lease %s ended at the first look", name)
		}
	}
	w.look(t, 30*time.Second)
	for name, want := range map[string]bool{"there": true, "held": true, "granted": true, "empty": false} {
		if got := w.has(t, testLease(name, "")); got != want {
			t.Errorf("lease %s is there: %t", name, got)
		}
	}
}
