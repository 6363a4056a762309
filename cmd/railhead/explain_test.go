package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"railhead/internal/attach/record"
	"railhead/internal/kubetest"
	"railhead/internal/npwg"
)

// annotate sets annotations of pod web-a beside those it has.
func (a *apiServer) annotate(t *testing.T, annotations map[string]string) {
	t.Helper()
	metadata := a.object(t, "Pod", "web-a")["metadata"].(map[string]any)
	all, _ := metadata["annotations"].(map[string]any)
	if all == nil {
		all = map[string]any{}
		metadata["annotations"] = all
	}
	for key, value := range annotations {
		all[key] = value
	}
}

// reported is the annotation of the trainer.
func reported(t *testing.T) string {
	t.Helper()
	text, err := trainer(t).Whole().AnnotationText()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// failed adds Events about pod web-a and others; its last one of the reason was at a time.
func (a *apiServer) failed(t *testing.T, at string) {
	t.Helper()
	metadata := a.object(t, "Pod", "web-a")["metadata"].(map[string]any)
	event := func(name, uid, reason, at, message string, count int64) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": name, "namespace": metadata["namespace"]},
			"involvedObject": map[string]any{"kind": "Pod", "uid": uid}, "reason": reason, "message": message,
			"lastTimestamp": at, "firstTimestamp": "2026-03-04T01:00:00Z", "count": count,
		}
	}
	own, _ := metadata["uid"].(string)
	for _, o := range []kubetest.Object{
		event("a", own, record.EventReason, "2026-03-04T02:00:00Z", "of before", 1),
		event("b", own, record.EventReason, at, "net2 (rail 1, enp12s0f0np0): gateway 172.16.12.254 did not answer within 900ms (3 requests)\nnet1 (rail 0, enp11s0f0np0): address 172.16.11.17 is in use by 02:42:ac:11:00:02", 7),
		event("c", own, "FailedCreatePodSandBox", "2027-03-04T02:00:00Z", "of another", 1),
		event("d", "another pod", record.EventReason, "2027-03-04T02:00:00Z", "of another", 1),
	} {
		a.Set(resources["Event"], o)
	}
}

const status = `[{"name":"k8s-pod-network","interface":"eth0","ips":["10.233.71.24"],"mac":"02:00:00:00:00:09","default":true,"dns":{},"gateway":["169.254.1.1"]},
{"name":"ai/rail0","interface":"net1","ips":["172.16.11.17"],"mac":"02:00:ac:10:0b:11","dns":{}}]`

// TestExplainAttached explains pods by their annotations and Events.
func TestExplainAttached(t *testing.T) {
	t.Parallel()
	both := func(t *testing.T, a *apiServer) {
		t.Helper()
		a.annotate(t, map[string]string{npwg.AnnotationStatus: status, record.Annotation: reported(t)})
	}
	for name, tt := range map[string]struct {
		change func(*testing.T, *apiServer)
		args   []string
	}{
		"explain.attached.txt":  {both, []string{"ai/web-a"}},
		"explain.attached.json": {both, []string{"ai/web-a", "-o", "json"}},
		"explain.status.txt": {func(t *testing.T, a *apiServer) { // another's
			t.Helper()
			a.annotate(t, map[string]string{npwg.AnnotationStatus: status})
		}, []string{"ai/web-a"}},
		"explain.misspelt.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			att := trainer(t)
			att.Report.Notes = append(att.Report.Notes, "annotation ipam.spidernet.io/ippols has no effect here: did you mean ipam.spidernet.io/ippools?")
			text, err := att.Whole().AnnotationText()
			if err != nil {
				t.Fatal(err)
			}
			a.annotate(t, map[string]string{record.Annotation: text, "ipam.spidernet.io/ippols": "x"})
			a.object(t, "Namespace", "ai")["metadata"].(map[string]any)["annotations"] = map[string]any{"ipam.spidernet.io/default-ipv4-ippools": "x"}
		}, []string{"ai/web-a"}},
		"explain.failed.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			a.failed(t, "2026-03-04T05:06:00Z")
		}, []string{"ai/web-a"}},
		"explain.failed-again.yaml": {func(t *testing.T, a *apiServer) {
			t.Helper()
			both(t, a)
			a.failed(t, "2026-03-05T00:00:00Z")
		}, []string{"ai/web-a", "-o", "yaml"}},
		"explain.failed-before.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			both(t, a)
			a.failed(t, "2026-03-04T05:06:00Z")
		}, []string{"ai/web-a"}},
		"explain.failed-runs.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			a.object(t, "Pod", "web-a")["status"] = map[string]any{"phase": "Running"}
			a.failed(t, "2026-03-05T00:00:00Z")
		}, []string{"ai/web-a"}},
		"explain.garbled.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			a.annotate(t, map[string]string{npwg.AnnotationStatus: "{", record.Annotation: `{"took":7}`})
			a.answers[resources["Event"]] = http.StatusForbidden
		}, []string{"ai/web-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, kubeconfig := newAPIServer(t, "addresses.yaml")
			tt.change(t, a)
			compareRun(t, name, kubeconfig, append([]string{"explain", "pod"}, tt.args...))
		})
	}
}

// TestExplainData: what is printed as data has the report as the annotation has it.
func TestExplainData(t *testing.T) {
	t.Parallel()
	a, kubeconfig := newAPIServer(t, "addresses.yaml")
	a.annotate(t, map[string]string{record.Annotation: reported(t)})
	stdout, _, _ := railhead(t, "explain", "pod", "ai/web-a", "-o", "json", "--kubeconfig", kubeconfig)
	var said struct {
		Attachment json.RawMessage `json:"attachment"`
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		t.Fatal(err)
	}
	got, err := record.ParseAnnotation(string(said.Attachment))
	if err != nil || len(got.Interfaces) != 3 || got.Took != trainer(t).Report.Took {
		t.Errorf("%v %+v", err, got)
	}
}
