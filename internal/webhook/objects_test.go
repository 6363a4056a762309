package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/policy/manifest"
)

const pool = `
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata:
  name: gpu1-net11
  managedFields: [{manager: kubectl, operation: Update}]
spec:
  gateway: 172.16.11.254
  subnet: 172.16.11.0/16
  ips: [172.16.11.1-172.16.11.200]
`

// brokenPool breaks two rules and has two unknown fields. extra is more metadata.
func brokenPool(extra string) string {
	return `
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata:
  name: broken
  labels: {app: x}
` + extra + `
spec:
  subnet: 10.0.0.0/24
  ips: [10.0.0.9-10.0.0.1, 10.1.0.1]
  gatway: 10.0.0.254
  pods: 5
`
}

// misruledPool breaks two rules, and has no unknown fields.
func misruledPool(extra string) string {
	text, _, _ := strings.Cut(brokenPool(extra), "  gatway")
	return text
}

func TestMutate(t *testing.T) {
	b := newBench(t)
	r := request(t, admissionv1.Create, pool, "")
	response := b.ask(t, pathMutate, r)
	wantRefusal(t, response, 0, "")
	if len(response.Warnings) == 0 {
		t.Error("host bits of the subnet were cleared and nobody is told")
	}
	var operations []struct{ Op, Path string }
	if err := json.Unmarshal(response.Patch, &operations); err != nil {
		t.Fatal(err)
	}
	for _, o := range operations {
		if !strings.HasPrefix(o.Path, "/spec/") && !strings.HasPrefix(o.Path, "/metadata/labels") && !strings.HasPrefix(o.Path, "/metadata/finalizers") {
			t.Errorf("%s %s is none of our business", o.Op, o.Path)
		}
	}
	wantDefaults(t, b, r.Object.Raw, applied(t, r.Object.Raw, response))

	r.Object.Raw = applied(t, r.Object.Raw, response)
	if again := b.ask(t, pathMutate, r); !again.Allowed || again.Patch != nil {
		t.Errorf("asked again: %+v, patch %s", again, again.Patch)
	}
}

// wantDefaults wants got to be the object that the Catalog makes of sent.
func wantDefaults(t *testing.T, b *bench, sent, got []byte) {
	t.Helper()
	want, errs, err := manifest.Decode(sent)
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	b.catalog.Default(want)
	object, errs, err := manifest.Decode(got)
	if err != nil || len(errs) > 0 {
		t.Fatalf("%v %v in %s", err, errs, got)
	}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMutateLeaves(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    *admissionv1.AdmissionRequest
	}{
		{"what is being deleted", request(t, admissionv1.Update, strings.Replace(pool, "name:", "deletionTimestamp: \"2026-01-01T00:00:00Z\"\n  name:", 1), pool)},
		{"a change of metadata", request(t, admissionv1.Update, strings.Replace(pool, "name:", "labels: {a: b}\n  name:", 1), pool)},
		{"deletion", request(t, admissionv1.Delete, "", pool)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response := newBench(t).ask(t, pathMutate, tt.r)
			wantRefusal(t, response, 0, "")
			if response.Patch != nil {
				t.Errorf("patch %s", response.Patch)
			}
		})
	}
}

// TestListsAll: one answer has everything that is wrong. Both webhooks refuse, as
// the API server checks the schema between them and has no helpful words.
func TestListsAll(t *testing.T) {
	for _, path := range []string{pathMutate, pathValidate} {
		t.Run(path, func(t *testing.T) { listsAll(t, path) })
	}
}

func listsAll(t *testing.T, path string) {
	t.Helper()
	response := newBench(t).ask(t, path, request(t, admissionv1.Create, brokenPool(""), ""))
	wantRefusal(t, response, http.StatusUnprocessableEntity, `SpiderIPPool.spiderpool.spidernet.io "broken" is invalid`)
	var fields []string
	for _, cause := range response.Result.Details.Causes {
		fields = append(fields, cause.Field)
	}
	if diff := cmp.Diff([]string{"spec.gatway", "spec.pods", "spec.ips[0]", "spec.ips[1]"}, fields); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	if response.Result.Reason != metav1.StatusReasonInvalid {
		t.Errorf("reason %q, want %q", response.Result.Reason, metav1.StatusReasonInvalid)
	}

	response = newBench(t).ask(t, path, request(t, admissionv1.Create, misruledPool(""), ""))
	wantRefusal(t, response, http.StatusUnprocessableEntity, "spec.ips[0]")
	wantRefusal(t, response, http.StatusUnprocessableEntity, "spec.ips[1]")
}

func TestValidate(t *testing.T) {
	deleting := `  deletionTimestamp: "2026-01-01T00:00:00Z"`
	finalizer := "  finalizers: [spiderpool.spidernet.io]"
	deletingPool := strings.Replace(strings.Replace(pool, "11.0/16", "0.0/16", 1), "  name: gpu1-net11", "  name: gpu1-net11\n"+deleting, 1)
	for _, tt := range []struct {
		name    string
		r       *admissionv1.AdmissionRequest
		code    int32
		message string
	}{
		{name: "what keeps the rules", r: request(t, admissionv1.Create, strings.Replace(pool, "11.0/16", "0.0/16", 1), "")},
		{name: "a finalizer of a broken object goes", r: request(t, admissionv1.Update, brokenPool(""), brokenPool(finalizer))},
		{name: "an owner of a broken object comes", r: request(t, admissionv1.Update, brokenPool("  ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: x}]"), brokenPool(""))},
		{name: "managedFields of a broken object change", r: request(t, admissionv1.Update, brokenPool("  managedFields: [{manager: m}]\n  resourceVersion: \"2\""), brokenPool(""))},
		{name: "somebody's label on a broken object", r: request(t, admissionv1.Update, brokenPool("  annotations: {example.com/a: b}"), brokenPool(""))},
		{name: "a broken object that is being deleted", r: request(t, admissionv1.Update, brokenPool(deleting), brokenPool(deleting+"\n"+finalizer))},
		{name: "the status of a broken object that is being deleted", r: request(t, admissionv1.Update, brokenPool(deleting)+"status: {totalIPCount: 5}", brokenPool(deleting))},
		{
			name: "an object that is being deleted changes", r: request(t, admissionv1.Update, strings.Replace(deletingPool, "11.200", "11.201", 1), deletingPool),
			code: http.StatusUnprocessableEntity, message: "spec: Forbidden: gpu1-net11 is being deleted: only finalizers may be removed",
		},
		{
			name: "a broken object that is being deleted and changes", r: request(t, admissionv1.Update, brokenPool(deleting), pool),
			code: http.StatusUnprocessableEntity, message: "spec.gatway",
		},
		{name: "an annotation of a domain that only ends like ours", r: request(t, admissionv1.Update, brokenPool("  annotations: {notrailhead.io/a: b}"), brokenPool(""))},
		{
			name: "a broken object changes", r: request(t, admissionv1.Update, brokenPool(""), strings.Replace(brokenPool(""), "pods: 5", "pods: 6", 1)),
			code: http.StatusUnprocessableEntity, message: "spec.gatway",
		},
		{
			name: "our annotation on a broken object", r: request(t, admissionv1.Update, brokenPool("  annotations: {ipam.spidernet.io/a: b}"), brokenPool("")),
			code: http.StatusUnprocessableEntity, message: "spec.gatway",
		},
		{name: "a subnet that changes", r: request(t, admissionv1.Update, strings.Replace(strings.Replace(pool, "gpu1-net11", "broken", 1), "172.16.11.0/16", "172.16.0.0/16", 1), brokenPool("")), code: http.StatusUnprocessableEntity, message: "spec.subnet"},
		{name: "not ours", r: request(t, admissionv1.Create, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}", ""), code: http.StatusBadRequest, message: "not an object that is checked here"},
		{name: "a broken object goes", r: request(t, admissionv1.Delete, "", brokenPool(""))},
		{name: "an object that does not decode goes", r: &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Delete}},
		{
			name: "a subresource", r: func() *admissionv1.AdmissionRequest {
				r := request(t, admissionv1.Update, brokenPool(""), pool)
				r.SubResource = "status"
				return r
			}(),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response := newBench(t).ask(t, pathValidate, tt.r)
			if response.Patch != nil {
				t.Errorf("a validating webhook sends the patch %s", response.Patch)
			}
			wantRefusal(t, response, tt.code, tt.message)
		})
	}
}

// TestValidateDelete: a pool in use is not deleted where the configuration says so.
func TestValidateDelete(t *testing.T) {
	b := newBench(t)
	object, _, err := manifest.Decode(toJSON(t, pool))
	if err != nil {
		t.Fatal(err)
	}
	b.catalog.Default(object)
	b.catalog.Put(object)
	endpoint, errs, err := manifest.Decode(toJSON(t, `
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderEndpoint
metadata: {name: p, namespace: default}
status:
  current:
    uid: u
    node: node1
    ips: [{interface: net1, ipv4: 172.16.11.7/16, ipv4Pool: gpu1-net11}]
  ownerControllerType: Pod
  ownerControllerName: p
`))
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	b.catalog.Put(endpoint)
	for _, refuse := range []bool{false, true} {
		config := b.catalog.Config()
		config.RefuseDeleteInUse = refuse
		b.catalog.SetConfig(config)
		response := b.ask(t, pathValidate, request(t, admissionv1.Delete, "", pool))
		if response.Allowed == refuse {
			t.Errorf("RefuseDeleteInUse = %t: allowed = %t: %+v", refuse, response.Allowed, response.Result)
		}
	}
	deleting := strings.Replace(pool, "name:", "deletionTimestamp: \"2026-01-01T00:00:00Z\"\n  name:", 1)
	wantRefusal(t, b.ask(t, pathValidate, request(t, admissionv1.Delete, "", deleting)), 0, "")
}

// TestDryRun: asking changes nothing of what the next answer follows from.
func TestDryRun(t *testing.T) {
	b := newBench(t)
	r := request(t, admissionv1.Create, pool, "")
	r.DryRun = new(true)
	before := fmt.Sprint(b.catalog.Pools(), b.catalog.Networks(), b.namespaces.Annotated())
	for _, path := range []string{pathMutate, pathValidate} {
		b.ask(t, path, r)
	}
	b.ask(t, pathPods, request(t, admissionv1.Create, workload, ""))
	if after := fmt.Sprint(b.catalog.Pools(), b.catalog.Networks(), b.namespaces.Annotated()); before != after {
		t.Errorf("was %s\nis %s", before, after)
	}
}
