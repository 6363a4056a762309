package address

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// world is an API server, and what a cache has of it, which is up to the test.
type world struct {
	api   client.Client
	cache client.Client
	*sweeper
	woken  int
	told   []string
	config policy.Config
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v2beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	machines := kubeVirt()
	for _, kind := range machines {
		scheme.AddKnownTypeWithName(kind, &metav1.PartialObjectMetadata{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &metav1.PartialObjectMetadataList{})
	}
	return scheme
}

// fakeAPI is an API server that has copies of objects: it writes their versions into
// them, and tests that run at the same time have some together.
func fakeAPI(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	var own []client.Object
	for _, o := range objects {
		own = append(own, o.DeepCopyObject().(client.Object))
	}
	return fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(own...).
		WithStatusSubresource(&v1alpha1.AddressLease{}, &v2beta1.SpiderIPPool{}).WithInterceptorFuncs(hooks).Build()
}

// newWorld has the API server and the cache know the same.
func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		api: fakeAPI(t, interceptor.Funcs{}, objects...), cache: fakeAPI(t, interceptor.Funcs{}, objects...),
		sweeper: newSweeper(defaultDoubt), config: policy.DefaultConfig(),
	}
	s := w.sweeper
	s.cluster, s.cache, s.live, s.api = newCluster(), w.cache, w.api, w.api
	s.config = func() policy.Config { return w.config }
	s.ids = &identities{cache: w.cache, live: w.api, config: s.config}
	s.wake = func() { w.woken++ }
	s.tell = func(text string, args ...any) {
		w.told = append(w.told, text+fmt.Sprint(args...))
	}
	for _, o := range objects {
		w.know(t, o)
	}
	return w
}

// know has the cluster know an object as the API server has it.
func (w *world) know(t *testing.T, o client.Object) {
	t.Helper()
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	switch o := o.(type) {
	case *corev1.Node:
		w.cluster.putNode(o)
	case *v1alpha1.AddressLease:
		w.cluster.putLease(o)
	case *v1alpha1.PoolLedger:
		w.cluster.putLedger(o)
	case *v2beta1.SpiderEndpoint:
		w.cluster.putEndpoint(o)
	case *v2beta1.SpiderIPPool:
		w.cluster.putPool(o)
	}
}

// look sweeps at a time since the first look, and wants no error.
func (w *world) look(t *testing.T, since time.Duration) {
	t.Helper()
	if err := w.sweep(t.Context(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(since)); err != nil {
		t.Errorf("after %s: %v", since, err)
	}
}

// has says whether the API server has an object.
func (w *world) has(t *testing.T, o client.Object) bool {
	t.Helper()
	fresh, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no object", o)
	}
	err := w.api.Get(t.Context(), client.ObjectKeyFromObject(o), fresh)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func testNode(name string, uid types.UID) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
}

func testLease(name string, uid types.UID) *v1alpha1.AddressLease {
	return &v1alpha1.AddressLease{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "lease-" + types.UID(name)},
		Spec:       v1alpha1.AddressLeaseSpec{NodeUID: uid},
	}
}

// testLedger is that of pool rail0.
func testLedger(runs ...v1alpha1.Run) *v1alpha1.PoolLedger {
	return &v1alpha1.PoolLedger{
		ObjectMeta: metav1.ObjectMeta{Name: "rail0", UID: "ledger-rail0"},
		Spec:       v1alpha1.PoolLedgerSpec{Pool: "rail0", Part: "10.0.0.0-10.0.0.255", Epoch: 7, Runs: runs},
	}
}

// testEndpoint is one of a pod of the same name, which owns it.
func testEndpoint(name string, edit ...func(*v2beta1.SpiderEndpoint)) *v2beta1.SpiderEndpoint {
	e := &v2beta1.SpiderEndpoint{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: "endpoint-" + types.UID(name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: "pod-" + types.UID(name)}},
		},
		Status: v2beta1.EndpointStatus{
			Current:             v2beta1.EndpointAllocation{UID: "pod-" + name, Node: "node1"},
			OwnerControllerType: "Pod", OwnerControllerName: name,
		},
	}
	for _, change := range edit {
		change(e)
	}
	return e
}

// unowned has an endpoint outlive its pod.
func unowned(e *v2beta1.SpiderEndpoint) { e.OwnerReferences = nil }

// ofSet has an endpoint be of an identity of StatefulSet web.
func ofSet(e *v2beta1.SpiderEndpoint) {
	unowned(e)
	e.Status.OwnerControllerType, e.Status.OwnerControllerName = "StatefulSet", "web"
}

func testPod(name string) *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "pod-" + types.UID(name)}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return pod
}

func testSet(replicas, start int32) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
	if start > 0 {
		set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start}
	}
	return set
}
