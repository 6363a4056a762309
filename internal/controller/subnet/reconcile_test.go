package subnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// rig is a reconciler over a fake API server.
type rig struct {
	*reconciler

	t      *testing.T
	server client.WithWatch
	told   *recorder
	writes int  // that succeeded
	failAt int  // the write that fails, from 1; 0: none
	isLate bool // it fails after it has been done: the answer is lost
}

// errDown is the error of a write that fails.
var errDown = errors.New("the API server went away")

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v2beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, told: &recorder{}}
	build := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v2beta1.SpiderSubnet{}, &v2beta1.SpiderIPPool{})
	for _, x := range indexes() {
		build = build.WithIndex(x.object, x.field, x.values)
	}
	g.server = build.Build()
	story, err := newStory(g.told, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	g.reconciler = &reconciler{
		client: g.failing(), live: g.server, catalog: policy.NewCatalog(), story: story, resync: time.Minute,
	}
	return g
}

// failing is a client whose n-th write fails, before or after it has been done.
func (g *rig) failing() client.Client {
	write := func(do func() error) error {
		if g.writes++; g.writes == g.failAt {
			if g.isLate {
				return errors.Join(do(), errDown)
			}
			return errDown
		}
		return do()
	}
	return interceptor.NewClient(g.server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetUID() == "" {
				o.SetUID(types.UID("uid-of-" + o.GetName()))
			}
			return write(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.UpdateOption) error {
			g.t.Errorf("%s is written as a whole: fields of a newer version are lost", o.GetName())
			return errDown
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, o, opts...) })
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

// sync feeds the catalog with what there is, as informers do.
func (g *rig) sync() {
	g.t.Helper()
	config := g.catalog.Config()
	g.catalog = policy.NewCatalog()
	g.catalog.SetConfig(config)
	for _, list := range []client.ObjectList{
		&v2beta1.SpiderSubnetList{}, &v2beta1.SpiderIPPoolList{}, &v2beta1.SpiderReservedIPList{}, &v2beta1.SpiderEndpointList{}, &v1alpha1.PoolLedgerList{},
	} {
		if err := g.server.List(g.t.Context(), list); err != nil {
			g.t.Fatal(err)
		}
		for _, o := range objectsOf(list) {
			g.catalog.Put(o)
		}
	}
}

// settle reconciles everything until nothing is written, failures or not, and
// fails if that takes long.
func (g *rig) settle() {
	g.t.Helper()
	for range 20 {
		before := g.writes
		failed := false
		g.sync()
		for _, request := range g.requests() {
			if result, err := g.Reconcile(g.t.Context(), request); err != nil {
				if !result.IsZero() {
					g.t.Errorf("%v: result %+v beside an error, which nobody heeds", request, result)
				}
				if !errors.Is(err, errDown) {
					g.t.Fatalf("%v: %v", request, err)
				}
				failed = true
			}
		}
		if g.writes == before && !failed {
			return
		}
	}
	g.t.Fatal("it writes for ever")
}

// requests are those of all objects, as events bring them.
func (g *rig) requests() []ctrl.Request {
	g.t.Helper()
	requests := g.everything(g.t.Context(), nil)
	for _, list := range []client.ObjectList{&v2beta1.SpiderSubnetList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &batchv1.JobList{}} {
		if err := g.server.List(g.t.Context(), list); err != nil {
			g.t.Fatal(err)
		}
		for _, o := range objectsOf(list) {
			if _, ok := o.(*v2beta1.SpiderSubnet); ok {
				requests = append(requests, subnetRequest(o.GetName()))
			} else {
				requests = append(requests, ofWorkload(g.t.Context(), o)...)
			}
		}
	}
	slices.SortFunc(requests, func(a, b ctrl.Request) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(requests)
}

// pools are the pools that there are, one a line.
func (g *rig) pools() string {
	g.t.Helper()
	var list v2beta1.SpiderIPPoolList
	if err := g.server.List(g.t.Context(), &list); err != nil {
		g.t.Fatal(err)
	}
	var lines []string
	for _, p := range list.Items {
		line := p.Name + " " + strings.Join(p.Spec.IPs, ",") + " " + p.Labels[v2beta1.LabelSubnet]
		if p.DeletionTimestamp != nil {
			line += " (going)"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (g *rig) update(o client.Object) {
	g.t.Helper()
	if err := g.server.Update(g.t.Context(), o); err != nil {
		g.t.Fatal(err)
	}
}

// recorder collects Events.
type recorder struct{ lines []string }

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	ref, _ := regarding.(*corev1.ObjectReference)
	r.lines = append(r.lines, fmt.Sprintf("%s %s %s/%s: %s", kind, reason, ref.Kind, ref.Name, fmt.Sprintf(note, args...)))
}

// take returns what was told since the last time.
func (r *recorder) take() string {
	text := strings.Join(r.lines, "\n")
	r.lines = nil
	return text
}

func testSubnet(name, cidr string, ips ...string) *v2beta1.SpiderSubnet {
	return &v2beta1.SpiderSubnet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       v2beta1.SubnetSpec{Subnet: cidr, IPs: ips},
	}
}

func testMeta(name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ai", Name: name, UID: types.UID("7d5c-" + uid)}
}

func testTemplate(annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
}

// onA wants addresses of subnet a for eth0.
func onA(more ...string) map[string]string {
	annotations := map[string]string{v2beta1.AnnotationSubnet: `{"ipv4":["a"]}`}
	for i := 0; i+1 < len(more); i += 2 {
		annotations[more[i]] = more[i+1]
	}
	return annotations
}

func testDeployment(replicas int32, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: testMeta("web", "00001"), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: testTemplate(annotations)}}
}

func TestEveryKind(t *testing.T) {
	t.Parallel()
	template := testTemplate(onA())
	deploymentOwner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "7d5c-00001", Controller: new(true)}}
	owned := testMeta("web-5f", "00009")
	owned.OwnerReferences = deploymentOwner
	for name, tt := range map[string]struct {
		object client.Object
		want   string
	}{
		"Deployment":                 {testDeployment(3, onA()), "auto4-web-eth0-00001 10.1.0.1-10.1.0.4 a"},
		"Deployment without number":  {&appsv1.Deployment{ObjectMeta: testMeta("web", "00001"), Spec: appsv1.DeploymentSpec{Template: template}}, "auto4-web-eth0-00001 10.1.0.1-10.1.0.2 a"},
		"Deployment that wants none": {testDeployment(3, nil), ""},
		"ReplicaSet":                 {&appsv1.ReplicaSet{ObjectMeta: testMeta("rs", "00002"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Template: template}}, "auto4-rs-eth0-00002 10.1.0.1-10.1.0.3 a"},
		"ReplicaSet of a Deployment": {&appsv1.ReplicaSet{ObjectMeta: owned, Spec: appsv1.ReplicaSetSpec{Template: template}}, ""},
		"StatefulSet":                {&appsv1.StatefulSet{ObjectMeta: testMeta("sts", "00003"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2)), Template: template}}, "auto4-sts-eth0-00003 10.1.0.1-10.1.0.3 a"},
		"DaemonSet": {&appsv1.DaemonSet{
			ObjectMeta: testMeta("ds", "00004"), Spec: appsv1.DaemonSetSpec{Template: template},
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 6},
		}, "auto4-ds-eth0-00004 10.1.0.1-10.1.0.7 a"},
		"Job":                      {&batchv1.Job{ObjectMeta: testMeta("job", "00005"), Spec: batchv1.JobSpec{Parallelism: new(int32(4)), Completions: new(int32(9)), Template: template}}, "auto4-job-eth0-00005 10.1.0.1-10.1.0.5 a"},
		"Job with few completions": {&batchv1.Job{ObjectMeta: testMeta("job", "00005"), Spec: batchv1.JobSpec{Parallelism: new(int32(4)), Completions: new(int32(2)), Template: template}}, "auto4-job-eth0-00005 10.1.0.1-10.1.0.3 a"},
		"CronJob": {&batchv1.CronJob{ObjectMeta: testMeta("cron", "00006"), Spec: batchv1.CronJobSpec{
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Parallelism: new(int32(2)), Template: template}},
		}}, "auto4-cron-eth0-00006 10.1.0.1-10.1.0.3 a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.200"), tt.object)
			g.settle()
			if diff := cmp.Diff(tt.want, g.pools()); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLife follows an application: it is made, grows, shrinks while a pod keeps
// an address, changes its subnet, and goes.
func TestLife(t *testing.T) {
	t.Parallel()
	web := testDeployment(2, onA())
	g := newRig(t, testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.200"), testSubnet("b", "10.2.0.0/24", "10.2.0.1-10.2.0.200"), web)
	step := func(what, wantPools, wantEvents string) {
		t.Helper()
		g.settle()
		if diff := cmp.Diff(wantPools, g.pools()); diff != "" {
			t.Errorf("%s: pools (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(wantEvents, g.told.take()); diff != "" {
			t.Errorf("%s: Events (-want +got):\n%s", what, diff)
		}
	}
	step("made", "auto4-web-eth0-00001 10.1.0.1-10.1.0.3 a", `Normal Serving SpiderSubnet/a: 200 of 200 addresses are in no pool yet
Normal Serving SpiderSubnet/b: 200 of 200 addresses are in no pool yet
Normal PoolCreated Deployment/web: pool auto4-web-eth0-00001 of eth0: 3 addresses of subnet a`)
	web.Spec.Replicas = new(int32(4))
	g.update(web)
	step("grown", "auto4-web-eth0-00001 10.1.0.1-10.1.0.5 a", "Normal PoolChanged Deployment/web: pool auto4-web-eth0-00001 of eth0: 5 addresses of subnet a")
	pod := &v2beta1.SpiderEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: "web-0"}}
	pod.Status.Current.IPs = []v2beta1.EndpointInterface{{Interface: "eth0", IPv4: new("10.1.0.5/24"), IPv4Pool: new("auto4-web-eth0-00001")}}
	if err := g.server.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	web.Spec.Replicas = new(int32(1))
	g.update(web)
	step("shrunk", "auto4-web-eth0-00001 10.1.0.1,10.1.0.5 a", "Normal PoolChanged Deployment/web: pool auto4-web-eth0-00001 of eth0: 2 addresses of subnet a")
	web.Spec.Template.Annotations = map[string]string{v2beta1.AnnotationSubnet: `{"ipv4":["b"]}`}
	g.update(web)
	step("moved", "auto4-web-eth0-00001 10.1.0.1,10.1.0.5 a (going)\nauto4-web-eth0-00001-2 10.2.0.1-10.2.0.2 b",
		"Normal PoolCreated Deployment/web: pool auto4-web-eth0-00001-2 of eth0: 2 addresses of subnet b\nNormal PoolDeleted Deployment/web: pool auto4-web-eth0-00001 goes once its addresses are free")
	if err := g.server.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	step("gone", "auto4-web-eth0-00001 10.1.0.1,10.1.0.5 a (going)\nauto4-web-eth0-00001-2 10.2.0.1-10.2.0.2 b (going)", "")
}

// TestKept: a pool that is not reclaimed waits for an application of its name.
func TestKept(t *testing.T) {
	t.Parallel()
	web := testDeployment(2, onA(v2beta1.AnnotationPoolReclaim, "false"))
	g := newRig(t, testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.200"), web)
	g.settle()
	if err := g.server.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	g.settle()
	const kept = "auto4-web-eth0-00001 10.1.0.1-10.1.0.3 a"
	if got := g.pools(); got != kept {
		t.Fatalf("after it went: %s", got)
	}
	again := testDeployment(3, onA())
	again.UID = "7d5c-00002"
	if err := g.server.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	g.settle()
	if got, want := g.pools(), "auto4-web-eth0-00001 10.1.0.1-10.1.0.4 a"; got != want {
		t.Fatalf("after it came back: %s, want %s", got, want)
	}
}

// TestCrash lets the n-th write fail, for every n there is.
func TestCrash(t *testing.T) {
	t.Parallel()
	objects := func() []client.Object {
		stale := testDeployment(2, nil)
		stale.Name, stale.UID = "old", "7d5c-00003"
		return []client.Object{
			testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.200"), testSubnet("six", "fd00::/64", "fd00::1-fd00::ffff:ffff"),
			testDeployment(2, map[string]string{v2beta1.AnnotationSubnets: `[{"ipv4":["a"],"ipv6":["six"]},{"ipv4":["a"]}]`}),
			stale, testAutoPool(stale, "10.1.0.1-10.1.0.3"),
		}
	}
	whole := newRig(t, objects()...)
	whole.settle()
	want := `auto4-old 10.1.0.1-10.1.0.3 a (going)
auto4-web-eth0-00001 10.1.0.4-10.1.0.6 a
auto4-web-net1-00001 10.1.0.7-10.1.0.9 a
auto6-web-eth0-00001 fd00::1-fd00::3 six`
	if diff := cmp.Diff(want, whole.pools()); diff != "" {
		t.Fatalf("without failure: pools (-want +got):\n%s", diff)
	}
	for n := 1; n <= whole.writes; n++ {
		for _, isLate := range []bool{false, true} {
			g := newRig(t, objects()...)
			g.failAt, g.isLate = n, isLate
			g.settle()
			if diff := cmp.Diff(want, g.pools()); diff != "" {
				t.Errorf("write %d failed (late: %v): pools (-want +got):\n%s", n, isLate, diff)
			}
			before := g.writes
			g.settle()
			if g.writes != before {
				t.Errorf("write %d failed (late: %v): %d writes more when all was done", n, isLate, g.writes-before)
			}
		}
	}
}

// testAutoPool is a pool that a Deployment has, which wants it no more.
func testAutoPool(of *appsv1.Deployment, ips ...string) *v2beta1.SpiderIPPool {
	app := policy.Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: of.Namespace, Name: of.Name, UID: of.UID}
	labels := app.Labels()
	labels[v2beta1.LabelInterface], labels[v2beta1.LabelIPVersion], labels[v2beta1.LabelSubnet] = "eth0", "IPv4", "a"
	return &v2beta1.SpiderIPPool{
		ObjectMeta: metav1.ObjectMeta{Name: "auto4-" + of.Name, UID: "uid-of-pool", Labels: labels, Finalizers: []string{v2beta1.Finalizer}},
		Spec:       v2beta1.IPPoolSpec{Subnet: "10.1.0.0/24", IPs: ips, PodAffinity: app.Affinity()},
	}
}

// TestStaleCache: what the cache has not heard of yet is not given twice.
func TestStaleCache(t *testing.T) {
	t.Parallel()
	g := newRig(t, testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.200"), testDeployment(2, onA()), testDeployment2())
	g.sync()
	live := g.client
	g.client = blind{live}
	for range 3 {
		for _, name := range []string{"web", "db"} {
			request := applicationRequest(policy.Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ai", Name: name})
			if _, err := g.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff("auto4-db-eth0-00007 10.1.0.4-10.1.0.6 a\nauto4-web-eth0-00001 10.1.0.1-10.1.0.3 a", g.pools()); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if g.writes != 2 {
		t.Errorf("%d writes, want 2", g.writes)
	}
}

func testDeployment2() *appsv1.Deployment {
	d := testDeployment(2, onA())
	d.Name, d.UID = "db", "7d5c-00007"
	return d
}

// blind is a client whose cache has no pools.
type blind struct{ client.Client }

// List implements client.Client.
func (b blind) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*v2beta1.SpiderIPPoolList); ok {
		return nil
	}
	return b.Client.List(ctx, list, opts...)
}

func TestProblems(t *testing.T) {
	t.Parallel()
	foreign := metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "clone", UID: "7d5c-clone", Controller: new(true)}
	long := testDeployment(1, onA())
	long.Name = strings.Repeat("w", 64)
	for name, tt := range map[string]struct {
		object client.Object
		off    bool
		reason string
		want   string
	}{
		"bad annotation": {
			object: testDeployment(1, map[string]string{v2beta1.AnnotationSubnet: `{`}), reason: "BadAnnotation",
			want: `Warning BadAnnotation Deployment/web: spec.template.metadata.annotations[ipam.spidernet.io/subnet]: Invalid value: "{": the JSON ends too early: want JSON such as {"ipv4":["subnet-a"],"ipv6":[]}`,
		},
		"unknown subnet": {
			object: testDeployment(1, map[string]string{v2beta1.AnnotationSubnet: `{"ipv4":["nix"]}`}), reason: "UnknownSubnet",
			want: `Warning UnknownSubnet Deployment/web: spec.template.metadata.annotations[ipam.spidernet.io/subnet].ipv4[0]: Invalid value: "nix": no SpiderSubnet that keeps the rules has this name: want one of IPv4, which are a`,
		},
		"exhausted": {
			object: testDeployment(9, onA()), reason: "SubnetExhausted",
			want: `Warning SubnetExhausted Deployment/web: spec.template.metadata.annotations[ipam.spidernet.io/subnet].ipv4: Invalid value: ["a"]: the pool of eth0 wants 10 addresses, and a has 3 free: add addresses to a subnet, name a further one, or want fewer by ipam.spidernet.io/ippool-ip-number`,
		},
		"switched off": {
			object: testDeployment(1, onA()), off: true, reason: "AutoPoolSwitchedOff",
			want: `Warning AutoPoolSwitchedOff Deployment/web: spec.template.metadata.annotations: Forbidden: enableSpiderSubnet and enableAutoPoolForApplication of ConfigMap spiderpool-conf are not both true: want them so, or pools named in ipam.spidernet.io/ippools`,
		},
		"name too long": {
			object: long, reason: "NameTooLong",
			want: `Warning NameTooLong Deployment/` + long.Name + `: metadata.name: Invalid value: "` + long.Name + `": a pool has the name of its application in a label: want at most 63 characters, or pools named in ipam.spidernet.io/ippools`,
		},
		"bare pod": {
			object: testPod("pod", onA()), reason: "BarePod",
			want: `Warning BarePod Pod/pod: metadata.annotations[ipam.spidernet.io/subnet]: Forbidden: no controller owns this pod, and only applications have pools of their own: want a Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or CronJob, or pools named in ipam.spidernet.io/ippools`,
		},
		"another vendor without a number": {
			object: testPod("pod", onA(), foreign), reason: "NumberWanted",
			want: `Warning NumberWanted CloneSet/clone: metadata.annotations[ipam.spidernet.io/ippool-ip-number]: Invalid value: "(none)": how many pods a CloneSet of apps.kruise.io/v1alpha1 wants is not known here: want a number of addresses such as "8", without "+"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.3"), tt.object)
			if tt.off {
				config := policy.DefaultConfig()
				config.EnableAutoPool = false
				g.catalog.SetConfig(config)
			}
			g.settle()
			told := strings.Split(g.told.take(), "\n")
			if diff := cmp.Diff(tt.want, told[len(told)-1]); diff != "" {
				t.Errorf("last Event (-want +got):\n%s", diff)
			}
			if got := testutil.ToFloat64(g.story.unserved.WithLabelValues(tt.reason)); got != 1 {
				t.Errorf("%v applications unserved for %s, want 1", got, tt.reason)
			}
			g.settle()
			if again := g.told.take(); again != "" {
				t.Errorf("told again: %s", again)
			}
			if pools := g.pools(); pools != "" {
				t.Errorf("pools: %s", pools)
			}
			if err := g.server.Delete(t.Context(), tt.object); err != nil {
				t.Fatal(err)
			}
			g.settle()
			if got := testutil.ToFloat64(g.story.unserved.WithLabelValues(tt.reason)); got != 0 {
				t.Errorf("%v applications unserved when it is gone", got)
			}
		})
	}
}

func testPod(name string, annotations map[string]string, owners ...metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: testMeta(name, name)}
	pod.Annotations, pod.OwnerReferences = annotations, owners
	return pod
}

// TestForeign follows an application of another vendor by its pods.
func TestForeign(t *testing.T) {
	t.Parallel()
	owner := metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "clone", UID: "7d5c-clone", Controller: new(true)}
	const pool = "auto4-clone-eth0-clone 10.1.0.1-10.1.0.4 a"
	for name, tt := range map[string]struct {
		answer error // of the look for the owner
		want   string
	}{
		"still there":     {nil, pool},
		"gone":            {apierrors.NewNotFound(schema.GroupResource{Resource: "clonesets"}, "clone"), pool + " (going)"},
		"kind gone":       {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}}, pool + " (going)"},
		"may not be read": {apierrors.NewForbidden(schema.GroupResource{Resource: "clonesets"}, "clone", errors.New("no rule")), pool},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := testPod("clone-x", onA(v2beta1.AnnotationPoolNumber, "4"), owner)
			g := newRig(t, testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.200"), pod)
			g.live = interceptor.NewClient(g.server, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if m, ok := o.(*metav1.PartialObjectMetadata); ok && m.Kind == "CloneSet" {
					m.UID = "7d5c-clone"
					return tt.answer
				}
				return c.Get(ctx, key, o, opts...)
			}})
			g.settle()
			if got := g.pools(); got != pool {
				t.Fatalf("pools: %s", got)
			}
			if err := g.server.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			g.settle()
			if got := g.pools(); got != tt.want {
				t.Errorf("pools without pods: %s, want %s", got, tt.want)
			}
			again, err := g.Reconcile(t.Context(), applicationRequest(ownerApplication("ai", &owner)))
			if err != nil || (again.RequeueAfter > 0) != (tt.want == pool) {
				t.Errorf("looked at again after %v, %v", again.RequeueAfter, err)
			}
		})
	}
}

// TestRefused: what the API server refuses is told, and others are served.
func TestRefused(t *testing.T) {
	t.Parallel()
	g := newRig(t, testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.200"), testDeployment(1, onA()), testDeployment2())
	inner := g.client
	g.client = refusing{inner}
	g.settle()
	if got, want := g.pools(), "auto4-db-eth0-00007 10.1.0.1-10.1.0.3 a"; got != want {
		t.Errorf("pools: %s, want %s", got, want)
	}
	if told := g.told.take(); !strings.Contains(told, `Warning PoolRefused Deployment/web: SpiderIPPool[auto4-web-eth0-00001]: Forbidden: the API server refuses the pool`) {
		t.Errorf("told: %s", told)
	}
}

// refusing refuses pools of one application.
type refusing struct{ client.Client }

// Create implements client.Client.
func (r refusing) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if o.GetLabels()[v2beta1.LabelOwnerName] == "web" {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "SpiderIPPool"}, o.GetName(), nil)
	}
	return r.Client.Create(ctx, o, opts...)
}
