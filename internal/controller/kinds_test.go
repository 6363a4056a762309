package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"railhead/internal/kubetest"
)

func readiness(h *health) (int, string) {
	response := httptest.NewRecorder()
	h.handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return response.Code, response.Body.String()
}

// TestAwaitKinds wants one line for each change of what is missing, a reminder
// every half minute, the same in readyz, and an end once all is there.
func TestAwaitKinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log, h, start := slog.New(slog.NewTextHandler(&text, nil)), newHealth("x"), time.Now()
		look := func(context.Context) ([]string, error) {
			switch since := time.Since(start); {
			case since < 10*time.Second:
				return nil, errors.New("connection refused")
			case since < 75*time.Second:
				return []string{"a.example.com", "b.example.com"}, nil
			case since < 80*time.Second:
				return []string{"b.example.com"}, nil
			}
			return nil, nil
		}
		done := make(chan error)
		go func() { done <- awaitKinds(t.Context(), look, h, log) }()
		<-time.After(20 * time.Second)
		synctest.Wait()
		if code, body := readiness(h); code != http.StatusServiceUnavailable || !strings.Contains(body, "a.example.com, b.example.com") {
			t.Errorf("readyz answers %d %q", code, body)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		var got []int
		for _, part := range []string{"connection refused", "a.example.com, b.example.com", "definitions b.example.com"} {
			got = append(got, strings.Count(text.String(), part))
		}
		if diff := cmp.Diff([]int{1, 3, 1}, got); diff != "" {
			t.Errorf("lines (-want +got):\n%s\n%s", diff, text.String())
		}
	})
}

// TestAwaitKindsSameFault wants one line of a fault that comes back, though each
// connection has another port and another path is asked for first, and a reminder.
func TestAwaitKindsSameFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		port, start := 40000, time.Now()
		look := func(context.Context) ([]string, error) {
			if time.Since(start) > 40*time.Second {
				return nil, nil
			}
			port++
			return nil, &url.Error{Op: "Get", URL: fmt.Sprintf("https://10.0.0.2:443/apis/%d", port), Err: &net.OpError{
				Op: "read", Net: "tcp", Err: syscall.ECONNRESET,
				Source: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(port))),
				Addr:   net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.2:443")),
			}}
		}
		if err := awaitKinds(t.Context(), look, newHealth("x"), slog.New(slog.NewTextHandler(&text, nil))); err != nil {
			t.Error(err)
		}
		if got := strings.Count(text.String(), "read tcp 10.0.0.2:443: connection reset by peer"); got != 2 {
			t.Errorf("%d lines, want 2:\n%s", got, text.String())
		}
	})
}

func TestWithoutPorts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"read tcp [fd00::1]:41234->[fd00::2]:443: i/o timeout":                   "read tcp [fd00::2]:443: i/o timeout",
		"lookup x on 10.0.0.3:53: read udp 10.0.0.1:4->10.0.0.3:53: i/o timeout": "lookup x on 10.0.0.3:53: read udp 10.0.0.3:53: i/o timeout",
		"dial tcp 10.0.0.2:443: connect: connection refused":                     "dial tcp 10.0.0.2:443: connect: connection refused",
		"a->b": "a->b",
		"":     "",
	} {
		if got := withoutPorts(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestAwaitKindsEnds wants the wait to end with its context.
func TestAwaitKindsEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		look := func(context.Context) ([]string, error) { return []string{"a"}, nil }
		if err := awaitKinds(ctx, look, newHealth("x"), slog.New(slog.DiscardHandler)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// apiServer is one that serves some resources of one version of a group, and
// answers with a status what is asked of others.
func apiServer(status int, version string, resources ...string) *rest.Config {
	s := kubetest.New()
	served := []metav1.APIResource{}
	for _, name := range resources {
		served = append(served, metav1.APIResource{Name: name})
	}
	s.Served["/apis/"+version] = served
	s.Hook = func(_ string, r *http.Request) int {
		if s.Served[r.URL.Path] == nil {
			return status
		}
		return 0
	}
	return s.Config()
}

// TestLookFor wants exactly what is missing named, and an API server that fails
// told from one that lacks something.
func TestLookFor(t *testing.T) {
	t.Parallel()
	look, err := lookFor(apiServer(http.StatusNotFound, "spiderpool.spidernet.io/v2beta1",
		"spidercoordinators", "spiderendpoints", "spiderippools", "spiderippools/status", "spidermultusconfigs", "spiderreservedips"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"addressleases.railhead.io", "network-attachment-definitions.k8s.cni.cncf.io", "poolledgers.railhead.io", "spidersubnets.spiderpool.spidernet.io"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if look, err = lookFor(apiServer(http.StatusForbidden, "spiderpool.spidernet.io/v2beta1")); err != nil {
		t.Fatal(err)
	}
	if got, err := look(t.Context()); err == nil {
		t.Errorf("no error, but %q is missing", got)
	}
}
