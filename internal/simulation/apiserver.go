package simulation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiServer answers requests as an API server does, without a network: it is
// the transport of clients.
type apiServer struct {
	store     *store
	kinds     []kind
	forbidden []string // resources that may not be read, jobs.batch
	closed    chan struct{}
}

// kind is a kind of objects that there is.
type kind struct {
	schema.GroupVersionResource

	Kind       string
	Namespaced bool
}

// request is a request for objects.
type request struct {
	*http.Request

	kind            kind
	namespace, name string
}

// RoundTrip answers a request.
func (a *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	select {
	case <-a.closed:
		return nil, fmt.Errorf("%s: the simulation is closed", r.URL.Path)
	default:
	}
	if r.Method != http.MethodGet {
		return refuseWith(r, http.StatusMethodNotAllowed, "MethodNotAllowed", "a simulated API server is only read"), nil
	}
	if answer := a.discover(r.URL.Path); answer != nil {
		return respond(r, http.StatusOK, answer), nil
	}
	q, ok := a.parse(r)
	if !ok {
		return refuseWith(r, http.StatusNotFound, "NotFound", "the server could not find the requested resource"), nil
	}
	return a.read(q), nil
}

// parse finds out what a path is about.
func (a *apiServer) parse(r *http.Request) (request, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var group string
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, parts = parts[1], parts[2:]
	default:
		return request{}, false
	}
	version, parts := parts[0], parts[1:]
	q := request{Request: r}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 2 {
		return request{}, false
	}
	if len(parts) == 2 {
		q.name = parts[1]
	}
	resource := schema.GroupVersionResource{Group: group, Version: version, Resource: parts[0]}
	i := slices.IndexFunc(a.kinds, func(k kind) bool { return k.GroupVersionResource == resource })
	if i < 0 {
		return request{}, false
	}
	q.kind = a.kinds[i]
	return q, true
}

func (a *apiServer) read(q request) *http.Response {
	resource := q.kind.GroupResource().String()
	switch {
	case slices.Contains(a.forbidden, resource):
		return refuseWith(q.Request, http.StatusForbidden, "Forbidden", fmt.Sprintf(
			"%s is forbidden: User \"system:serviceaccount:railhead:railhead\" cannot read resource %q in API group %q",
			resource, q.kind.Resource, q.kind.Group))
	case q.name != "":
		return a.get(q)
	}
	s, err := selectorOf(q)
	if err != nil {
		return refuseWith(q.Request, http.StatusBadRequest, "BadRequest", err.Error())
	}
	if on, _ := strconv.ParseBool(q.URL.Query().Get("watch")); on {
		return a.watch(q, s)
	}
	return a.list(q, s)
}

func (a *apiServer) get(q request) *http.Response {
	o, ok := a.store.get(q.kind.GroupVersionResource, q.namespace, q.name)
	if !ok {
		return refuseWith(q.Request, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", q.kind.GroupResource(), q.name))
	}
	return respond(q.Request, http.StatusOK, formOf(q.Request).one(o))
}

func (a *apiServer) list(q request, s selector) *http.Response {
	objects, version := a.store.list(q.kind.GroupVersionResource)
	form := formOf(q.Request)
	items := []object{}
	for _, o := range objects {
		if s.matches(o) {
			items = append(items, form.one(o))
		}
	}
	slices.SortFunc(items, func(a, b object) int { return cmp.Compare(keyOf(a), keyOf(b)) })
	apiVersion, kind := form.of(q.kind)
	return respond(q.Request, http.StatusOK, object{
		"apiVersion": apiVersion, "kind": kind + "List", "items": items,
		"metadata": object{"resourceVersion": strconv.FormatUint(version, 10)},
	})
}

// selector chooses objects.
type selector struct {
	namespace string
	fields    fields.Selector
	labels    labels.Selector
}

func selectorOf(q request) (selector, error) {
	s := selector{namespace: q.namespace}
	var err error
	if s.fields, err = fields.ParseSelector(q.URL.Query().Get("fieldSelector")); err != nil {
		return s, err
	}
	for _, r := range s.fields.Requirements() {
		if !slices.Contains([]string{"metadata.name", "metadata.namespace", "spec.nodeName"}, r.Field) {
			return s, fmt.Errorf("field label not supported: %s", r.Field)
		}
	}
	s.labels, err = labels.Parse(q.URL.Query().Get("labelSelector"))
	return s, err
}

func (s selector) matches(o object) bool {
	if s.namespace != "" && text(o, "namespace") != s.namespace {
		return false
	}
	spec, _ := o["spec"].(object)
	node, _ := spec["nodeName"].(string)
	set := labels.Set{}
	if l, ok := metadataOf(o)["labels"].(map[string]string); ok {
		set = l
	}
	return s.labels.Matches(set) && s.fields.Matches(fields.Set{
		"metadata.name": text(o, "name"), "metadata.namespace": text(o, "namespace"), "spec.nodeName": node,
	})
}

// form is how a client wants objects: whole, or their metadata alone.
type form struct{ isPartial bool }

func formOf(r *http.Request) form {
	return form{isPartial: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")}
}

const (
	partialVersion = "meta.k8s.io/v1"
	partialKind    = "PartialObjectMetadata"
)

func (f form) one(o object) object {
	if !f.isPartial {
		return o
	}
	return object{"apiVersion": partialVersion, "kind": partialKind, "metadata": o["metadata"]}
}

func (f form) of(k kind) (apiVersion, name string) {
	if f.isPartial {
		return partialVersion, partialKind
	}
	return k.GroupVersion().String(), k.Kind
}

// refuseWith is an answer that is an error.
func refuseWith(r *http.Request, code int, reason, message string) *http.Response {
	return respond(r, code, statusObject(code, reason, message))
}

func statusObject(code int, reason, message string) object {
	return object{
		"apiVersion": "v1", "kind": "Status", "metadata": object{}, "status": "Failure",
		"reason": reason, "message": message, "code": code,
	}
}

// respond answers with JSON.
func respond(r *http.Request, code int, body any) *http.Response {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // it is made of maps, lists and text
	}
	return response(r, code, io.NopCloser(bytes.NewReader(b)), int64(len(b)))
}

func response(r *http.Request, code int, body io.ReadCloser, length int64) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: length,
	}
}
