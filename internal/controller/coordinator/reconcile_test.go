package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// rig is a reconciler over a fake API server, which has the kinds of others
// that its objects are of and no more.
type rig struct {
	*reconciler

	t      *testing.T
	server client.WithWatch
	told   *recorder
	writes int
	failAt int   // the write that fails, from 1; 0: none
	isLate bool  // it fails after it has been done
	refuse error // the answer to every question about others
}

// errDown is the error of a write that fails.
var errDown = errors.New("the API server went away")

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v2beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	served := map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		if u, ok := o.(*unstructured.Unstructured); ok {
			served[u.GroupVersionKind()] = true
		}
	}
	g := &rig{t: t, told: &recorder{}}
	g.server = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v2beta1.SpiderCoordinator{}).Build()
	live := interceptor.NewClient(g.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return errors.Join(g.refuse, c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ours := list.(*v2beta1.SpiderCoordinatorList); g.refuse != nil && !ours {
				return g.refuse
			}
			if u, ok := list.(*unstructured.UnstructuredList); ok {
				kind := u.GroupVersionKind()
				kind.Kind = strings.TrimSuffix(kind.Kind, "List")
				if !served[kind] {
					return &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
				}
			}
			return c.List(ctx, list, opts...)
		},
	})
	g.reconciler = &reconciler{
		client: g.failing(), live: live, catalog: policy.NewCatalog(), recorder: g.told, resync: time.Minute, fallback: "default",
		reader: reader{
			live: live, cilium: types.NamespacedName{Namespace: "kube-system", Name: "cilium-config"},
			nodes: func(ctx context.Context) ([]corev1.Node, error) { return listAll(ctx, live) },
		},
	}
	return g
}

func (g *rig) failing() client.Client {
	write := func(do func() error) error {
		if g.writes++; g.writes != g.failAt {
			return do()
		}
		if g.isLate {
			return errors.Join(do(), errDown)
		}
		return errDown
	}
	return interceptor.NewClient(g.server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, o, opts...) })
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, sub string, o client.Object, _ ...client.SubResourceUpdateOption) error {
			g.t.Errorf("%s of %s is written as a whole: fields of a newer version are lost", sub, o.GetName())
			return errDown
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return write(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// settle reconciles a coordinator until nothing is written.
func (g *rig) settle(name string) {
	g.t.Helper()
	for range 10 {
		before := g.writes
		result, err := g.Reconcile(g.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err != nil && !result.IsZero() {
			g.t.Errorf("result %+v beside an error, which nobody heeds", result)
		}
		if err != nil && !errors.Is(err, errDown) {
			g.t.Fatal(err)
		}
		if g.writes == before && err == nil {
			return
		}
	}
	g.t.Fatal("it writes for ever")
}

func (g *rig) status(name string) v2beta1.CoordinatorStatus {
	g.t.Helper()
	var c v2beta1.SpiderCoordinator
	if err := g.server.Get(g.t.Context(), types.NamespacedName{Name: name}, &c); err != nil {
		g.t.Fatal(err)
	}
	return c.Status
}

// recorder collects Events.
type recorder struct{ lines []string }

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	ref, _ := regarding.(*corev1.ObjectReference)
	r.lines = append(r.lines, fmt.Sprintf("%s %s %s/%s: %s", kind, reason, ref.Kind, ref.Name, fmt.Sprintf(note, args...)))
}

func testConfigMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Data: map[string]string{key: value}}
}

// testObject is an object of others.
func testObject(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func testManager(labels map[string]string, command, args []string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kcm", Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "kcm", Command: command, Args: args}}},
	}
}

func testNode(name, args string, cidrs ...string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"k3s.io/node-args": args}},
		Spec:       corev1.NodeSpec{PodCIDRs: cidrs},
	}
}

// TestClusters reads clusters as the API has them.
func TestClusters(t *testing.T) {
	t.Parallel()
	serviceCIDR := func(version string, cidrs ...any) client.Object {
		return testObject("networking.k8s.io/"+version, "ServiceCIDR", "kubernetes", map[string]any{"cidrs": cidrs})
	}
	for name, tt := range map[string]struct {
		objects        []client.Object
		pods, services []string
		network        string
	}{
		"kubeadm": {
			[]client.Object{testConfigMap("kubeadm-config", "ClusterConfiguration", kubeadmConfiguration)},
			[]string{"10.244.0.0/16", "fd00:10:244::/56"},
			[]string{"10.96.0.0/16", "fd00:10:96::/112"},
			"cluster",
		},
		"a manager's command": {
			[]client.Object{testManager(map[string]string{"component": "kube-controller-manager"}, []string{"kube-controller-manager", "--cluster-cidr=10.8.0.0/14"}, nil), serviceCIDR("v1beta1", "10.3.0.0/24")},
			[]string{"10.8.0.0/14"},
			[]string{"10.3.0.0/24"},
			"cluster",
		},
		"a manager's arguments": {
			[]client.Object{testManager(map[string]string{"k8s-app": "kube-controller-manager"}, []string{"kube-controller-manager"}, []string{"--cluster-cidr", "10.8.0.0/14", "--service-cluster-ip-range", "10.3.0.0/24"})},
			[]string{"10.8.0.0/14"},
			[]string{"10.3.0.0/24"},
			"cluster",
		},
		"k3s": {
			[]client.Object{testNode("server", `["server","--flannel-backend=none","--service-cidr=10.53.0.0/16"]`, "10.42.0.0/24"), testNode("agent", `["agent"]`, "10.42.1.0/24"), testNode("broken", `{`)},
			[]string{"10.42.0.0/23"},
			[]string{"10.53.0.0/16"},
			"cluster",
		},
		"managed": {
			[]client.Object{testNode("a", "", "10.4.1.0/24"), testNode("b", "", "10.4.0.0/24"), serviceCIDR("v1", "34.118.224.0/20", "fd20::/112")},
			[]string{"10.4.0.0/23"},
			[]string{"34.118.224.0/20", "fd20::/112"},
			"cluster",
		},
		"calico's CRD": {
			[]client.Object{
				serviceCIDR("v1", "10.96.0.0/12"),
				testObject("crd.projectcalico.org/v1", "IPPool", "v4", map[string]any{"cidr": "10.20.0.0/16"}),
				testObject("crd.projectcalico.org/v1", "IPPool", "old", map[string]any{"cidr": "10.30.0.0/16", "disabled": true}),
				testObject("crd.projectcalico.org/v1", "IPPool", "v6", map[string]any{"cidr": "fd00:20::/48", "allowedUses": []any{"Workload"}}),
			},
			[]string{"10.20.0.0/16", "fd00:20::/48"},
			[]string{"10.96.0.0/12"},
			"calico",
		},
		"calico's server": {
			[]client.Object{serviceCIDR("v1", "10.96.0.0/12"), testObject("projectcalico.org/v3", "IPPool", "v4", map[string]any{"cidr": "10.20.0.0/16"})},
			[]string{"10.20.0.0/16"},
			[]string{"10.96.0.0/12"},
			"calico",
		},
		"cilium's cluster-pool": {
			[]client.Object{serviceCIDR("v1", "10.96.0.0/12"), testConfigMap("cilium-config", "cluster-pool-ipv4-cidr", "10.0.0.0/8")},
			[]string{"10.0.0.0/8"},
			[]string{"10.96.0.0/12"},
			"cilium",
		},
		"cilium's multi-pool": {
			[]client.Object{
				serviceCIDR("v1", "10.96.0.0/12"), testConfigMap("cilium-config", "ipam", "multi-pool"),
				testObject("cilium.io/v2alpha1", "CiliumPodIPPool", "default", map[string]any{"ipv4": map[string]any{"cidrs": []any{"10.10.0.0/16"}, "maskSize": int64(27)}}),
				testObject("cilium.io/v2alpha1", "CiliumPodIPPool", "mars", map[string]any{"ipv6": map[string]any{"cidrs": []any{map[string]any{"cidr": "fd00:20::/104"}}}}),
			},
			[]string{"10.10.0.0/16", "fd00:20::/104"},
			[]string{"10.96.0.0/12"},
			"cilium",
		},
		"cilium's kubernetes": {
			[]client.Object{testConfigMap("cilium-config", "ipam", "kubernetes"), testNode("a", "", "10.4.1.0/24"), serviceCIDR("v1", "10.96.0.0/12")},
			[]string{"10.4.1.0/24"},
			[]string{"10.96.0.0/12"},
			"cilium",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, tt.objects...)
			g.settle("default")
			want := v2beta1.CoordinatorStatus{
				Phase: v2beta1.PhaseSynced, OverlayPodCIDR: tt.pods, ServiceCIDR: tt.services,
				Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Synced", Message: "the network is " + tt.network}},
			}
			if diff := cmp.Diff(want, g.status("default"), cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			told := fmt.Sprintf("Normal Synced SpiderCoordinator/default: the network is %s: pods have %v, Services have %v", tt.network, tt.pods, tt.services)
			if diff := cmp.Diff([]string{told}, g.told.lines); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
			if g.writes != 2 { // created, and its status
				t.Errorf("%d writes, want 2", g.writes)
			}
		})
	}
}

// TestCrash lets each of the writes fail, with and without effect.
func TestCrash(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 2; n++ {
		for _, isLate := range []bool{false, true} {
			g := newRig(t, testConfigMap("kubeadm-config", "ClusterConfiguration", kubeadmConfiguration))
			g.failAt, g.isLate = n, isLate
			g.settle("default")
			if s := g.status("default"); s.Phase != v2beta1.PhaseSynced || len(s.ServiceCIDR) != 2 {
				t.Errorf("write %d failed (late: %v): %+v", n, isLate, s)
			}
		}
	}
}

// TestChange: what changes is written once, and told once; and the default is
// not made beside another.
func TestChange(t *testing.T) {
	t.Parallel()
	own := &v2beta1.SpiderCoordinator{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	g := newRig(t, own)
	g.settle("default")
	if g.writes != 0 {
		t.Fatal("a default was made beside another")
	}
	g.settle("own")
	if s := g.status("own"); s.Phase != v2beta1.PhaseNotReady || !strings.HasPrefix(s.Reason, "no CIDR of pods found") || !strings.Contains(s.Reason, "no CIDR of Services found") {
		t.Errorf("a cluster that says nothing: %+v", s)
	}
	if err := g.server.Create(t.Context(), testConfigMap("kubeadm-config", "ClusterConfiguration", kubeadmConfiguration)); err != nil {
		t.Fatal(err)
	}
	g.settle("own")
	g.settle("own")
	if s := g.status("own"); s.Phase != v2beta1.PhaseSynced || s.Reason != "" {
		t.Errorf("after kubeadm-config came: %+v", s)
	}
	if g.writes != 2 || len(g.told.lines) != 2 {
		t.Errorf("%d writes, Events %q; want two of each", g.writes, g.told.lines)
	}
}

// TestForbidden: a role that allows nothing is a reason; a server that does not
// answer is an error, and changes nothing.
func TestForbidden(t *testing.T) {
	t.Parallel()
	own := &v2beta1.SpiderCoordinator{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	g := newRig(t, own)
	g.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no rule"))
	g.settle("own")
	if s := g.status("own"); s.Phase != v2beta1.PhaseNotReady || strings.Count(s.Reason, "the controller's role does not allow to read it") != 7 {
		t.Errorf("%+v", s)
	}
	before := g.writes
	g.refuse = apierrors.NewTimeoutError("slow", 1)
	_, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "own"}})
	if !apierrors.IsTimeout(err) || g.writes != before {
		t.Errorf("error %v, %d writes more", err, g.writes-before)
	}
}

func TestIsByHand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "169.254.0.0/16": false, "169.254.20.10": false, "fe80::/10": false, "fe80::1": false,
		"10.0.0.0/8": true, "10.1.1.1": true, "169.0.0.0/8": true, "fd00::/8": true, "nonsense": false,
	} {
		if got := isByHand([]string{"169.254.0.0/16", text}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestSlimNode: what is kept of a node is what is read of it.
func TestSlimNode(t *testing.T) {
	t.Parallel()
	n := testNode("a", `["server"]`, "10.4.0.0/24")
	n.Annotations["other"], n.Labels = "x", map[string]string{"a": "b"}
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"x"}}}
	want := testNode("a", `["server"]`, "10.4.0.0/24")
	want.Labels = map[string]string{"a": "b"}
	if diff := cmp.Diff(want, slimNode(n)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
