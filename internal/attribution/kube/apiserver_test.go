package kube

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/kubetest"
)

const podsPath = "/api/v1/pods"

// apiServer is an API server with pods of node n1 and what owns them.
type apiServer struct {
	*kubetest.Server

	pods map[types.UID]string // their paths
}

func newAPIServer() *apiServer {
	resource := func(kind string, namespaced bool) metav1.APIResource {
		return metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: namespaced}
	}
	a := &apiServer{kubetest.New(), map[types.UID]string{}}
	a.Served = map[string][]metav1.APIResource{
		"/api/v1":                       {resource("Node", false), {Name: "nodes/status", Kind: "Node"}},
		"/apis/apps/v1":                 {resource("ReplicaSet", true), resource("Deployment", true)},
		"/apis/batch/v1":                {resource("Job", true), resource("CronJob", true)},
		"/apis/jobset.x-k8s.io/v1":      {resource("JobSet", true)},
		"/apis/trainer.kubeflow.org/v1": {resource("TrainJob", true)},
		"/apis/kubeflow.org/v1":         {resource("PyTorchJob", true)},
	}
	a.Hook = a.permits
	return a
}

// permits refuses what a Source has no reason to ask: pods of other nodes, whole
// objects, and lists where a watch can begin with what there is.
func (a *apiServer) permits(verb string, r *http.Request) int {
	q := r.URL.Query()
	switch {
	case r.URL.Path == podsPath && q.Get("fieldSelector") != "spec.nodeName=n1":
		return http.StatusForbidden
	case r.URL.Path == podsPath && !a.IsOld && q.Get("sendInitialEvents") == "":
		return http.StatusGone
	case verb == "get" && !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata;"):
		return http.StatusNotFound
	}
	return 0
}

// setPod makes or changes a pod.
func (a *apiServer) setPod(pod *metav1.PartialObjectMetadata) {
	o := kubetest.ObjectOf(pod)
	o["spec"] = kubetest.Object{"nodeName": "n1"}
	a.pods[pod.UID] = "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
	a.Set(podsPath, o)
}

func (a *apiServer) deletePod(uid types.UID) {
	a.Delete(a.pods[uid])
	delete(a.pods, uid)
}

// setOwner makes an object that owns others, and returns a reference to it.
func (a *apiServer) setOwner(apiVersion, kind, name string, uid types.UID, controllers ...metav1.OwnerReference) metav1.OwnerReference {
	a.Set(pathOf(apiVersion, kind, name), kubetest.ObjectOf(&metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ai", UID: uid, OwnerReferences: controllers},
	}))
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: new(true)}
}

// pathOf is the path of an object, in the namespace ai unless it is a Node.
func pathOf(apiVersion, kind, name string) string {
	prefix := "/apis/" + apiVersion + "/namespaces/ai/"
	if kind == "Node" {
		prefix = "/api/v1/"
	}
	return prefix + strings.ToLower(kind) + "s/" + name
}

// podOf is the metadata of a pod, with much that nobody needs.
func podOf(uid types.UID, name string, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: uid, Namespace: "ai", Name: name, OwnerReferences: owners,
		Labels:        map[string]string{"app": "training"},
		Annotations:   map[string]string{"note": strings.Repeat("x", 500)},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}}
}

func labelled(pod *metav1.PartialObjectMetadata, labels ...string) *metav1.PartialObjectMetadata {
	for i := 0; i < len(labels); i += 2 {
		pod.Labels[labels[i]] = labels[i+1]
	}
	return pod
}

func newSource(t *testing.T, a *apiServer) *Source {
	t.Helper()
	s, err := New(a.Config(), "n1", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
