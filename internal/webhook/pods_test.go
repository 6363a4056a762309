package webhook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"railhead/api/spiderpool/v2beta1"
)

const rdma = v2beta1.AnnotationInjectRDMA

// workload is the pod of the spec's Deployment, with fields that a newer
// Kubernetes may have.
const workload = `
apiVersion: v1
kind: Pod
metadata:
  generateName: ai-app-
  namespace: default
  annotations:
    cni.spidernet.io/rdma-resource-inject: rdma-network
  unheard: {of: 1}
spec:
  containers:
    - name: main
      image: rdma-tools
      alsoUnheard: [of]
  unheardTimeout: 9007199254740993
`

const printedNetworks = `[{"name":"gpu1-sriov","namespace":"spiderpool"},{"name":"gpu2-sriov","namespace":"spiderpool"},` +
	`{"name":"gpu3-sriov","namespace":"spiderpool"},{"name":"gpu4-sriov","namespace":"spiderpool"},` +
	`{"name":"gpu5-sriov","namespace":"spiderpool"},{"name":"gpu6-sriov","namespace":"spiderpool"},` +
	`{"name":"gpu7-sriov","namespace":"spiderpool"},{"name":"gpu8-sriov","namespace":"spiderpool"}]`

func TestPodOfSpec(t *testing.T) {
	b := newBench(t)
	r := request(t, admissionv1.Create, workload, "")
	response := b.ask(t, pathPods, r)
	if !response.Allowed || len(response.Warnings) > 0 {
		t.Fatalf("%+v", response)
	}
	limits := map[string]any{}
	for _, gpu := range "12345678" {
		limits["spidernet.io/gpu"+string(gpu)+"rdma"] = "1"
	}
	want := []map[string]any{
		{"op": "add", "path": "/metadata/annotations/k8s.v1.cni.cncf.io~1networks", "value": printedNetworks},
		{"op": "add", "path": "/spec/containers/0/resources", "value": map[string]any{"limits": limits}},
	}
	var got []map[string]any
	if err := json.Unmarshal(response.Patch, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	r.Object.Raw = applied(t, r.Object.Raw, response)
	if !strings.Contains(string(r.Object.Raw), "9007199254740993") {
		t.Errorf("a field of a newer Kubernetes is not what it was: %s", r.Object.Raw)
	}
	if again := b.ask(t, pathPods, r); !again.Allowed || again.Patch != nil {
		t.Errorf("asked again: %+v, patch %s", again, again.Patch)
	}
}

func TestPods(t *testing.T) {
	pod := func(namespace, annotations, spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: " + namespace + ", annotations: {" + annotations + "}}, spec: {" + spec + "}}"
	}
	const one = "containers: [{name: main}]"
	for _, tt := range []struct {
		name string
		r    *admissionv1.AdmissionRequest

		changed  bool
		code     int32 // of the refusal
		message  string
		warnings int
		reads    int64
	}{
		{
			name: "of a namespace that asks for nothing as far as is known", r: request(t, admissionv1.Create, pod("default", "", one), ""),
			code: http.StatusInternalServerError, message: "read the annotations of namespace default: " + errAway.Error(), reads: 1,
		},
		{name: "by its namespace", r: request(t, admissionv1.Create, pod("annotated", "", one), ""), changed: true},
		{name: "on the host's network in such a namespace", r: request(t, admissionv1.Create, pod("annotated", "", "hostNetwork: true, "+one), ""), warnings: 1},
		{name: "of a namespace that is not known, by itself", r: request(t, admissionv1.Create, pod("new", rdma+": rdma-network", one), ""), changed: true},
		{
			name: "of a namespace that is not known", r: request(t, admissionv1.Create, pod("new", "", one), ""),
			code: http.StatusInternalServerError, message: "read the annotations of namespace new: " + errAway.Error(), reads: 1,
		},
		{
			name: "asks for what is not there", r: request(t, admissionv1.Create, pod("default", rdma+": absent", one), ""),
			code: http.StatusUnprocessableEntity, message: `Pod "p" is invalid: metadata.annotations[cni.spidernet.io/rdma-resource-inject]: Invalid value: "absent"`,
		},
		{name: "is no Pod", r: request(t, admissionv1.Create, pod("default", "", "containers: 5"), ""), code: http.StatusBadRequest, message: "decode a Pod"},
		{name: "is changed", r: request(t, admissionv1.Update, pod("annotated", "", one), pod("annotated", "", one))},
		{
			name: "is bound to a node", r: func() *admissionv1.AdmissionRequest {
				r := request(t, admissionv1.Create, "{apiVersion: v1, kind: Binding, metadata: {name: p, namespace: annotated}}", "")
				r.SubResource = "binding"
				return r
			}(),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			response := b.ask(t, pathPods, tt.r)
			if got := response.Patch != nil; got != tt.changed {
				t.Errorf("patch %s, want one: %t", response.Patch, tt.changed)
			}
			if len(response.Warnings) != tt.warnings {
				t.Errorf("warnings %q, want %d", response.Warnings, tt.warnings)
			}
			if reads := b.reads.Load(); reads != tt.reads {
				t.Errorf("namespaces were read %d times, want %d", reads, tt.reads)
			}
			wantRefusal(t, response, tt.code, tt.message)
		})
	}
}

// wantRefusal wants a refusal with a status code, or none if that is 0.
func wantRefusal(t *testing.T, response *admissionv1.AdmissionResponse, code int32, message string) {
	t.Helper()
	if response.Allowed != (code == 0) {
		t.Fatalf("allowed = %t: %+v", response.Allowed, response.Result)
	}
	if code == 0 {
		return
	}
	if response.Result.Code != code || !strings.Contains(response.Result.Message, message) {
		t.Errorf("refused with %d, %q, want %d, %q", response.Result.Code, response.Result.Message, code, message)
	}
}
