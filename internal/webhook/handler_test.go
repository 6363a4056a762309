package webhook

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
)

func TestMalformed(t *testing.T) {
	const kind = `"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"`
	for _, tt := range []struct {
		name, contentType, body string
		want                    string
	}{
		{"content type", "application/yaml", "{}", `content type "application/yaml": want application/json`},
		{"no content type", "", "{}", `content type "": want application/json`},
		{"empty", "application/json", "", "decode an AdmissionReview"},
		{"no JSON", "application/json; charset=utf-8", "{", "decode an AdmissionReview"},
		{"another kind", "application/json", `{"apiVersion":"v1","kind":"Pod"}`, "got /v1, Kind=Pod: want admission.k8s.io/v1, Kind=AdmissionReview"},
		{"another version", "application/json", `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}`, "want admission.k8s.io/v1"},
		{"no request", "application/json", "{" + kind + "}", "the AdmissionReview has no request"},
		{"too large", "application/json", "{" + kind + strings.Repeat(" ", maxBody) + "}", "read the body: http: request body too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			for _, path := range []string{pathMutate, pathValidate, pathPods} {
				answer := b.post(path, tt.contentType, []byte(tt.body))
				if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), tt.want) {
					t.Errorf("%s: status %d, %s, want 400, %s", path, answer.Code, answer.Body, tt.want)
				}
			}
		})
	}
}

func TestOtherRequests(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, pathMutate, http.StatusMethodNotAllowed},
		{http.MethodPost, "/", http.StatusNotFound},
	} {
		recorder := httptest.NewRecorder()
		b.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, bytes.NewReader(nil)))
		if recorder.Code != tt.want {
			t.Errorf("%s %s: status %d, want %d", tt.method, tt.path, recorder.Code, tt.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	b := newBench(t)
	b.ask(t, pathPods, request(t, admissionv1.Create, workload, ""))
	b.ask(t, pathPods, request(t, admissionv1.Create, strings.Replace(workload, "rdma-network", "absent", 1), ""))
	b.ask(t, pathPods, request(t, admissionv1.Create, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: annotated}, spec: {hostNetwork: true}}", ""))
	b.ask(t, pathPods, request(t, admissionv1.Create, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: new}}", ""))
	b.ask(t, pathValidate, request(t, admissionv1.Create, brokenPool(""), ""))
	b.ask(t, pathMutate, request(t, admissionv1.Create, pool, ""))
	b.ask(t, pathMutate, request(t, admissionv1.Create, "{apiVersion: v1, kind: Madeup, metadata: {name: p}}", ""))
	b.post(pathValidate, "", nil)
	const want = `
# HELP railhead_controller_admission_requests_total Admission requests by webhook, kind and verdict: allowed, changed, refused by a rule, or failed.
# TYPE railhead_controller_admission_requests_total counter
railhead_controller_admission_requests_total{kind="Pod",verdict="allowed",webhook="pods"} 1
railhead_controller_admission_requests_total{kind="Pod",verdict="changed",webhook="pods"} 1
railhead_controller_admission_requests_total{kind="Pod",verdict="failed",webhook="pods"} 1
railhead_controller_admission_requests_total{kind="Pod",verdict="refused",webhook="pods"} 1
railhead_controller_admission_requests_total{kind="SpiderIPPool",verdict="changed",webhook="mutate"} 1
railhead_controller_admission_requests_total{kind="SpiderIPPool",verdict="refused",webhook="validate"} 1
railhead_controller_admission_requests_total{kind="other",verdict="failed",webhook="mutate"} 1
railhead_controller_admission_requests_total{kind="other",verdict="failed",webhook="validate"} 1
`
	if err := testutil.GatherAndCompare(b.registry, strings.NewReader(want), "railhead_controller_admission_requests_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(b.registry, "railhead_controller_admission_duration_seconds"); err != nil || n != 3 {
		t.Errorf("%d duration histograms, %v, want one for each of 3 webhooks", n, err)
	}
	if problems, err := testutil.GatherAndLint(prometheus.Gatherer(b.registry)); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
