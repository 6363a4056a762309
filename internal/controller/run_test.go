package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"railhead/internal/loopback"
)

// TestRunWithoutDefinitions wants a controller without its custom resource
// definitions to live and to say what it waits for, and to end when it is told.
func TestRunWithoutDefinitions(t *testing.T) {
	t.Parallel()
	o := good()
	o.Config = apiServer(http.StatusNotFound, "k8s.cni.cncf.io/v1", "network-attachment-definitions")
	o.HealthListen, o.MetricsListen = loopback.Address(t), loopback.Address(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	alive := answer(t, done, "http://"+o.HealthListen+"/healthz", http.StatusOK)
	if alive != "ok\n" {
		t.Errorf("healthz answers %q", alive)
	}
	for began := time.Now(); ; <-time.After(pause) {
		ready := answer(t, done, "http://"+o.HealthListen+"/readyz", http.StatusServiceUnavailable)
		if strings.Contains(ready, "spiderippools.spiderpool.spidernet.io") {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("readyz still answers %q", ready)
		}
	}
	metrics := answer(t, done, "http://"+o.MetricsListen+"/metrics", http.StatusOK)
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

// TestUnlessTold wants no error of an end that was asked for, and one of anything
// else, also where something was canceled though nobody had told the controller to end.
func TestUnlessTold(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	failed := errors.New("failed")
	for _, tt := range []struct {
		name string
		ctx  context.Context //nolint:containedctx // what the table is about
		err  error
		want error
	}{
		{"told", canceled, context.Canceled, nil},
		{"told, wrapped", canceled, fmt.Errorf("watch: %w", context.Canceled), nil},
		{"told by a deadline", late, context.DeadlineExceeded, nil},
		{"told, and failed", canceled, failed, failed},
		{"not told", t.Context(), fmt.Errorf("watch: %w", context.Canceled), context.Canceled},
		{"failed", t.Context(), failed, failed},
		{"no error", t.Context(), nil, nil},
	} {
		if got := unlessTold(tt.ctx, tt.err); !errors.Is(got, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, got, tt.want)
		}
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
	o.Config = apiServer(http.StatusNotFound, "none/v1")
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
	done := make(chan error, 1)
	go func() {
		done <- serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			for accepts(r.Context(), listener.Addr().String()) {
				<-time.After(pause)
			}
			_, _ = w.Write([]byte("whole"))
		}))
	}()
	if got := answer(t, done, "http://"+listener.Addr().String(), http.StatusOK); got != "whole" {
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

// What is asked again is asked after a pause, and not for ever.
const (
	pause    = time.Millisecond
	patience = time.Minute
)

// answer asks until somebody listens, or until whoever should has ended.
func answer(t *testing.T, ended <-chan error, url string, status int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			return read(t, response, status)
		}
		select {
		case end := <-ended:
			t.Fatalf("nobody listens any more: %v", end)
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(pause):
		}
	}
}

func read(t *testing.T, response *http.Response, status int) string {
	t.Helper()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status {
		t.Fatalf("%s answers %d %q, want %d", response.Request.URL, response.StatusCode, text, status)
	}
	return string(text)
}
