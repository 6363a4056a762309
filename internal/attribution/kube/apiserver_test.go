package kube

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// apiServer answers as an API server does, as the transport of a client.
type apiServer struct {
	mu       sync.Mutex
	pods     map[types.UID]*metav1.PartialObjectMetadata
	objects  map[string]*metav1.PartialObjectMetadata // by path
	served   map[string][]metav1.APIResource          // by path of the API version
	answers  map[string]int                           // status by path, where it is another
	asked    map[string]int                           // by path
	isAway   bool                                     // it refuses connections
	isSilent bool                                     // it takes questions and does not answer
	isOld    bool                                     // it cannot begin a watch with what there is
	watchers map[*watcher]bool
}

// watcher is a watch of pods that is under way.
type watcher struct {
	events chan any
	gone   chan struct{} // closed by the server when it leaves
	ended  chan struct{} // closed when nothing is sent any more
}

func newAPIServer() *apiServer {
	resource := func(kind string, namespaced bool) metav1.APIResource {
		return metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: namespaced}
	}
	return &apiServer{
		pods:     map[types.UID]*metav1.PartialObjectMetadata{},
		objects:  map[string]*metav1.PartialObjectMetadata{},
		answers:  map[string]int{},
		asked:    map[string]int{},
		watchers: map[*watcher]bool{},
		served: map[string][]metav1.APIResource{
			"/api/v1":                       {resource("Node", false), {Name: "nodes/status", Kind: "Node"}},
			"/apis/apps/v1":                 {resource("ReplicaSet", true), resource("Deployment", true)},
			"/apis/batch/v1":                {resource("Job", true), resource("CronJob", true)},
			"/apis/jobset.x-k8s.io/v1":      {resource("JobSet", true)},
			"/apis/trainer.kubeflow.org/v1": {resource("TrainJob", true)},
			"/apis/kubeflow.org/v1":         {resource("PyTorchJob", true)},
		},
	}
}

func (a *apiServer) config() *rest.Config {
	return &rest.Config{Host: "http://api.example", Transport: a, QPS: -1}
}

// change changes what there is.
func (a *apiServer) change(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// leave makes the server go away, and with it what is watched.
func (a *apiServer) leave() {
	a.change(func() {
		a.isAway = true
		for w := range a.watchers {
			delete(a.watchers, w)
			close(w.gone)
		}
	})
}

func (a *apiServer) comeBack() { a.change(func() { a.isAway = false }) }

// setPod makes or changes a pod.
func (a *apiServer) setPod(pod *metav1.PartialObjectMetadata) {
	a.mu.Lock()
	kind := "ADDED"
	if a.pods[pod.UID] != nil {
		kind = "MODIFIED"
	}
	a.pods[pod.UID] = pod
	a.mu.Unlock()
	a.send(event(kind, pod))
}

func (a *apiServer) deletePod(uid types.UID) {
	a.mu.Lock()
	pod := a.pods[uid]
	delete(a.pods, uid)
	a.mu.Unlock()
	a.send(event("DELETED", pod))
}

func (a *apiServer) send(event any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watchers {
		select {
		case w.events <- event:
		case <-w.ended:
		}
	}
}

// setOwner makes an object that owns others, and returns a reference to it.
func (a *apiServer) setOwner(apiVersion, kind, name string, uid types.UID, controllers ...metav1.OwnerReference) metav1.OwnerReference {
	a.mu.Lock()
	defer a.mu.Unlock()
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ai", UID: uid, OwnerReferences: controllers,
	}}
	a.objects[pathOf(apiVersion, kind, name)] = object
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

func event(kind string, pod *metav1.PartialObjectMetadata) any {
	return map[string]any{"type": kind, "object": withType(pod)}
}

func withType(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	typed := object.DeepCopy()
	typed.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	if typed.ResourceVersion == "" {
		typed.ResourceVersion = "1"
	}
	return typed
}

// RoundTrip answers a request.
func (a *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[r.URL.Path]++
	if a.isAway {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if a.isSilent {
		a.mu.Unlock()
		<-r.Context().Done()
		a.mu.Lock()
		return nil, r.Context().Err()
	}
	if status := a.answers[r.URL.Path]; status != 0 {
		return failed(r, status), nil
	}
	if r.URL.Path == "/api/v1/pods" {
		return a.podsOf(r), nil
	}
	if resources, ok := a.served[r.URL.Path]; ok {
		return respond(r, http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, APIResources: resources,
		}), nil
	}
	if object, ok := a.objects[r.URL.Path]; ok && strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata;") {
		return respond(r, http.StatusOK, withType(object)), nil
	}
	return failed(r, http.StatusNotFound), nil
}

// podsOf answers what is asked of the pods of node n1.
func (a *apiServer) podsOf(r *http.Request) *http.Response {
	q := r.URL.Query()
	isWatch, isWhole := q.Get("watch") != "", q.Get("sendInitialEvents") != ""
	switch {
	case q.Get("fieldSelector") != "spec.nodeName=n1":
		return failed(r, http.StatusForbidden)
	case a.isOld && isWatch && isWhole:
		return failed(r, http.StatusUnprocessableEntity)
	case a.isOld && isWatch:
		return a.watch(r, nil)
	case a.isOld:
		return a.list(r)
	case isWatch && isWhole:
		return a.watch(r, a.initialEvents())
	}
	return failed(r, http.StatusGone)
}

func (a *apiServer) list(r *http.Request) *http.Response {
	list := metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
	}
	for _, pod := range a.pods {
		list.Items = append(list.Items, *withType(pod))
	}
	return respond(r, http.StatusOK, list)
}

// initialEvents are the pods that there are, and a bookmark behind them.
func (a *apiServer) initialEvents() []any {
	var first []any
	for _, pod := range a.pods {
		first = append(first, event("ADDED", pod))
	}
	return append(first, event("BOOKMARK", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}))
}

// watch streams events, and then what comes, for as long as it was asked to.
func (a *apiServer) watch(r *http.Request, first []any) *http.Response {
	w := &watcher{events: make(chan any, 64), gone: make(chan struct{}), ended: make(chan struct{})}
	a.watchers[w] = true
	body, pipe := io.Pipe()
	go func() {
		w.stream(r, pipe, first)
		a.change(func() { delete(a.watchers, w) })
	}()
	return &http.Response{
		StatusCode: http.StatusOK, Body: body, Request: r, Header: http.Header{"Content-Type": {"application/json;stream=watch"}},
	}
}

func (w *watcher) stream(r *http.Request, pipe *io.PipeWriter, first []any) {
	defer close(w.ended)
	defer func() { _ = pipe.Close() }()
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	timeout := time.After(time.Duration(seconds) * time.Second)
	encoder := json.NewEncoder(pipe)
	for _, event := range first {
		if encoder.Encode(event) != nil {
			return
		}
	}
	for {
		select {
		case event := <-w.events:
			_ = encoder.Encode(event) // who does not listen hears nothing
		case <-w.gone:
			return
		case <-timeout:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func respond(r *http.Request, status int, object any) *http.Response {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: status, Body: io.NopCloser(strings.NewReader(string(text))), Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

func failed(r *http.Request, code int) *http.Response {
	reasons := map[int]metav1.StatusReason{
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
		http.StatusGone: metav1.StatusReasonExpired, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	return respond(r, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: r.URL.Path,
	})
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

var _ http.RoundTripper = (*apiServer)(nil)

func newSource(t *testing.T, a *apiServer) *Source {
	t.Helper()
	s, err := New(a.config(), "n1", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
