package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admission "k8s.io/api/admission/v1"
)

func TestServe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(ctx, w, "127.0.0.1:0") }()
	var address string
	if _, err := fmt.Fscanf(r, "http %s\n", &address); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := get(t.Context(), &out, "http://"+address+"/path"); err != nil {
		t.Error(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "200 OK ") || !strings.Contains(out.String(), name+" answers GET /path of 127.0.0.1:") {
		t.Errorf("printed %q", out.String())
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("server: %v", err)
	}
}

func TestGetFails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if err := get(t.Context(), io.Discard, server.URL); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error %v, want the status", err)
	}
}

func TestReview(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, object, want string }{
		{"without annotations", `{"metadata":{"name":"a"}}`, `[{"op":"add","path":"/metadata/annotations","value":{"example.com/seen~":"yes"}}]`},
		{"with annotations", `{"metadata":{"annotations":{"a":"b"}}}`, `[{"op":"add","path":"/metadata/annotations/example.com~1seen~0","value":"yes"}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var in admission.AdmissionReview
			text := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":` + tt.object + `}}`
			if err := json.Unmarshal([]byte(text), &in); err != nil {
				t.Fatal(err)
			}
			out, err := stamp{"example.com/seen~", "yes"}.review(in)
			if err != nil {
				t.Fatal(err)
			}
			if out.Kind != in.Kind || out.APIVersion != in.APIVersion || out.Response.UID != "u" || !out.Response.Allowed {
				t.Errorf("answer %+v", out)
			}
			if diff := cmp.Diff(tt.want, string(out.Response.Patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := (stamp{}).review(admission.AdmissionReview{}); err == nil {
		t.Error("a review without a request was answered")
	}
}
