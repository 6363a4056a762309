package simulation

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// bookmarkEvery is how often a watch is told how far it is, where it wants to.
const bookmarkEvery = 30 * time.Second

// watch is the body of the answer to a watch: an endless list of events, made as
// it is read.
type watch struct {
	server  *apiServer
	request request
	chosen  selector
	form    form
	seen    map[string]bool // objects by key that the client has

	version uint64
	waiting bytes.Buffer
	expires <-chan time.Time // nil where the client sets no end
	isEnded bool             // after what waits
	closed  chan struct{}
	close   func()
}

func (a *apiServer) watch(q request, s selector) *http.Response {
	w := &watch{server: a, request: q, chosen: s, form: formOf(q.Request), seen: map[string]bool{}, closed: make(chan struct{})}
	w.close = sync.OnceFunc(func() { close(w.closed) })
	if seconds, err := strconv.Atoi(q.URL.Query().Get("timeoutSeconds")); err == nil && seconds > 0 {
		w.expires = time.After(time.Duration(seconds) * time.Second)
	}
	w.begin()
	return response(q.Request, http.StatusOK, w, -1)
}

// begin sends what there is already: to a client that names no version, or that
// wants the list as part of the watch.
func (w *watch) begin() {
	query := w.request.URL.Query()
	version, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
	objects, now := w.server.store.list(w.request.kind.GroupVersionResource)
	for _, o := range objects {
		if !w.chosen.matches(o) {
			continue
		}
		w.seen[keyOf(o)] = true
		if initial || err != nil || version == 0 {
			w.event("ADDED", w.form.one(o))
		}
	}
	w.version = now
	if initial {
		w.bookmark(map[string]string{"k8s.io/initial-events-end": "true"})
		return
	}
	if err == nil && version > 0 {
		w.resume(version)
	}
}

// resume goes on where a client has come to.
func (w *watch) resume(version uint64) {
	changes, _, _, _ := w.server.store.after(w.request.kind.GroupVersionResource, version)
	for _, c := range slices.Backward(changes) {
		w.seen[keyOf(c.object)] = c.typ != "ADDED" && w.chosen.matches(c.object)
	}
	w.version = version
}

// Read returns events, and waits for one where there is none.
func (w *watch) Read(p []byte) (int, error) {
	for w.waiting.Len() == 0 {
		if w.isEnded {
			return 0, io.EOF
		}
		if err := w.wait(); err != nil {
			return 0, err
		}
	}
	return w.waiting.Read(p)
}

// Close ends the watch and a Read that waits.
func (w *watch) Close() error {
	w.close()
	return nil
}

// wait waits until something waits to be read, or for the end.
func (w *watch) wait() error {
	changes, now, more, ok := w.server.store.after(w.request.kind.GroupVersionResource, w.version)
	if !ok {
		w.event("ERROR", statusObject(http.StatusGone, "Expired", "too old resource version"))
		w.isEnded = true
		return nil
	}
	w.version = now
	for _, c := range changes {
		w.tell(c)
	}
	if w.waiting.Len() > 0 {
		return nil
	}
	bookmark := time.NewTimer(bookmarkEvery)
	defer bookmark.Stop()
	select {
	case <-more:
	case <-bookmark.C:
		if slices.Contains([]string{"true", "1"}, w.request.URL.Query().Get("allowWatchBookmarks")) {
			w.bookmark(nil)
		}
	case <-w.expires:
		return io.EOF
	case <-w.server.closed:
		return io.EOF
	case <-w.closed:
		return http.ErrBodyReadAfterClose
	case <-w.request.Context().Done():
		return w.request.Context().Err()
	}
	return nil
}

// tell sends a change. An object that is chosen no longer is gone for the
// client, one that is chosen now is new.
func (w *watch) tell(c change) {
	key, had := keyOf(c.object), w.seen[keyOf(c.object)]
	has := c.typ != "DELETED" && w.chosen.matches(c.object)
	typ := "MODIFIED"
	switch {
	case has && !had:
		typ = "ADDED"
	case !has && had:
		typ = "DELETED"
	case !has:
		return
	}
	w.seen[key] = has
	w.event(typ, w.form.one(c.object))
}

func (w *watch) bookmark(annotations map[string]string) {
	apiVersion, kind := w.form.of(w.request.kind)
	metadata := object{"resourceVersion": strconv.FormatUint(w.version, 10)}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	w.event("BOOKMARK", object{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
}

func (w *watch) event(typ string, o object) {
	if err := json.NewEncoder(&w.waiting).Encode(object{"type": typ, "object": o}); err != nil {
		panic(err) // it is made of maps, lists and text
	}
}
