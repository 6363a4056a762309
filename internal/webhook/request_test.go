package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"railhead/internal/policy"
	"railhead/internal/policy/manifest"
)

// bench is a Server with what it stands on.
type bench struct {
	*Server
	catalog    *policy.Catalog
	namespaces *Namespaces
	registry   *prometheus.Registry
	reads      atomic.Int64 // of namespaces, from the API
}

// errAway is what the API says of namespaces that are not known.
var errAway = errors.New("the API server is away")

// newBench has the networks of the spec, and the namespaces default and annotated.
func newBench(tb testing.TB) *bench {
	tb.Helper()
	b := &bench{catalog: policy.NewCatalog(), registry: prometheus.NewRegistry()}
	b.namespaces = NewNamespaces(func(context.Context, string) (map[string]string, error) {
		b.reads.Add(1)
		return nil, errAway
	})
	b.Server = New(Options{
		Catalog: b.catalog, Namespaces: b.namespaces, Registry: b.registry,
		Log: slog.New(slog.DiscardHandler),
	})
	networks, err := os.ReadFile("testdata/networks.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	for _, document := range manifest.Documents(networks) {
		object, errs, err := document.Decode()
		if err != nil || len(errs) > 0 {
			tb.Fatal(err, errs)
		}
		b.catalog.Default(object)
		b.catalog.Put(object)
	}
	b.namespaces.Put(namespace("default", nil))
	b.namespaces.Put(namespace("annotated", map[string]string{rdma: "rdma-network", "other": "x"}))
	return b
}

func namespace(name string, annotations map[string]string) metav1.Object {
	return &metav1.ObjectMeta{Name: name, Annotations: annotations}
}

// request is a request to write an object, given as YAML. An empty text is no object.
func request(tb testing.TB, operation admissionv1.Operation, object, old string) *admissionv1.AdmissionRequest {
	tb.Helper()
	r := &admissionv1.AdmissionRequest{
		UID: types.UID("1"), Operation: operation,
		Object: runtime.RawExtension{Raw: toJSON(tb, object)}, OldObject: runtime.RawExtension{Raw: toJSON(tb, old)},
	}
	var named metav1.PartialObjectMetadata
	for _, raw := range [][]byte{r.OldObject.Raw, r.Object.Raw} {
		if raw != nil {
			if err := json.Unmarshal(raw, &named); err != nil {
				tb.Fatal(err)
			}
		}
	}
	kind := named.GroupVersionKind()
	r.Kind = metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
	r.Name, r.Namespace = named.Name, named.Namespace
	return r
}

func toJSON(tb testing.TB, text string) []byte {
	tb.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return data
}

// ask sends a request and returns the answer.
func (b *bench) ask(tb testing.TB, path string, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	tb.Helper()
	review := admissionv1.AdmissionReview{Request: r}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		tb.Fatal(err)
	}
	answer := b.post(path, "application/json", body)
	if answer.Code != http.StatusOK {
		tb.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		tb.Fatal(err)
	}
	if got.GroupVersionKind() != review.GroupVersionKind() || got.Request != nil || got.Response == nil || got.Response.UID != r.UID {
		tb.Fatalf("not the answer to request %s: %s", r.UID, answer.Body)
	}
	return got.Response
}

func (b *bench) post(path, contentType string, body []byte) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	b.ServeHTTP(recorder, r)
	return recorder
}

// applied is an object after the patch of an answer.
func applied(tb testing.TB, object []byte, response *admissionv1.AdmissionResponse) []byte {
	tb.Helper()
	if response.Patch == nil {
		return object
	}
	if response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
		tb.Fatalf("patch of type %v", response.PatchType)
	}
	operations, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		tb.Fatal(err)
	}
	changed, err := operations.Apply(object)
	if err != nil {
		tb.Fatalf("%v: %s on %s", err, response.Patch, object)
	}
	return changed
}
