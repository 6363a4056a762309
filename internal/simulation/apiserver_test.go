package simulation

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

func (r *running) metadata() metadata.Interface {
	r.tb.Helper()
	client, err := metadata.NewForConfig(r.RESTConfig())
	if err != nil {
		r.tb.Fatal(err)
	}
	return client
}

// TestInformer checks that a metadata informer of the node's pods sees one come
// and go.
func TestInformer(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn)
	factory := metadatainformer.NewFilteredSharedInformerFactory(r.metadata(), 0, metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.FieldSelector = "spec.nodeName=" + r.NodeName()
	})
	informer := factory.ForResource(pods()).Informer()
	events := make(chan string, 16)
	said := func(what string, o any) { events <- what + " " + o.(*metav1.PartialObjectMetadata).Name }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { said("added", o) },
		UpdateFunc: func(_, o any) { said("updated", o) },
		DeleteFunc: func(o any) { said("deleted", o) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(cancel)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer has no list")
	}
	expect(t, events, "added load")
	r.pass(15 * time.Second)
	expect(t, events, "added step-0")
	expect(t, events, "updated step-0")
	r.pass(30 * time.Second) // past its end and the beginning of the next
	expect(t, events, "deleted step-0")
	expect(t, events, "added step-1")
}

func expect(t *testing.T, events <-chan string, want string) {
	t.Helper()
	select {
	case got := <-events:
		if got != want {
			t.Fatalf("the informer said %q, want %q", got, want)
		}
	case <-t.Context().Done():
		t.Fatalf("the informer did not say %q", want)
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/shared.yaml")
	client := r.metadata()
	job := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	got, err := client.Resource(job).Namespace("batch").Get(t.Context(), "nightly", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owner := metav1.GetControllerOf(got)
	if owner == nil || owner.Kind != "CronJob" || owner.APIVersion != "batch/v1" || owner.UID == "" {
		t.Errorf("owner %+v, want a CronJob", owner)
	}
	cron := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	top, err := client.Resource(cron).Namespace("batch").Get(t.Context(), owner.Name, metav1.GetOptions{})
	if err != nil || top.UID != owner.UID || metav1.GetControllerOf(top) != nil {
		t.Errorf("CronJob %+v, %v, want one with UID %s that nothing owns", top, err, owner.UID)
	}
	ray := schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}
	if _, err := client.Resource(ray).Namespace("research").Get(t.Context(), "sweep", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a kind that may not be read: %v, want forbidden", err)
	}
	if _, err := client.Resource(job).Namespace("batch").Get(t.Context(), "yearly", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a job that is not there: %v, want not found", err)
	}
	unknown := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "things"}
	if _, err := client.Resource(unknown).Get(t.Context(), "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a kind that is not there: %v, want not found", err)
	}
}

// TestAbsentOwner checks that an owner can be gone while the pod still names it.
func TestAbsentOwner(t *testing.T) {
	t.Parallel()
	r := beginText(t, `
node: gpu-1
cards: [{name: rxe0, driver: rxe}]
pods: [{namespace: a, name: p, owners: [{apiVersion: apps/v1, kind: ReplicaSet, name: r}]}]
kubernetes: {absent: [replicasets.apps]}
`)
	client, err := kubernetes.NewForConfig(r.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods("a").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || len(pod.OwnerReferences) != 1 || pod.Spec.NodeName != "gpu-1" || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("pod %+v, %v, want one that runs and has an owner", pod, err)
	}
	if _, err := client.AppsV1().ReplicaSets("a").Get(t.Context(), "r", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("its owner: %v, want not found", err)
	}
	if err := client.CoreV1().Pods("a").Delete(t.Context(), "p", metav1.DeleteOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("to delete it: %v, want method not supported", err)
	}
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/healthy.yaml")
	client, err := kubernetes.NewForConfig(r.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, namespace string
		options         metav1.ListOptions
		want            []string
	}{
		{
			"node", "",
			metav1.ListOptions{FieldSelector: "spec.nodeName=gpu-a17"},
			[]string{"llama-pretrain-worker-3", "chat-decode-6c9f7d5b8-tq4mz", "loader-n2c8v", "clip-workers-0-1-x7k2p"},
		},
		{"other node", "", metav1.ListOptions{FieldSelector: "spec.nodeName=gpu-a18"}, nil},
		{"namespace", "vision", metav1.ListOptions{}, []string{"clip-workers-0-1-x7k2p"}},
		{"label", "", metav1.ListOptions{LabelSelector: "app in (loader)"}, []string{"loader-n2c8v"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list, err := client.CoreV1().Pods(tt.namespace).List(t.Context(), tt.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range list.Items {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
	_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("a field that cannot be selected: %v, want bad request", err)
	}
}

// TestWatchResumes checks that a watch goes on where a client has come to, and
// says where that is too long ago.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn)
	client, err := kubernetes.NewForConfig(r.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.pass(15 * time.Second)
	r.pass(20 * time.Second)
	watcher, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	for _, want := range []apiwatch.EventType{apiwatch.Added, apiwatch.Modified, apiwatch.Deleted} {
		if e := <-watcher.ResultChan(); e.Type != want || e.Object.(*corev1.Pod).Name != "step-0" {
			t.Errorf("event %s of %v, want %s of step-0", e.Type, e.Object, want)
		}
	}
	for range keptChanges {
		r.api.store.put(nodes(), object{"metadata": object{"name": "other"}})
	}
	late, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Stop()
	if e := <-late.ResultChan(); e.Type != apiwatch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("event %+v, want that the version is too old", e)
	}
}

// TestWatchEnds checks that closing the simulation ends a watch.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn)
	client, err := kubernetes.NewForConfig(r.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if e := <-watcher.ResultChan(); e.Type != apiwatch.Added {
		t.Errorf("event %s, want the pod that there is", e.Type)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if e, ok := <-watcher.ResultChan(); ok {
		t.Errorf("event %+v after the end", e)
	}
	if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a closed simulation answers")
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/shared.yaml")
	client, err := discovery.NewDiscoveryClientForConfig(r.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lists {
		for _, resource := range l.APIResources {
			got = append(got, l.GroupVersion+" "+resource.Name)
		}
	}
	slices.Sort(got)
	want := []string{"batch/v1 cronjobs", "batch/v1 jobs", "kubeflow.org/v2beta1 mpijobs", "ray.io/v1 rayclusters", "ray.io/v1 rayjobs", "v1 nodes", "v1 pods"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}
