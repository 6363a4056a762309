package controller

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestRunWithoutDefinitions wants a controller without its custom resource
// definitions to live and to say what it waits for, and to end when it is told.
func TestRunWithoutDefinitions(t *testing.T) {
	t.Parallel()
	o := good()
	o.Config = apiServer(t, http.StatusNotFound, "k8s.cni.cncf.io", "network-attachment-definitions")
	o.HealthListen, o.MetricsListen = freeAddress(t), freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Run(ctx, o) }()
	alive := answer(t, "http://"+o.HealthListen+"/healthz", http.StatusOK)
	if alive != "ok\n" {
		t.Errorf("healthz answers %q", alive)
	}
	for {
		ready := answer(t, "http://"+o.HealthListen+"/readyz", http.StatusServiceUnavailable)
		if strings.Contains(ready, "spiderippools.spiderpool.spidernet.io") {
			break
		}
	}
	metrics := answer(t, "http://"+o.MetricsListen+"/metrics", http.StatusOK)
	for _, name := range []string{`railhead_controller_pools{state="valid"} 0`, `railhead_controller_networks{state="invalid"} 0`, "railhead_controller_settings_valid 1"} {
		if !strings.Contains(metrics, name) {
			t.Errorf("metrics lack %s", name)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRunPortTaken wants an address that cannot be had to end all of it.
func TestRunPortTaken(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	o := good()
	o.Config = apiServer(t, http.StatusNotFound, "none")
	o.HealthListen = taken.Addr().String()
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), o.HealthListen) {
		t.Errorf("error %v", err)
	}
}

// TestServeDrains wants a request that is being answered to get its answer when
// the end comes.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		done <- serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			for accepts(r.Context(), listener.Addr().String()) {
			}
			_, _ = w.Write([]byte("whole"))
		}))
	}()
	if got := answer(t, "http://"+listener.Addr().String(), http.StatusOK); got != "whole" {
		t.Errorf("answer %q", got)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// accepts says whether somebody listens at an address.
func accepts(ctx context.Context, address string) bool {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// answer asks until somebody listens.
func answer(t *testing.T, url string, status int) string {
	t.Helper()
	for {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
			continue
		}
		var text strings.Builder
		if _, err := io.Copy(&text, response.Body); err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != status {
			t.Fatalf("%s answers %d %q, want %d", url, response.StatusCode, text.String(), status)
		}
		return text.String()
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
