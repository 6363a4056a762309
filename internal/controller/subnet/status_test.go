package subnet

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

func (g *rig) subnetStatus(name string) v2beta1.SubnetStatus {
	g.t.Helper()
	var s v2beta1.SpiderSubnet
	if err := g.server.Get(g.t.Context(), types.NamespacedName{Name: name}, &s); err != nil {
		g.t.Fatal(err)
	}
	return s.Status
}

func testPool(name, cidr string, ips ...string) *v2beta1.SpiderIPPool {
	return &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}, Spec: v2beta1.IPPoolSpec{Subnet: cidr, IPs: ips}}
}

func TestSubnetStatus(t *testing.T) {
	t.Parallel()
	broken := testSubnet("a", "10.1.0.0/24", "10.9.0.1")
	for name, tt := range map[string]struct {
		objects []client.Object
		off     bool
		pools   string // JSON
		total   int64
		held    int64
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"without pools": {
			objects: []client.Object{testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.10")},
			total:   10, status: "True", reason: "Serving", message: "10 of 10 addresses are in no pool yet",
		},
		"with pools, one of an application": {
			objects: []client.Object{
				testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.10"), testDeployment(2, onA()),
				testPool("by-hand", "10.1.0.0/24", "10.1.0.2", "10.1.0.4-10.1.0.5"), testPool("elsewhere", "10.2.0.0/24", "10.2.0.1"),
			},
			pools: `{"auto4-web-eth0-00001":{"ips":["10.1.0.1","10.1.0.3","10.1.0.6"],"application":"ai/web"},"by-hand":{"ips":["10.1.0.2","10.1.0.4-10.1.0.5"]}}`,
			total: 10, held: 6, status: "True", reason: "Serving", message: "4 of 10 addresses are in no pool yet",
		},
		"full": {
			objects: []client.Object{testSubnet("a", "10.1.0.0/24", "10.1.0.1"), testPool("p", "10.1.0.0/24", "10.1.0.1")},
			pools:   `{"p":{"ips":["10.1.0.1"]}}`,
			total:   1, held: 1, status: "True", reason: "Exhausted", message: "all of its 1 addresses are in pools: add addresses to make room for further pools",
		},
		"a /64": {
			objects: []client.Object{testSubnet("a", "fd00::/64", "fd00::-fd00::ffff:ffff:ffff:ffff")},
			total:   1<<63 - 1, status: "True", reason: "Serving", message: "9223372036854775807 of 9223372036854775807 addresses are in no pool yet",
		},
		"breaks a rule": {
			objects: []client.Object{broken}, status: "False", reason: "Invalid",
			message: `spec.ips[0]: Invalid value: "10.9.0.1": is not within the subnet 10.1.0.0/24 (10.1.0.0-10.1.0.255)`,
		},
		"switched off": {
			objects: []client.Object{testSubnet("a", "10.1.0.0/24", "10.1.0.1")}, off: true,
			total: 1, status: "False", reason: "SwitchedOff", message: "enableSpiderSubnet is false in ConfigMap spiderpool-conf: no pool belongs to a subnet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, tt.objects...)
			if tt.off {
				config := policy.DefaultConfig()
				config.EnableSpiderSubnet = false
				g.catalog.SetConfig(config)
			}
			g.settle()
			want := v2beta1.SubnetStatus{
				TotalIPCount: &tt.total, AllocatedIPCount: &tt.held,
				Conditions: []metav1.Condition{{Type: "Ready", Status: tt.status, Reason: tt.reason, Message: tt.message}},
			}
			if tt.pools != "" {
				want.ControlledIPPools = &tt.pools
			}
			if diff := cmp.Diff(want, g.subnetStatus("a"), cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSubnetDeletion: a subnet waits for its pools, those too that the cache
// has not heard of, and then goes.
func TestSubnetDeletion(t *testing.T) {
	t.Parallel()
	subnet, pool := testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.10"), testPool("p", "10.1.0.0/24", "10.1.0.1")
	g := newRig(t, subnet, pool)
	g.settle()
	if err := g.server.Delete(t.Context(), subnet); err != nil {
		t.Fatal(err)
	}
	g.settle()
	if c := g.subnetStatus("a").Conditions; len(c) != 1 || c[0].Reason != "Deleting" || c[0].Message != "is deleted once its pools are: p" {
		t.Errorf("conditions: %+v", c)
	}
	if told := g.told.take(); !strings.HasSuffix(told, "Normal Deleting SpiderSubnet/a: is deleted once its pools are: p") {
		t.Errorf("told: %s", told)
	}
	seeing := g.client
	g.client = blind{seeing}
	if _, err := g.Reconcile(t.Context(), subnetRequest("a")); err != nil {
		t.Fatal(err)
	}
	g.subnetStatus("a") // is there still
	g.client = seeing
	if err := g.server.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	g.settle()
	if err := g.server.Get(t.Context(), types.NamespacedName{Name: "a"}, &v2beta1.SpiderSubnet{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the subnet is there still: %v", err)
	}
}

// TestOutOfTheWay: a subnet that another one, or a pool of another CIDR, was in
// the way of is good once that is gone, and the event of that is all it takes.
func TestOutOfTheWay(t *testing.T) {
	t.Parallel()
	first, second := testSubnet("first", "10.1.0.0/16", "10.1.0.1-10.1.0.10"), testSubnet("second", "10.1.0.0/24", "10.1.0.1-10.1.0.10")
	second.CreationTimestamp = metav1.NewTime(first.CreationTimestamp.Add(time.Second))
	wide := testPool("wide", "10.1.0.0/20", "10.1.8.1")
	wide.CreationTimestamp = first.CreationTimestamp
	for _, obstacle := range []client.Object{first, wide} {
		g := newRig(t, obstacle, second.DeepCopy())
		g.settle()
		if c := g.subnetStatus("second").Conditions; c[0].Reason != "Invalid" {
			t.Fatalf("beside %s: conditions %+v", obstacle.GetName(), c)
		}
		if err := g.server.Get(t.Context(), client.ObjectKeyFromObject(obstacle), obstacle); err != nil {
			t.Fatal(err)
		}
		obstacle.SetFinalizers(nil)
		g.update(obstacle)
		if err := g.server.Delete(t.Context(), obstacle); err != nil {
			t.Fatal(err)
		}
		g.sync()
		for _, request := range append(g.ofSubnet(t.Context(), obstacle), g.ofPool(t.Context(), obstacle)...) {
			if _, err := g.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		if c := g.subnetStatus("second").Conditions; c[0].Reason != "Serving" {
			t.Errorf("without %s: conditions %+v", obstacle.GetName(), c)
		}
	}
}

// TestRequests: a request says what it is for, and nothing else is taken for one.
func TestRequests(t *testing.T) {
	t.Parallel()
	app := policy.Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ai", Name: "web.x"}
	if got, ok := applicationOf(applicationRequest(app)); !ok || got != app {
		t.Errorf("%v, %v", got, ok)
	}
	if got, ok := applicationOf(subnetRequest("a b c")); ok {
		t.Errorf("a subnet is taken for %v", got)
	}
}

// TestSources: which events ask for what.
func TestSources(t *testing.T) {
	t.Parallel()
	foreign := metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "clone", Controller: new(true)}
	ofDeployment := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5f", Controller: new(true)}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"without annotation":   {testPod("p", nil, foreign), ""},
		"of Kubernetes":        {testPod("p", onA(), ofDeployment), ""},
		"of another vendor":    {testPod("p", onA(), foreign), "ai/apps.kruise.io/v1alpha1 CloneSet clone"},
		"without a controller": {testPod("p", onA()), "ai/v1 Pod p"},
	} {
		var asked []string
		for _, request := range ofPod(t.Context(), tt.pod) {
			asked = append(asked, request.String())
		}
		if got := strings.Join(asked, ", "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	before := testDeployment(2, onA())
	for name, tt := range map[string]struct {
		change func(*appsv1.Deployment)
		want   bool
	}{
		"status":      {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }, false},
		"labels":      {func(d *appsv1.Deployment) { d.Spec.Template.Annotations["x"] = "y" }, false},
		"replicas":    {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) }, true},
		"annotations": {func(d *appsv1.Deployment) { d.Spec.Template.Annotations[v2beta1.AnnotationPoolNumber] = "5" }, true},
		"made again":  {func(d *appsv1.Deployment) { d.UID = "another" }, true},
	} {
		after := before.DeepCopy()
		tt.change(after)
		if got := matters().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tt.want {
			t.Errorf("%s: matters %v, want %v", name, got, tt.want)
		}
	}
}

// TestSlim: what the cache keeps means the same.
func TestSlim(t *testing.T) {
	t.Parallel()
	template := testTemplate(onA("other", "x"))
	template.Spec.Containers = []corev1.Container{{Name: "c", Image: "image"}}
	job := batchv1.JobSpec{Parallelism: new(int32(3)), Completions: new(int32(2)), Template: template}
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: testMeta("x", "1"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: template}},
		&appsv1.ReplicaSet{ObjectMeta: testMeta("x", "1"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Template: template}},
		&appsv1.StatefulSet{ObjectMeta: testMeta("x", "1"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2)), Template: template}},
		&appsv1.DaemonSet{ObjectMeta: testMeta("x", "1"), Spec: appsv1.DaemonSetSpec{Template: template}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 7}},
		&batchv1.Job{ObjectMeta: testMeta("x", "1"), Spec: job},
		&batchv1.CronJob{ObjectMeta: testMeta("x", "1"), Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: job}}},
	} {
		whole, _ := workloadOf(object.DeepCopyObject().(client.Object))
		kept, err := slim(object)
		if err != nil {
			t.Fatal(err)
		}
		slimmed, _ := workloadOf(kept.(client.Object))
		if !whole.same(slimmed) || whole.application() != slimmed.application() {
			t.Errorf("%T means something else", object)
		}
		if diff := cmp.Diff(onA(), slimmed.annotations); diff != "" {
			t.Errorf("%T: annotations (-want +got):\n%s", object, diff)
		}
	}
	pod := podMetadata()
	pod.Annotations, pod.Labels = onA("other", "x"), map[string]string{"a": "b"}
	if _, err := slim(pod); err != nil || pod.Labels != nil || len(pod.Annotations) != 1 {
		t.Errorf("pod: %v %v %v", pod.Labels, pod.Annotations, err)
	}
}
