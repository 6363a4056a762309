package kubetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// watcher is a watch of a collection that is under way.
type watcher struct {
	r       *http.Request
	path    place
	selects func(Object) bool
	first   []Object      // events of what there was
	version int           // of the last change that was told
	wake    chan struct{} // holds one where there is something to tell
	final   Object        // event behind all others; nil: none
	isOver  bool
	last    int // version of the last change to tell where it is over
}

func (w *watcher) notify() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look
	}
}

// watch tells of what there is, if that is asked for, and of what changes.
func (s *Server) watch(r *http.Request, at place) *http.Response {
	q := r.URL.Query()
	isWhole := q.Get("sendInitialEvents") != ""
	version, _ := strconv.Atoi(q.Get("resourceVersion"))
	switch {
	case isWhole && s.IsOld:
		return failed(r, http.StatusUnprocessableEntity)
	case !isWhole && (s.IsBlank || version < s.forgotten):
		return failed(r, http.StatusGone)
	}
	w := &watcher{r: r, path: at, selects: selectorOf(r), version: version, wake: make(chan struct{}, 1)}
	if isWhole {
		for _, o := range s.selected(r, at) {
			w.first = append(w.first, Object{"type": "ADDED", "object": o})
		}
		w.first = append(w.first, Object{"type": "BOOKMARK", "object": Object{
			"apiVersion": at.version(), "kind": at.kind(), "metadata": Object{
				"resourceVersion": strconv.Itoa(s.version), "annotations": Object{metav1.InitialEventsAnnotationKey: "true"},
			},
		}})
		w.version = s.version
	}
	s.watchers[w] = true
	body, pipe := io.Pipe()
	go s.stream(w, pipe)
	return &http.Response{
		StatusCode: http.StatusOK, Body: body, Request: r, Header: http.Header{"Content-Type": {"application/json;stream=watch"}},
	}
}

func (s *Server) stream(w *watcher, pipe *io.PipeWriter) {
	defer s.Change(func() { delete(s.watchers, w) })
	defer func() { _ = pipe.Close() }()
	seconds, _ := strconv.Atoi(w.r.URL.Query().Get("timeoutSeconds"))
	timeout := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timeout.Stop()
	encoder := json.NewEncoder(pipe)
	for {
		events, isOver := s.take(w)
		for i, event := range events {
			o, _ := event["object"].(Object)
			if event["type"] != "ERROR" { // which is a status
				o = partial(w.r, o)
			}
			if encoder.Encode(Object{"type": event["type"], "object": o}) != nil {
				return
			}
			events[i] = nil
		}
		if isOver {
			return
		}
		select {
		case <-w.wake:
		case <-timeout.C:
			return
		case <-w.r.Context().Done():
			return
		}
	}
}

// take returns what is to be told a watcher, and whether nothing comes behind it.
func (s *Server) take(w *watcher) (events []Object, isOver bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, w.first = w.first, nil
	if w.version < s.forgotten { // it listens too slowly
		w.final, w.isOver = Object{"type": "ERROR", "object": ObjectOf(statusOf(http.StatusGone))}, true
	}
	next := sort.Search(len(s.history), func(i int) bool { return s.history[i].version > w.version })
	for _, c := range s.history[next:] {
		if (!w.isOver || c.version <= w.last) && c.path.isIn(w.path) && w.selects(c.object) {
			events = append(events, Object{"type": c.kind, "object": c.object})
		}
	}
	w.version = s.version
	if w.final != nil {
		events = append(events, w.final)
	}
	return events, w.isOver
}

// endWatches ends all watches, behind an event if there is one.
func (s *Server) endWatches(final Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		delete(s.watchers, w)
		w.final, w.isOver, w.last = final, true, s.version
		w.notify()
	}
}

// verbOf is which right a request takes.
func verbOf(r *http.Request, at place) string {
	switch {
	case r.Method != http.MethodGet:
		return map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	case r.URL.Query().Get("watch") != "":
		return "watch"
	case at.name == "":
		return "list"
	}
	return "get"
}

// selectorOf says of an object whether the selectors of a request select it.
func selectorOf(r *http.Request) func(Object) bool {
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		panic(err)
	}
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	return func(o Object) bool {
		set := labels.Set{}
		given, _ := Meta(o)["labels"].(Object)
		for key, value := range given {
			set[key] = fmt.Sprint(value)
		}
		return byLabel.Matches(set) && byField.Matches(fieldsOf(o))
	}
}

// fieldsOf are the fields of an object by their paths: "spec.nodeName".
type fieldsOf Object

// Has implements [fields.Fields].
func (f fieldsOf) Has(field string) bool { return f.Get(field) != "" }

// Get implements [fields.Fields].
func (f fieldsOf) Get(field string) string {
	var value any = Object(f)
	for part := range strings.SplitSeq(field, ".") {
		o, _ := value.(Object)
		value = o[part]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// partial is an object, or of a request for metadata, no more than that.
func partial(r *http.Request, o Object) Object {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return o
	}
	return Object{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o["metadata"]}
}

func bodyOf(r *http.Request) Object {
	if r.Body == nil {
		return Object{}
	}
	defer func() { _ = r.Body.Close() }()
	var o Object
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		panic(err)
	}
	return o
}

func respond(r *http.Request, status int, v any) *http.Response {
	return &http.Response{
		StatusCode: status, Body: io.NopCloser(strings.NewReader(Text(v))), Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

// statusOf is what an API server says where it refuses.
func statusOf(code int) metav1.Status {
	reasons := map[int]metav1.StatusReason{
		http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
		http.StatusGone: metav1.StatusReasonExpired, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reasons[code], Message: "the API server says " + strconv.Itoa(code),
	}
}

func failed(r *http.Request, code int, reason ...metav1.StatusReason) *http.Response {
	status := statusOf(code)
	if len(reason) > 0 {
		status.Reason = reason[0]
	}
	return respond(r, code, status)
}

// ServeHTTP answers a request that came over a connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := s.RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = response.Body.Close() }()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	flush := http.NewResponseController(w).Flush
	buffer := make([]byte, 32<<10)
	for err == nil && flush() == nil {
		var n int
		n, err = response.Body.Read(buffer)
		_, _ = w.Write(buffer[:n])
	}
}
