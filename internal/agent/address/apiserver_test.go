package address

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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// Where the API server has what the tests are about.
const (
	leasesPath    = "/apis/railhead.io/v1alpha1/addressleases"
	endpointsPath = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/ai/spiderendpoints"
	podsPath      = "/api/v1/namespaces/ai/pods"
	nodesPath     = "/api/v1/nodes"
)

// object is one as JSON has it.
type object = map[string]any

// apiServer is a small API server, as the transport of a client: it compares and
// swaps, counts generations, selects, and tells watchers. Whatever writes a lease,
// granted is called with it and may change its status.
type apiServer struct {
	mu       sync.Mutex
	objects  map[string]object // by path
	version  int
	watchers map[*watcher]bool
	asked    map[string]int  // by "METHOD path"
	verbs    map[string]bool // that were used, as rights have them: "get nodes"
	isAway   bool            // it refuses connections
	lost     map[string]bool // by "METHOD path": the next answer is lost after the work was done
	refused  map[string]int  // by "METHOD path": the status of all answers
	granted  func(lease object)
}

// watcher is a watch of a collection that is under way.
type watcher struct {
	path   string
	events chan any
	gone   chan struct{}
}

func newAPIServer() *apiServer {
	a := &apiServer{
		objects: map[string]object{}, watchers: map[*watcher]bool{}, asked: map[string]int{}, verbs: map[string]bool{},
		lost: map[string]bool{}, refused: map[string]int{}, version: 100, granted: func(object) {},
	}
	a.set(nodesPath+"/n1", object{"metadata": object{"name": "n1", "uid": "node-uid"}})
	return a
}

func (a *apiServer) config() *rest.Config {
	return &rest.Config{Host: "http://api.example", Transport: a, QPS: -1}
}

// set makes or changes an object as somebody else does.
func (a *apiServer) set(path string, o object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store(path, o)
}

// change changes an object as somebody else does; nothing where it is not there.
func (a *apiServer) change(path string, change func(object)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.objects[path]; o != nil {
		o = clone(o)
		change(o)
		a.store(path, o)
	}
}

func (a *apiServer) delete(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(path)
}

// get returns an object; nil where it is not there.
func (a *apiServer) get(path string) object {
	a.mu.Lock()
	defer a.mu.Unlock()
	return clone(a.objects[path])
}

// count is how often something was asked: "PUT /apis/…".
func (a *apiServer) count(method, path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[method+" "+path]
}

// counts is how often something was asked of the objects of a collection.
func (a *apiServer) counts(method, collection string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for asked, times := range a.asked {
		if strings.HasPrefix(asked, method+" "+collection+"/") {
			n += times
		}
	}
	return n
}

// leave makes the server go away, and with it what is watched.
func (a *apiServer) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.isAway = true
	for w := range a.watchers {
		delete(a.watchers, w)
		close(w.gone)
	}
}

func (a *apiServer) comeBack() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.isAway = false
}

// fail ends all watches with a status.
func (a *apiServer) fail(code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watchers {
		delete(a.watchers, w)
		w.events <- object{"type": "ERROR", "object": object{
			"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": map[int]string{http.StatusGone: "Expired"}[code],
		}}
		close(w.events)
	}
}

// lose has the answer to the next request be lost, after the work was done.
func (a *apiServer) lose(method, path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost[method+" "+path] = true
}

// refuse has requests be answered with a status; 0 ends that.
func (a *apiServer) refuse(method, path string, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused[method+" "+path] = status
}

// store keeps an object under a new version, and tells watchers.
func (a *apiServer) store(path string, o object) {
	kind := "ADDED"
	before := a.objects[path]
	if before != nil {
		kind = "MODIFIED"
	}
	a.version++
	meta := metaOf(o)
	meta["resourceVersion"] = strconv.Itoa(a.version)
	if meta["uid"] == nil {
		meta["uid"] = fmt.Sprintf("uid-%d", a.version)
	}
	a.objects[path] = o
	a.tell(kind, path, o)
}

func (a *apiServer) drop(path string) {
	if o := a.objects[path]; o != nil {
		a.version++
		delete(a.objects, path)
		o = clone(o)
		metaOf(o)["resourceVersion"] = strconv.Itoa(a.version)
		a.tell("DELETED", path, o)
	}
}

func (a *apiServer) tell(kind, path string, o object) {
	for w := range a.watchers {
		if strings.HasPrefix(path, w.path+"/") {
			w.events <- object{"type": kind, "object": clone(o)}
		}
	}
}

// RoundTrip answers a request.
func (a *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := r.Method + " " + r.URL.Path
	a.asked[asked]++
	a.verbs[verbOf(r)] = true
	if a.isAway {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if status := a.refused[asked]; status != 0 {
		return failed(r, status), nil
	}
	response := a.answer(r)
	if a.lost[asked] {
		delete(a.lost, asked)
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return response, nil
}

func (a *apiServer) answer(r *http.Request) *http.Response {
	path := r.URL.Path
	switch {
	case r.Method == http.MethodPost:
		return a.create(r)
	case r.Method == http.MethodPut:
		return a.update(r)
	case r.Method == http.MethodDelete:
		return a.remove(r)
	case r.URL.Query().Get("watch") != "":
		return a.watch(r)
	case isCollection(path):
		return a.list(r)
	case a.objects[path] == nil:
		return failed(r, http.StatusNotFound)
	}
	return respond(r, http.StatusOK, partial(r, a.objects[path], "PartialObjectMetadata"))
}

// resources are those that there are.
func resources() []string { return []string{"pods", "nodes", "addressleases", "spiderendpoints"} }

// isCollection tells "pods" from "pods/name".
func isCollection(path string) bool {
	return slices.Contains(resources(), path[strings.LastIndex(path, "/")+1:])
}

// verbOf is which right a request takes.
func verbOf(r *http.Request) string {
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete", http.MethodGet: "get"}[r.Method]
	switch {
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	case verb == "get" && isCollection(r.URL.Path):
		verb = "list"
	}
	parts := strings.Split(r.URL.Path, "/")
	i := slices.IndexFunc(parts, func(p string) bool { return slices.Contains(resources(), p) })
	return verb + " " + parts[i]
}

func (a *apiServer) create(r *http.Request) *http.Response {
	o := bodyOf(r)
	path := r.URL.Path + "/" + fmt.Sprint(metaOf(o)["name"])
	if a.objects[path] != nil {
		return failed(r, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	}
	metaOf(o)["generation"] = 1
	if r.URL.Path == leasesPath {
		delete(o, "status")
	}
	a.store(path, o)
	answer := clone(o)
	a.grant(path)
	return respond(r, http.StatusCreated, answer)
}

func (a *apiServer) update(r *http.Request) *http.Response {
	path, o := r.URL.Path, bodyOf(r)
	before := a.objects[path]
	switch {
	case before == nil:
		return failed(r, http.StatusNotFound)
	case metaOf(o)["resourceVersion"] != metaOf(before)["resourceVersion"]:
		return failed(r, http.StatusConflict, metav1.StatusReasonConflict)
	}
	isLease := strings.HasPrefix(path, leasesPath)
	if isLease {
		o["status"] = before["status"] // which has a path of its own
	}
	generation := number(metaOf(before)["generation"])
	if textOf(o["spec"]) != textOf(before["spec"]) {
		generation++
	}
	metaOf(o)["generation"] = generation
	a.store(path, o)
	answer := clone(o)
	if isLease {
		a.grant(path)
	}
	return respond(r, http.StatusOK, answer)
}

// grant has the controller answer, as the next write.
func (a *apiServer) grant(path string) {
	if !strings.HasPrefix(path, leasesPath) {
		return
	}
	o := clone(a.objects[path])
	a.granted(o)
	if textOf(o) != textOf(a.objects[path]) {
		a.store(path, o)
	}
}

func (a *apiServer) remove(r *http.Request) *http.Response {
	o := a.objects[r.URL.Path]
	if o == nil {
		return failed(r, http.StatusNotFound)
	}
	wanted, _ := bodyOf(r)["preconditions"].(object)
	for _, key := range []string{"uid", "resourceVersion"} {
		if want := wanted[key]; want != nil && want != metaOf(o)[key] {
			return failed(r, http.StatusConflict, metav1.StatusReasonConflict)
		}
	}
	a.drop(r.URL.Path)
	return respond(r, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}

func (a *apiServer) list(r *http.Request) *http.Response {
	items := []any{}
	for _, path := range slices.Sorted(maps.Keys(a.objects)) {
		if isIn(path, r.URL.Path) && selects(r, a.objects[path]) {
			items = append(items, partial(r, a.objects[path], "PartialObjectMetadata"))
		}
	}
	list := partial(r, object{"metadata": object{"resourceVersion": strconv.Itoa(a.version)}}, "PartialObjectMetadataList")
	list["items"] = items
	return respond(r, http.StatusOK, list)
}

// isIn tells whether an object is in a collection, which may be that of all
// namespaces.
func isIn(path, collection string) bool {
	if strings.HasPrefix(path, collection+"/") {
		return true
	}
	dir, resource := collection[:strings.LastIndex(collection, "/")], collection[strings.LastIndex(collection, "/"):]
	rest, isBelow := strings.CutPrefix(path, dir+"/namespaces/")
	return isBelow && strings.Contains(rest, resource+"/")
}

// selects tells whether the selectors of a request select an object.
func selects(r *http.Request, o object) bool {
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		panic(err)
	}
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	spec, _ := o["spec"].(object)
	status, _ := o["status"].(object)
	set := labels.Set{}
	given, _ := metaOf(o)["labels"].(object)
	for key, value := range given {
		set[key] = fmt.Sprint(value)
	}
	return byLabel.Matches(set) && byField.Matches(fields.Set{
		"metadata.name": fmt.Sprint(metaOf(o)["name"]), "spec.nodeName": fmt.Sprint(spec["nodeName"]), "status.phase": fmt.Sprint(status["phase"]),
	})
}

// watch tells of what changes from now on; a version before that is expired.
func (a *apiServer) watch(r *http.Request) *http.Response {
	if r.URL.Query().Get("resourceVersion") != strconv.Itoa(a.version) {
		return failed(r, http.StatusGone, metav1.StatusReasonExpired)
	}
	w := &watcher{path: r.URL.Path, events: make(chan any, 4096), gone: make(chan struct{})}
	a.watchers[w] = true
	body, pipe := io.Pipe()
	go w.stream(r, pipe)
	return &http.Response{
		StatusCode: http.StatusOK, Body: body, Request: r, Header: http.Header{"Content-Type": {"application/json;stream=watch"}},
	}
}

func (w *watcher) stream(r *http.Request, pipe *io.PipeWriter) {
	defer func() { _ = pipe.Close() }()
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	timeout := time.After(time.Duration(seconds) * time.Second)
	encoder := json.NewEncoder(pipe)
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
		case <-r.Context().Done():
			return
		}
	}
}

// partial is an object, or of a request for metadata, no more than that.
func partial(r *http.Request, o object, kind string) object {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return clone(o)
	}
	return object{"apiVersion": "meta.k8s.io/v1", "kind": kind, "metadata": clone(o)["metadata"]}
}

func metaOf(o object) object {
	meta, ok := o["metadata"].(object)
	if !ok {
		panic(fmt.Sprintf("an object without metadata: %v", o))
	}
	return meta
}

func number(v any) int {
	n, _ := strconv.Atoi(fmt.Sprint(v))
	return n
}

func textOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// clone copies an object as JSON would.
func clone(o object) object {
	if o == nil {
		return nil
	}
	var copied object
	if err := json.Unmarshal([]byte(textOf(o)), &copied); err != nil {
		panic(err)
	}
	return copied
}

// objectOf is a typed object as JSON has it.
func objectOf(v any) object {
	var o object
	if err := json.Unmarshal([]byte(textOf(v)), &o); err != nil {
		panic(err)
	}
	return o
}

func bodyOf(r *http.Request) object {
	if r.Body == nil {
		return object{}
	}
	defer func() { _ = r.Body.Close() }()
	var o object
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

func failed(r *http.Request, code int, reason ...metav1.StatusReason) *http.Response {
	reasons := map[int]metav1.StatusReason{
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: r.Method + " " + r.URL.Path,
	}
	if len(reason) > 0 {
		status.Reason = reason[0]
	}
	return respond(r, code, status)
}

var _ http.RoundTripper = (*apiServer)(nil)
