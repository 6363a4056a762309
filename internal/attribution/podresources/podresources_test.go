package podresources

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func devices(ids ...string) *api.ContainerResources {
	return &api.ContainerResources{Devices: []*api.ContainerDevices{{ResourceName: "rdma/vf", DeviceIds: ids}}}
}

func pod(name string, containers ...*api.ContainerResources) *api.PodResources {
	return &api.PodResources{Namespace: "ai", Name: name, Containers: containers}
}

func answer(pods ...*api.PodResources) *api.ListPodResourcesResponse {
	return &api.ListPodResourcesResponse{PodResources: pods}
}

// kubelet answers as a kubelet does.
type kubelet struct {
	api.UnimplementedPodResourcesListerServer
	answer *api.ListPodResourcesResponse
}

func (k *kubelet) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	return k.answer, nil
}

// serve serves a kubelet until it is stopped.
func serve(t *testing.T, socket string, k *kubelet) (stop func()) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterPodResourcesListerServer(server, k)
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	return func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func wantHolder(t *testing.T, c *Client, address, want string) {
	t.Helper()
	namespace, name, ok := c.Holder(address)
	if ok != (want != "") || ok && namespace+"/"+name != want {
		t.Errorf("%s is given to %s/%s, %t, want %q", address, namespace, name, ok, want)
	}
}

// TestSocket asks over a socket, also after the kubelet was started again.
func TestSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	c := New(socket, slog.New(slog.DiscardHandler))
	for _, name := range []string{"first", "second"} {
		stop := serve(t, socket, &kubelet{answer: answer(pod(name, devices("0000:17:00.1")))})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		for { // Run asks at once
			if _, got, _ := c.Holder("0000:17:00.1"); got == name {
				break
			}
			select {
			case err := <-done:
				t.Fatalf("run: %v", err)
			default:
				runtime.Gosched()
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v, want %v", err, context.Canceled)
		}
		stop()
	}
	wantHolder(t, c, "0000:17:00.1", "ai/second") // still, while the kubelet is away
}

// asked answers in turn, with nil for a kubelet that is away.
type asked struct {
	api.PodResourcesListerClient
	answers []*api.ListPodResourcesResponse
}

func (a *asked) List(context.Context, *api.ListPodResourcesRequest, ...grpc.CallOption) (*api.ListPodResourcesResponse, error) {
	next := a.answers[0]
	if len(a.answers) > 1 {
		a.answers = a.answers[1:]
	}
	if next == nil {
		return nil, status.Error(codes.Unavailable, "away")
	}
	return next, nil
}

func TestRun(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := New(socket, slog.New(slog.NewTextHandler(&log, nil)))
		a := &asked{answers: []*api.ListPodResourcesResponse{
			answer(pod("a", devices("0000:17:00.1"))), nil, nil, answer(pod("b", devices("0000:17:00.1"))), answer(),
		}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.run(ctx, a) }()
		for _, want := range []string{"ai/a", "ai/a", "ai/a", "ai/b", "", ""} {
			synctest.Wait()
			wantHolder(t, c, "0000:17:00.1", want)
			time.Sleep(interval)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v, want %v", err, context.Canceled)
		}
		if got := log.String(); strings.Count(got, "does not tell") != 1 || strings.Count(got, "tells again") != 1 {
			t.Errorf("logged, want one line each time it changes:\n%s", got)
		}
	})
}

// TestNoSocket is a node without kubelet: nothing is known, and nothing said.
func TestNoSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := New(socket, slog.New(slog.NewTextHandler(&log, nil)))
		a := &asked{answers: []*api.ListPodResourcesResponse{nil}}
		if err := c.poll(t.Context(), a); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v, want %v", err, fs.ErrNotExist)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*interval)
		defer cancel()
		if err := c.run(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("run: %v, want %v", err, context.DeadlineExceeded)
		}
		wantHolder(t, c, "0000:17:00.1", "")
		if log.Len() != 0 {
			t.Errorf("logged, want nothing: %s", log.String())
		}
	})
}
