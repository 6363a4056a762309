package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

// Where the API server has what the tests are about.
const (
	podsPath         = "/api/v1/pods"
	nodesPath        = "/api/v1/nodes"
	namespacesPath   = "/api/v1/namespaces"
	configMapsPath   = "/api/v1/namespaces/railhead-system/configmaps"
	nadsPath         = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
	spiderPath       = "/apis/spiderpool.spidernet.io/v2beta1/"
	poolsPath        = spiderPath + "spiderippools"
	coordinatorsPath = spiderPath + "spidercoordinators"
	replicaSetsPath  = "/apis/apps/v1/replicasets"
)

// fields of an object as JSON has it.
type content = map[string]any

// apiServer is a small API server, as the transport of a client. Objects are by
// the collection of all namespaces, and then "namespace/name".
type apiServer struct {
	mu       sync.Mutex
	objects  map[string]map[string]content
	version  int
	watchers map[*watcher]bool
	asked    map[string]int  // by "METHOD path"; "WATCH", "LIST" of collections
	verbs    map[string]bool // that were used, as rights have them: "get nodes"
	missing  []string        // beginnings of paths of what is not installed
	answers  map[string]int  // status by path, where it is another
	bodies   []content       // that were sent
	isAway   bool            // it refuses connections
	isSilent bool            // it takes questions and does not answer
	isOld    bool            // it cannot begin a watch with what there is
	isBlank  bool            // it forgets from where on a watch may begin
}

// watcher is a watch of a collection that is under way.
type watcher struct {
	path   string
	r      *http.Request
	first  []any // that there was
	events chan any
	gone   chan struct{}
	ended  chan struct{} // closed once nobody is told any more
}

func newAPIServer() *apiServer {
	a := &apiServer{
		objects: map[string]map[string]content{}, watchers: map[*watcher]bool{}, asked: map[string]int{}, verbs: map[string]bool{},
		answers: map[string]int{}, version: 100,
	}
	a.set(nodesPath, content{
		"apiVersion": "v1", "kind": "Node",
		"metadata": content{"name": "n1", "uid": "node-1", "labels": content{"zone": "a"}, "managedFields": []any{content{"manager": "kubelet"}}},
		"status": content{
			"addresses": []any{
				content{"type": "Hostname", "address": "n1"},
				content{"type": "ExternalIP", "address": "192.0.2.1"},
				content{"type": "InternalIP", "address": "10.0.0.1"},
				content{"type": "InternalIP", "address": "fd00::1"},
			},
			"images": []any{content{"names": []any{"x"}}},
		},
	})
	a.set(nodesPath, content{"apiVersion": "v1", "kind": "Node", "metadata": content{"name": "n2"}})
	a.set(namespacesPath, content{"apiVersion": "v1", "kind": "Namespace", "metadata": content{"name": "ai", "labels": content{"team": "a"}}})
	return a
}

func (a *apiServer) config() *rest.Config {
	return &rest.Config{Host: "http://api.example", Transport: a, QPS: -1}
}

// change changes how it answers.
func (a *apiServer) change(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// set makes or changes an object.
func (a *apiServer) set(collection string, o content) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.objects[collection] == nil {
		a.objects[collection] = map[string]content{}
	}
	key, kind := keyIn(o), "ADDED"
	before := a.objects[collection][key]
	meta := metaOf(o)
	a.version++
	meta["resourceVersion"] = strconv.Itoa(a.version)
	if before != nil {
		kind = "MODIFIED"
	}
	if meta["uid"] == nil {
		meta["uid"] = "uid-" + fmt.Sprint(meta["name"])
	}
	a.objects[collection][key] = o
	a.tell(kind, collection, o)
}

// delete has an object go.
func (a *apiServer) delete(collection, key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.objects[collection][key]
	delete(a.objects[collection], key)
	a.version++
	o = clone(o)
	metaOf(o)["resourceVersion"] = strconv.Itoa(a.version)
	a.tell("DELETED", collection, o)
}

func (a *apiServer) tell(kind, collection string, o content) {
	for w := range a.watchers {
		if collectionOf(w.path) == collection && selects(w.r, collection, o) {
			select {
			case w.events <- content{"type": kind, "object": partial(w.r, o, "PartialObjectMetadata")}:
			case <-w.ended:
			}
		}
	}
}

// leave makes the server go away, and with it what is watched.
func (a *apiServer) leave() {
	a.change(func() { a.isAway = true })
	a.cut()
}

func (a *apiServer) comeBack() { a.change(func() { a.isAway = false }) }

// cut ends all watches.
func (a *apiServer) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watchers {
		delete(a.watchers, w)
		close(w.gone)
	}
}

// expire ends all watches because it forgot from where on they are.
func (a *apiServer) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watchers {
		delete(a.watchers, w)
		w.events <- content{"type": "ERROR", "object": content{
			"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": http.StatusGone, "reason": "Expired",
		}}
		close(w.events)
	}
}

// requests is how many were sent that are no watches and no lists.
func (a *apiServer) requests() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for asked, times := range a.asked {
		if !strings.HasPrefix(asked, "WATCH") && !strings.HasPrefix(asked, "LIST") {
			n += times
		}
	}
	return n
}

func (a *apiServer) count(asked string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[asked]
}

// sent are the bodies of what was written.
func (a *apiServer) sent() []content {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.bodies)
}

// RoundTrip answers a request.
func (a *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	verb := verbOf(r)
	a.asked[map[string]string{"list": "LIST", "watch": "WATCH"}[verb]+map[bool]string{true: r.Method}[verb != "list" && verb != "watch"]+" "+r.URL.Path]++
	a.verbs[verb+" "+resourceOf(r.URL.Path)] = true
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
	if slices.ContainsFunc(a.missing, func(prefix string) bool { return strings.HasPrefix(r.URL.Path, prefix) }) {
		return failed(r, http.StatusNotFound), nil
	}
	return a.answer(r, verb), nil
}

func (a *apiServer) answer(r *http.Request, verb string) *http.Response {
	q := r.URL.Query()
	isWhole := q.Get("sendInitialEvents") != ""
	switch {
	case verb == "create":
		a.bodies = append(a.bodies, bodyOf(r))
		return respond(r, http.StatusCreated, content{"apiVersion": "v1", "kind": "Event", "metadata": content{"name": "x"}})
	case verb == "watch" && isWhole && a.isOld:
		return failed(r, http.StatusUnprocessableEntity)
	case verb == "watch" && !isWhole && a.isBlank:
		return failed(r, http.StatusGone)
	case verb == "watch":
		return a.watch(r, isWhole)
	case verb == "list":
		return a.list(r)
	}
	collection, key := split(r.URL.Path)
	o := a.objects[collection][key]
	if o == nil {
		return failed(r, http.StatusNotFound)
	}
	if verb == "patch" {
		a.bodies = append(a.bodies, bodyOf(r))
	}
	return respond(r, http.StatusOK, partial(r, o, "PartialObjectMetadata"))
}

func (a *apiServer) selected(r *http.Request) (list []content) {
	collection := collectionOf(r.URL.Path)
	for _, key := range slices.Sorted(maps.Keys(a.objects[collection])) {
		if o := a.objects[collection][key]; selects(r, collection, o) {
			list = append(list, o)
		}
	}
	return list
}

func (a *apiServer) list(r *http.Request) *http.Response {
	items := []any{}
	kind := kindOf(collectionOf(r.URL.Path))
	for _, o := range a.selected(r) {
		items = append(items, partial(r, o, "PartialObjectMetadata"))
	}
	list := partial(r, content{
		"apiVersion": kind[0], "kind": kind[1] + "List", "metadata": content{"resourceVersion": strconv.Itoa(a.version)},
	}, "PartialObjectMetadataList")
	list["items"] = items
	return respond(r, http.StatusOK, list)
}

// watch tells of what there is, if that is asked for, and of what changes.
func (a *apiServer) watch(r *http.Request, isWhole bool) *http.Response {
	w := &watcher{path: r.URL.Path, r: r, events: make(chan any, 64), gone: make(chan struct{}), ended: make(chan struct{})}
	kind := kindOf(collectionOf(r.URL.Path))
	if isWhole {
		for _, o := range a.selected(r) {
			w.first = append(w.first, content{"type": "ADDED", "object": partial(r, o, "PartialObjectMetadata")})
		}
		w.first = append(w.first, content{"type": "BOOKMARK", "object": partial(r, content{
			"apiVersion": kind[0], "kind": kind[1], "metadata": content{
				"resourceVersion": strconv.Itoa(a.version), "annotations": content{metav1.InitialEventsAnnotationKey: "true"},
			},
		}, "PartialObjectMetadata")})
	} else if version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion")); version < a.version {
		for _, o := range a.selected(r) { // those that changed since
			if v, _ := strconv.Atoi(fmt.Sprint(metaOf(o)["resourceVersion"])); v > version {
				w.first = append(w.first, content{"type": "MODIFIED", "object": partial(r, o, "PartialObjectMetadata")})
			}
		}
	}
	a.watchers[w] = true
	body, pipe := io.Pipe()
	go w.stream(pipe)
	return &http.Response{
		StatusCode: http.StatusOK, Body: body, Request: r, Header: http.Header{"Content-Type": {"application/json;stream=watch"}},
	}
}

func (w *watcher) stream(pipe *io.PipeWriter) {
	defer close(w.ended)
	defer func() { _ = pipe.Close() }()
	seconds, _ := strconv.Atoi(w.r.URL.Query().Get("timeoutSeconds"))
	timeout := time.After(time.Duration(seconds) * time.Second)
	encoder := json.NewEncoder(pipe)
	for i, event := range w.first {
		if encoder.Encode(event) != nil {
			return
		}
		w.first[i] = nil
	}
	w.first = nil
	for {
		select {
		case event, ok := <-w.events:
			if !ok || encoder.Encode(event) != nil {
				return
			}
		case <-w.gone:
			return
		case <-timeout:
			return
		case <-w.r.Context().Done():
			return
		}
	}
}

// split is a path as a collection of all namespaces, and the key in it.
func split(path string) (collection, key string) {
	parts := strings.Split(path, "/")
	i := slices.Index(parts, "namespaces")
	if i >= 0 && i+3 < len(parts) && !strings.HasPrefix(path, configMapsPath) {
		return strings.Join(append(slices.Clone(parts[:i]), parts[i+2]), "/"), parts[i+1] + "/" + parts[i+3]
	}
	at := strings.LastIndex(path, "/")
	return path[:at], path[at+1:]
}

// collectionOf is the path of a collection that is asked for whole.
func collectionOf(path string) string { return path }

func resourceOf(path string) string {
	if verb := path[strings.LastIndex(path, "/")+1:]; isCollection(path) {
		return verb
	}
	collection, _ := split(path)
	return collection[strings.LastIndex(collection, "/")+1:]
}

// isCollection tells "pods" from "pods/name".
func isCollection(path string) bool {
	last := path[strings.LastIndex(path, "/")+1:]
	return slices.Contains([]string{
		"pods", "nodes", "configmaps", "events", "network-attachment-definitions", "spiderippools",
		"spiderreservedips", "spidercoordinators",
	}, last)
}

// verbOf is which right a request takes.
func verbOf(r *http.Request) string {
	verb := map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodGet: "get"}[r.Method]
	switch {
	case r.URL.Query().Get("watch") != "":
		return "watch"
	case verb == "get" && isCollection(r.URL.Path):
		return "list"
	}
	return verb
}

// kindOf is the API version and the kind of a collection's objects.
func kindOf(collection string) [2]string {
	const spider = "spiderpool.spidernet.io/v2beta1"
	return map[string][2]string{
		podsPath: {"v1", "Pod"}, nodesPath: {"v1", "Node"}, configMapsPath: {"v1", "ConfigMap"},
		nadsPath:  {"k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition"},
		poolsPath: {spider, "SpiderIPPool"}, coordinatorsPath: {spider, "SpiderCoordinator"},
		spiderPath + "spiderreservedips": {spider, "SpiderReservedIP"},
	}[collection]
}

// selects tells whether the selector of a request selects an object.
func selects(r *http.Request, collection string, o content) bool {
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		panic(err)
	}
	spec, _ := o["spec"].(content)
	set := fields.Set{"metadata.name": fmt.Sprint(metaOf(o)["name"])}
	if collection == podsPath {
		set["spec.nodeName"] = fmt.Sprint(spec["nodeName"])
	}
	return selector.Matches(set)
}

// partial is an object, or of a request for metadata, no more than that.
func partial(r *http.Request, o content, kind string) content {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return clone(o)
	}
	return content{"apiVersion": "meta.k8s.io/v1", "kind": kind, "metadata": clone(o)["metadata"]}
}

func metaOf(o content) content {
	meta, ok := o["metadata"].(content)
	if !ok {
		panic(fmt.Sprintf("an object without metadata: %v", o))
	}
	return meta
}

// keyIn is what an object is called in its collection.
func keyIn(o content) string {
	meta := metaOf(o)
	if namespace, ok := meta["namespace"].(string); ok {
		return namespace + "/" + fmt.Sprint(meta["name"])
	}
	return fmt.Sprint(meta["name"])
}

func textOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// clone copies an object as JSON would.
func clone(o content) content {
	var copied content
	if err := json.Unmarshal([]byte(textOf(o)), &copied); err != nil {
		panic(err)
	}
	return copied
}

func bodyOf(r *http.Request) content {
	defer func() { _ = r.Body.Close() }()
	var o content
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		panic(err)
	}
	return o
}

func respond(r *http.Request, status int, v any) *http.Response {
	return &http.Response{
		StatusCode: status, Body: io.NopCloser(strings.NewReader(textOf(v))), Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

func failed(r *http.Request, code int) *http.Response {
	reasons := map[int]metav1.StatusReason{
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
		http.StatusGone: metav1.StatusReasonExpired, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusConflict: metav1.StatusReasonConflict,
	}
	return respond(r, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: r.Method + " " + r.URL.Path,
	})
}

var _ http.RoundTripper = (*apiServer)(nil)
