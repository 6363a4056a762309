package address

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam/selection"
)

// names are the nodes of a view.
func (w *world) names() []string {
	var names []string
	for name := range w.cluster.viewNodes() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestNodeGone wants a node that is not there to be gone by two looks half a
// minute apart and the API server's word, and not before.
func TestNodeGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testNode("node1", "1"))
	if err := w.api.Delete(t.Context(), testNode("node1", "1")); err != nil {
		t.Fatal(err)
	}
	w.cluster.removeNode("node1")
	for _, since := range []time.Duration{0, 29 * time.Second} {
		if w.look(t, since); strings.Join(w.names(), " ") != "node1" {
			t.Errorf("after %s there are %q", since, w.names())
		}
	}
	if uid := w.cluster.viewNodes()["node1"].UID; uid != "1" || w.woken > 0 {
		t.Errorf("UID %q, and %d rounds wanted", uid, w.woken)
	}
	if w.look(t, 30*time.Second); len(w.names()) > 0 || w.woken != 1 || !strings.Contains(strings.Join(w.told, ""), "node1") {
		t.Errorf("after 30 s there are %q, %d rounds wanted, told %q", w.names(), w.woken, w.told)
	}
}

// TestNodeThere wants a node that only the cache lacks, or that came back in
// between, to stay.
func TestNodeThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testNode("late", "1"), testNode("back", "1"))
	w.cluster.removeNode("late")
	w.cluster.removeNode("back")
	w.look(t, 0)
	w.cluster.putNode(testNode("back", "2"))
	w.look(t, 30*time.Second)
	w.cluster.removeNode("back")
	w.look(t, 31*time.Second)
	nodes := w.cluster.viewNodes()
	if nodes["late"].UID != "1" || nodes["back"].UID != "2" {
		t.Errorf("nodes %+v", nodes)
	}
}

// TestNodesThatLedgersName wants a controller that begins to take nothing from
// nodes that it does not see, and to give them nothing: it does not know their UID.
func TestNodesThatLedgersName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testLedger(v1alpha1.Run{Addresses: "10.0.0.1", Node: "node1", Target: "node2"}), testLease("node3", "3"))
	w.cluster.haunt()
	if got := strings.Join(w.names(), " "); got != "node1 node2 node3" {
		t.Errorf("there are %s", got)
	}
	for name, node := range w.cluster.viewNodes() {
		if node.UID != "" {
			t.Errorf("%s has UID %q", name, node.UID)
		}
	}
}

// TestNodeUnreadable wants an API server that fails to be an error and no word,
// and the other nodes to be looked at all the same.
func TestNodeUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.live = fakeAPI(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if key.Name == "bad" {
			return errors.New("no answer")
		}
		return c.Get(ctx, key, o, options...)
	}})
	for _, name := range []string{"bad", "good"} {
		w.cluster.putNode(testNode(name, "1"))
		w.cluster.removeNode(name)
	}
	w.look(t, 0)
	err := w.sweep(t.Context(), time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC))
	if err == nil || !strings.Contains(err.Error(), "node bad: no answer") || strings.Join(w.names(), " ") != "bad" {
		t.Errorf("error %v, and there are %q", err, w.names())
	}
}

// TestFenced wants the word of the out-of-service taint, and of an administrator
// about this very node.
func TestFenced(t *testing.T) {
	t.Parallel()
	word := func(name string, uid string) *v1alpha1.AddressLease {
		lease := testLease(name, "1")
		lease.Annotations = map[string]string{v1alpha1.AnnotationFenced: uid}
		return lease
	}
	tainted := testNode("tainted", "1")
	tainted.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	other := testNode("other", "1")
	other.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	w := newWorld(t, tainted, other, testNode("word", "1"), testNode("reborn", "2"),
		word("word", "1"), word("reborn", "1"), word("other", ""), word("away", "1"))
	want := map[string]bool{"tainted": true, "other": false, "word": true, "reborn": false, "away": true}
	for name, node := range w.cluster.viewNodes() {
		if node.Fenced != want[name] {
			t.Errorf("%s is fenced: %t", name, node.Fenced)
		}
	}
}

// TestIdentityGone wants parked addresses kept for as long as their pod may come
// back: what may is said by the StatefulSet or virtual machine, live.
func TestIdentityGone(t *testing.T) {
	t.Parallel()
	machine := func(kind int) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "vm"}}
		o.SetGroupVersionKind(kubeVirt()[kind])
		return o
	}
	tests := []struct {
		name     string
		identity string
		cached   []client.Object
		live     []client.Object
		edit     func(*world)
		want     bool
	}{
		{name: "no StatefulSet", identity: "StatefulSet/ns/web/0", want: true},
		{name: "an ordinal of it", identity: "StatefulSet/ns/web/1", cached: []client.Object{testSet(2, 0)}, live: []client.Object{testSet(2, 0)}},
		{name: "beyond it", identity: "StatefulSet/ns/web/2", cached: []client.Object{testSet(2, 0)}, live: []client.Object{testSet(2, 0)}, want: true},
		{name: "before its start", identity: "StatefulSet/ns/web/2", cached: []client.Object{testSet(2, 3)}, live: []client.Object{testSet(2, 3)}, want: true},
		{name: "from its start on", identity: "StatefulSet/ns/web/4", cached: []client.Object{testSet(2, 3)}, live: []client.Object{testSet(2, 3)}},
		{name: "only the cache lacks it", identity: "StatefulSet/ns/web/0", live: []client.Object{testSet(2, 0)}},
		{name: "scaled up since", identity: "StatefulSet/ns/web/2", cached: []client.Object{testSet(2, 0)}, live: []client.Object{testSet(3, 0)}},
		{
			name: "nobody keeps any", identity: "StatefulSet/ns/web/0", cached: []client.Object{testSet(2, 0)}, live: []client.Object{testSet(2, 0)},
			edit: func(w *world) { w.config.StatefulSets = false }, want: true,
		},
		{name: "no machine", identity: "VirtualMachine/ns/vm", want: true},
		{name: "a machine", identity: "VirtualMachine/ns/vm", live: []client.Object{machine(0)}},
		{name: "an instance alone", identity: "VirtualMachine/ns/vm", live: []client.Object{machine(1)}},
		{name: "no KubeVirt", identity: "VirtualMachine/ns/vm", edit: func(w *world) {
			w.ids.live = fakeAPI(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return &meta.NoKindMatchError{GroupKind: kubeVirt()[0].GroupKind()}
			}})
		}},
		{name: "unreadable", identity: "Something/ns/x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testLedger(v1alpha1.Run{Addresses: "10.0.0.1", Identity: tt.identity}))
			for _, o := range tt.cached {
				if err := w.cache.Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			for _, o := range tt.live {
				if err := w.api.Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.edit != nil {
				tt.edit(w)
			}
			w.look(t, 0)
			w.look(t, 29*time.Second)
			if w.isIdentityGoneNow(t.Context(), tt.identity) {
				t.Error("gone by less than two looks half a minute apart")
			}
			w.look(t, 30*time.Second)
			if got := w.isIdentityGoneNow(t.Context(), tt.identity); got != tt.want || w.woken > 0 != tt.want {
				t.Errorf("gone: %t, want %t; %d rounds wanted", got, tt.want, w.woken)
			}
		})
	}
}

// TestIdentityBack wants an identity that is back by the time of a round to keep
// its addresses.
func TestIdentityBack(t *testing.T) {
	t.Parallel()
	const id = "StatefulSet/ns/web/0"
	w := newWorld(t, testLedger(v1alpha1.Run{Addresses: "10.0.0.1", Identity: id}))
	w.look(t, 0)
	w.look(t, time.Minute)
	gone := w.isIdentityGoneNow(t.Context(), id)
	if err := w.cache.Create(t.Context(), testSet(1, 0)); err != nil {
		t.Fatal(err)
	}
	if back := !w.isIdentityGoneNow(t.Context(), id); !gone || !back {
		t.Errorf("gone at first: %t, and back: %t", gone, back)
	}
}

// TestPodGone wants addresses from before Railhead kept for as long as their pod,
// or a SpiderEndpoint of its name, is there.
func TestPodGone(t *testing.T) {
	t.Parallel()
	quarantine := func(address, pod string) v1alpha1.Run {
		return v1alpha1.Run{Addresses: address, Quarantine: &v1alpha1.Quarantine{Reason: "in use before Railhead", Pod: pod}}
	}
	w := newWorld(t, testPod("there"), testPod("late"), testEndpoint("vm"), testLedger(
		quarantine("10.0.0.1", "ns/there"), quarantine("10.0.0.2", "ns/late"), quarantine("10.0.0.3", "ns/vm"),
		quarantine("10.0.0.4", "ns/gone"), quarantine("10.0.0.5", "nonsense"), quarantine("10.0.0.6", "")))
	if err := w.cache.Delete(t.Context(), testPod("late")); err != nil {
		t.Fatal(err)
	}
	w.look(t, 0)
	if w.isPodGoneNow("ns/gone") {
		t.Error("gone at the first look")
	}
	w.look(t, 30*time.Second)
	for pod, want := range map[string]bool{"ns/there": false, "ns/late": false, "ns/vm": false, "ns/gone": true, "nonsense": false, "": false} {
		if got := w.isPodGoneNow(pod); got != want {
			t.Errorf("pod %q is gone: %t", pod, got)
		}
	}
}

// TestSuspects wants two looks apart, of which nothing in between says otherwise.
func TestSuspects(t *testing.T) {
	t.Parallel()
	s, start := newSuspects[string](30*time.Second), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	look := func(since int) bool {
		defer s.looked()
		return s.missing("a", start.Add(time.Duration(since)*time.Second))
	}
	for _, step := range []struct {
		name  string
		since int
		do    func()
		want  bool
	}{
		{"first", 0, nil, false},
		{"too early", 29, nil, false},
		{"in time", 30, nil, true},
		{"seen", 40, func() { s.there("a") }, false},
		{"nobody asked", 80, s.looked, false},
		{"again", 110, nil, true},
	} {
		if step.do != nil {
			step.do()
		}
		if got := look(step.since); got != step.want {
			t.Errorf("%s, after %d s: %t", step.name, step.since, got)
		}
	}
}

// TestIdentityOf reads whose addresses an endpoint has.
func TestIdentityOf(t *testing.T) {
	t.Parallel()
	set := testEndpoint("web-3", ofSet)
	noted := testEndpoint("x", unowned)
	noted.Annotations = map[string]string{v1alpha1.AnnotationIdentity: "VirtualMachine/ns/x"}
	machine := testEndpoint("vm", unowned)
	machine.Status.OwnerControllerType = "VirtualMachineInstance"
	other := testEndpoint("web-a", ofSet)
	for e, want := range map[*v2beta1.SpiderEndpoint]selection.Identity{
		set:                 {Kind: selection.KindStatefulSet, Namespace: "ns", Name: "web", Ordinal: 3},
		noted:               {Kind: selection.KindVirtualMachine, Namespace: "ns", Name: "x"},
		machine:             {Kind: selection.KindVirtualMachine, Namespace: "ns", Name: "vm"},
		other:               {},
		testEndpoint("pod"): {},
	} {
		if got := identityOf(e); got != want {
			t.Errorf("%s: %+v, want %+v", e.Name, got, want)
		}
	}
}
