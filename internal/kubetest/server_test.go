package kubetest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

const podsPath = "/api/v1/pods"

func podOf(name string) Object {
	return Object{"metadata": Object{"name": name, "namespace": "ai"}, "spec": Object{"nodeName": "n1"}}
}

// ask asks over HTTP and returns the answer, whose JSON values come one after the other.
func ask(t *testing.T, url string) *json.Decoder {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return json.NewDecoder(response.Body)
}

func next(t *testing.T, from *json.Decoder) Object {
	t.Helper()
	var o Object
	if err := from.Decode(&o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestHTTP lists in pages, and watches from the version of the list on: what
// changed before the watch began is told, and what it does not select is not.
func TestHTTP(t *testing.T) {
	t.Parallel()
	s := New()
	s.Page = 1
	s.Set(podsPath, podOf("a"))
	s.Set(podsPath, podOf("b"))
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(s.Cut) // before the server waits for the watch
	page := next(t, ask(t, server.URL+podsPath))
	if items := page["items"].([]any); page["kind"] != "PodList" || len(items) != 1 || Meta(page)["continue"] != "1" {
		t.Errorf("first page %v", page)
	}
	s.Set(podsPath, podOf("c"))
	other := podOf("other")
	other["spec"] = Object{"nodeName": "n2"}
	s.Set(podsPath, other)
	told := ask(t, server.URL+podsPath+"?watch=1&timeoutSeconds=600&fieldSelector=spec.nodeName%3Dn1&resourceVersion="+Meta(page)["resourceVersion"].(string))
	s.Delete("/api/v1/namespaces/ai/pods/a")
	for _, want := range []string{"ADDED c", "DELETED a"} {
		event := next(t, told)
		if got := event["type"].(string) + " " + Meta(event["object"].(Object))["name"].(string); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	s.Fail(http.StatusGone)
	if event := next(t, told); event["type"] != "ERROR" || event["object"].(Object)["reason"] != "Expired" {
		t.Errorf("told %v, want that it forgot", event)
	}
}

// TestForgotten wants a watch that begins before what is remembered to be refused.
func TestForgotten(t *testing.T) {
	t.Parallel()
	s := New()
	for range 2*remembered + 1 {
		s.Set(podsPath, podOf("a"))
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	if status := next(t, ask(t, server.URL+podsPath+"?watch=1&timeoutSeconds=600&resourceVersion=101")); status["code"] != 410.0 {
		t.Errorf("answer %v, want 410", status)
	}
}
