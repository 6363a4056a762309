// Package kubetest is a small API server of Kubernetes for tests. It is the
// transport of a client, so that it works in a bubble of testing/synctest, or
// an HTTP handler. It lists, watches from a version on, compares and swaps,
// selects by label and field, and fails as a test tells it to.
package kubetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Object is one as JSON has it.
type Object = map[string]any

// Server is an API server. Once it is asked, its fields change in Change only.
type Server struct {
	Objects map[string]Object               // by path, with the namespace that they are in
	Served  map[string][]metav1.APIResource // what discovery tells, by path of the API version
	Answers map[string]int                  // status of all answers, by path or "verb path"
	Asked   map[string]int                  // requests by "verb path"
	Verbs   map[string]bool                 // that were used, as rights have them: "get nodes"
	Sent    []Object                        // bodies of what was created and patched
	Missing []string                        // beginnings of the paths of what is not installed
	Page    int                             // objects in an answer to a list at most; 0: all

	IsAway   bool // it refuses connections
	IsSilent bool // it takes requests and does not answer
	IsOld    bool // it cannot begin a watch with what there is
	IsBlank  bool // it forgets from where on a watch may begin

	// Hook is called with each request; where it returns a status, that is the
	// answer. Nil: none is called.
	Hook func(verb string, r *http.Request) (status int)
	// Wrote is called with a copy of what a client created or updated. What it
	// changes is stored as the next write. Nil: none is called.
	Wrote func(path string, o Object)

	mu        sync.Mutex
	version   int
	history   []change // the last ones
	forgotten int      // version of the change before them
	watchers  map[*watcher]bool
	lost      map[string]bool
}

// remembered is how many changes a watch can begin behind, at least.
const remembered = 2048

// change is one of an object, as a watch tells of it.
type change struct {
	version int
	kind    string
	path    place
	object  Object
}

// New returns a server without objects.
func New() *Server {
	return &Server{
		Objects: map[string]Object{}, Served: map[string][]metav1.APIResource{}, Answers: map[string]int{},
		Asked: map[string]int{}, Verbs: map[string]bool{},
		version: 100, watchers: map[*watcher]bool{}, lost: map[string]bool{},
	}
}

// Config is how a client reaches the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://api.example", Transport: s, QPS: -1}
}

// Change changes the fields of the server.
func (s *Server) Change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Set makes or changes an object as somebody else does. The path is that of the
// object or of a collection that it is in.
func (s *Server) Set(path string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(placeOf(path).of(o), Clone(o))
}

// Edit changes an object as somebody else does; nothing where it is not there.
func (s *Server) Edit(path string, edit func(Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.Objects[path]; o != nil {
		o = Clone(o)
		edit(o)
		s.store(placeOf(path), o)
	}
}

// Delete removes an object; nothing happens where it is not there.
func (s *Server) Delete(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(placeOf(path))
}

// Forget drops all objects and what watches were told, and tells nobody.
func (s *Server) Forget() {
	s.Change(func() {
		clear(s.Objects)
		s.history, s.forgotten = nil, s.version
	})
}

// Get returns a copy of an object; nil where it is not there.
func (s *Server) Get(path string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Clone(s.Objects[path])
}

// Count is how often something was asked: "get /api/v1/nodes/n1".
func (s *Server) Count(asked string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Asked[asked]
}

// Refuse has requests be answered with a status; 0 ends that. What is asked is a
// path, or "verb path".
func (s *Server) Refuse(asked string, status int) {
	s.Change(func() { s.Answers[asked] = status })
}

// Lose has the answer to the next request be lost, after the work was done.
func (s *Server) Lose(asked string) {
	s.Change(func() { s.lost[asked] = true })
}

// Leave makes the server go away, and with it what is watched.
func (s *Server) Leave() {
	s.Change(func() { s.IsAway = true })
	s.Cut()
}

// ComeBack has a server that left be there again.
func (s *Server) ComeBack() { s.Change(func() { s.IsAway = false }) }

// Cut ends all watches.
func (s *Server) Cut() { s.endWatches(nil) }

// Fail ends all watches with a status; 410 says that it forgot from where on they are.
func (s *Server) Fail(code int) {
	s.endWatches(Object{"type": "ERROR", "object": ObjectOf(statusOf(code))})
}

// store keeps an object under a new version, and tells watchers.
func (s *Server) store(at place, o Object) {
	kind := "ADDED"
	if s.Objects[at.String()] != nil {
		kind = "MODIFIED"
	}
	s.version++
	meta := Meta(o)
	meta["resourceVersion"] = strconv.Itoa(s.version)
	if meta["uid"] == nil {
		meta["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	if o["kind"] == nil {
		o["apiVersion"], o["kind"] = at.version(), at.kind()
	}
	s.Objects[at.String()] = o
	s.tell(kind, at, o)
}

func (s *Server) drop(at place) {
	if o := s.Objects[at.String()]; o != nil {
		s.version++
		delete(s.Objects, at.String())
		o = Clone(o)
		Meta(o)["resourceVersion"] = strconv.Itoa(s.version)
		s.tell("DELETED", at, o)
	}
}

func (s *Server) tell(kind string, at place, o Object) {
	if len(s.history) == 2*remembered {
		s.forgotten = s.history[remembered-1].version
		s.history = append(s.history[:0:0], s.history[remembered:]...)
	}
	s.history = append(s.history, change{s.version, kind, at, o})
	for w := range s.watchers {
		w.notify()
	}
}

// RoundTrip answers a request.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := placeOf(r.URL.Path)
	verb := verbOf(r, at)
	asked := verb + " " + r.URL.Path
	s.Asked[asked]++
	s.Verbs[verb+" "+at.resource] = true
	switch {
	case s.IsAway:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case s.IsSilent:
		s.mu.Unlock()
		<-r.Context().Done()
		s.mu.Lock()
		return nil, r.Context().Err()
	}
	if status := s.refusal(verb, r); status != 0 {
		return failed(r, status), nil
	}
	response := s.answer(r, at, verb)
	if s.lost[asked] {
		delete(s.lost, asked)
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return response, nil
}

// refusal is the status with which a request is refused; 0 where it is not.
func (s *Server) refusal(verb string, r *http.Request) (status int) {
	if s.Hook != nil {
		status = s.Hook(verb, r)
	}
	if status == 0 {
		status = s.Answers[r.URL.Path]
	}
	if status == 0 {
		status = s.Answers[verb+" "+r.URL.Path]
	}
	if status == 0 && slices.ContainsFunc(s.Missing, func(prefix string) bool { return strings.HasPrefix(r.URL.Path, prefix) }) {
		status = http.StatusNotFound
	}
	return status
}

func (s *Server) answer(r *http.Request, at place, verb string) *http.Response {
	if resources, ok := s.Served[r.URL.Path]; ok {
		return respond(r, http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, APIResources: resources,
		})
	}
	if kinds[at.resource] == "" {
		return failed(r, http.StatusNotFound)
	}
	switch verb {
	case "create":
		return s.create(r, at)
	case "watch":
		return s.watch(r, at)
	case "list":
		return s.list(r, at)
	}
	switch o := s.Objects[at.String()]; {
	case o == nil:
		return failed(r, http.StatusNotFound)
	case verb == "get":
		return respond(r, http.StatusOK, partial(r, o))
	case verb == "update":
		return s.update(r, at, o)
	case verb == "patch":
		return s.patch(r, at, o)
	case verb == "delete":
		return s.remove(r, at, o)
	}
	return failed(r, http.StatusMethodNotAllowed)
}

func (s *Server) create(r *http.Request, collection place) *http.Response {
	o := bodyOf(r)
	s.Sent = append(s.Sent, Clone(o))
	at := collection.of(o)
	if s.Objects[at.String()] != nil {
		return failed(r, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	}
	Meta(o)["generation"] = 1
	if at.hasStatus() {
		delete(o, "status")
	}
	return s.wrote(r, http.StatusCreated, at, o)
}

func (s *Server) update(r *http.Request, at place, before Object) *http.Response {
	o := bodyOf(r)
	if Meta(o)["resourceVersion"] != Meta(before)["resourceVersion"] {
		return failed(r, http.StatusConflict, metav1.StatusReasonConflict)
	}
	if at.hasStatus() {
		o["status"] = before["status"]
	}
	return s.replace(r, at, before, o)
}

func (s *Server) patch(r *http.Request, at place, before Object) *http.Response {
	patch := bodyOf(r)
	s.Sent = append(s.Sent, Clone(patch))
	o := Clone(before)
	merge(o, patch)
	return s.replace(r, at, before, o)
}

// merge changes an object as a JSON merge patch says (RFC 7396).
func merge(o, patch Object) {
	for key, value := range patch {
		inner, isObject := value.(Object)
		switch of, ok := o[key].(Object); {
		case value == nil:
			delete(o, key)
		case isObject && ok:
			merge(of, inner)
		default:
			o[key] = value
		}
	}
}

// replace stores an object in the place of another, and counts generations.
func (s *Server) replace(r *http.Request, at place, before, o Object) *http.Response {
	generation, _ := strconv.Atoi(fmt.Sprint(Meta(before)["generation"]))
	if Text(o["spec"]) != Text(before["spec"]) {
		generation++
	}
	Meta(o)["generation"] = generation
	return s.wrote(r, http.StatusOK, at, o)
}

// wrote stores what a client wrote and answers with it, and has the test write next.
func (s *Server) wrote(r *http.Request, status int, at place, o Object) *http.Response {
	s.store(at, o)
	answer := respond(r, status, o)
	if s.Wrote != nil {
		next := Clone(o)
		s.Wrote(at.String(), next)
		if Text(next) != Text(o) {
			s.store(at, next)
		}
	}
	return answer
}

func (s *Server) remove(r *http.Request, at place, o Object) *http.Response {
	wanted, _ := bodyOf(r)["preconditions"].(Object)
	for _, key := range []string{"uid", "resourceVersion"} {
		if want := wanted[key]; want != nil && want != Meta(o)[key] {
			return failed(r, http.StatusConflict, metav1.StatusReasonConflict)
		}
	}
	s.drop(at)
	return respond(r, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}

// selected are the objects that a request asks for, in the order of their paths.
func (s *Server) selected(r *http.Request, collection place) (list []Object) {
	selects := selectorOf(r)
	for _, path := range slices.Sorted(maps.Keys(s.Objects)) {
		if o := s.Objects[path]; placeOf(path).isIn(collection) && selects(o) {
			list = append(list, o)
		}
	}
	return list
}

func (s *Server) list(r *http.Request, collection place) *http.Response {
	objects := s.selected(r, collection)
	start, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	end := len(objects)
	if s.Page > 0 {
		end = min(start+s.Page, end)
	}
	items := []any{}
	for _, o := range objects[start:end] {
		items = append(items, partial(r, o))
	}
	meta := Object{"resourceVersion": strconv.Itoa(s.version)}
	if end < len(objects) {
		meta["continue"] = strconv.Itoa(end)
	}
	list := partial(r, Object{"apiVersion": collection.version(), "kind": collection.kind(), "metadata": meta})
	list["kind"] = fmt.Sprint(list["kind"]) + "List"
	list["items"] = items
	return respond(r, http.StatusOK, list)
}

// Meta is the metadata of an object.
func Meta(o Object) Object {
	meta, ok := o["metadata"].(Object)
	if !ok {
		panic(fmt.Sprintf("an object without metadata: %v", o))
	}
	return meta
}

// Text is a value as JSON.
func Text(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// ObjectOf is a typed object as JSON has it.
func ObjectOf(v any) Object {
	var o Object
	if err := json.Unmarshal([]byte(Text(v)), &o); err != nil {
		panic(err)
	}
	return o
}

// Clone copies an object; nil remains nil.
func Clone(o Object) Object { return ObjectOf(o) }
