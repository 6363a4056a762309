package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admission "k8s.io/api/admission/v1"
)

// listening starts the server and returns the address of each kind that it printed.
func listening(t *testing.T, s serving) map[string]string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.run(ctx, w) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	addresses := map[string]string{}
	line := make([]byte, 256)
	for range 3 {
		n, err := r.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		kind, address, _ := strings.Cut(strings.TrimSpace(string(line[:n])), " ")
		addresses[kind] = address
	}
	return addresses
}

func TestServe(t *testing.T) {
	t.Parallel()
	at := listening(t, serving{http: "127.0.0.1:0", tcp: "127.0.0.1:0", udp: "127.0.0.1:0"})
	for _, network := range []string{"tcp", "udp"} {
		var out bytes.Buffer
		if err := echo(t.Context(), &out, network, at[network], "some text"); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(out.String(), "echo from "+at[network]+" to 127.0.0.1:") {
			t.Errorf("%s: printed %q", network, out.String())
		}
	}
	var out bytes.Buffer
	g := getting{url: "http://" + at["http"] + "/path", timeout: time.Minute, limit: 4096}
	if err := g.run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "200 OK ") || !strings.Contains(out.String(), name+" answers GET /path of 127.0.0.1:") {
		t.Errorf("printed %q", out.String())
	}
}

func TestEchoFails(t *testing.T) {
	t.Parallel()
	liar := httptest.NewServer(http.NotFoundHandler()) // answers, but with something else
	defer liar.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"other answer": echo(t.Context(), io.Discard, "tcp", liar.Listener.Addr().String(), "GET / HTTP/1.0\r\n\r\n"),
		"no answer":    echo(ended, io.Discard, "udp", liar.Listener.Addr().String(), "text"),
		"no text":      echo(t.Context(), io.Discard, "udp", liar.Listener.Addr().String(), ""),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A path alone is asked of the API server, with the pod's token and authority.
func TestGetAsServiceAccount(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string][]byte{"ca.crt": authority, "token": []byte("secret\n"), "other": []byte("guess")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	environment := map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
	g := getting{url: "/api", timeout: time.Minute}
	if err := g.asServiceAccount(dir, func(name string) string { return environment[name] }); err != nil {
		t.Fatal(err)
	}
	if err := g.run(t.Context(), io.Discard); err != nil {
		t.Error(err)
	}
	g.token = filepath.Join(dir, "other")
	if err := g.run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with another token: %v", err)
	}
	g.ca = ""
	if err := g.run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the authority: %v", err)
	}
	if err := g.asServiceAccount(dir, func(string) string { return "" }); err == nil {
		t.Error("outside of a pod: no error")
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
