package devicemanagertest

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/testing/protocmp"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// served is a plugin that listens at a node's directory.
type served struct {
	pluginapi.UnimplementedDevicePluginServer
	server *grpc.Server
	lists  chan []*pluginapi.Device
}

// serve starts a plugin with an endpoint of its own.
func serve(t *testing.T, root, endpoint string) *served {
	t.Helper()
	p := &served{server: grpc.NewServer(), lists: make(chan []*pluginapi.Device, 1)}
	pluginapi.RegisterDevicePluginServer(p.server, p)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(root, PluginDir, endpoint))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = p.server.Serve(l) })
	t.Cleanup(func() { p.server.Stop(); serving.Wait() })
	return p
}

func (p *served) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (p *served) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case devices := <-p.lists:
			if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
		}
	}
}

func (p *served) Allocate(_ context.Context, r *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	return &pluginapi.AllocateResponse{ContainerResponses: make([]*pluginapi.ContainerAllocateResponse, len(r.GetContainerRequests()))}, nil
}

// connect is a connection to one of a node's sockets.
func connect(t *testing.T, root, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(root, socket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// started is a host below a short path: a socket's may have 107 bytes.
func started(t *testing.T) (h *Host, root string, register func(version, endpoint, resource string) error) {
	t.Helper()
	root = t.TempDir()
	h, err := Listen(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	client := pluginapi.NewRegistrationClient(connect(t, root, registerSocket))
	return h, root, func(version, endpoint, resource string) error {
		_, err := client.Register(t.Context(), &pluginapi.RegisterRequest{Version: version, Endpoint: endpoint, ResourceName: resource})
		return err
	}
}

// waitCounts waits until the host counts so many.
func waitCounts(t *testing.T, h *Host, want Count) {
	t.Helper()
	for h.Counts()[resourceName] != want {
		select {
		case <-h.Changed():
		case <-t.Context().Done():
			t.Fatalf("%+v, want %+v", h.Counts(), want)
		}
	}
}

// A plugin comes, breaks, goes and comes again, and another takes its place. Who has a device keeps it all the while.
func TestLifeOfAPlugin(t *testing.T) {
	t.Parallel()
	h, root, register := started(t)
	first := serve(t, root, "first.sock")
	if err := register(pluginapi.Version, "first.sock", resourceName); err != nil {
		t.Fatal(err)
	}
	first.lists <- healthy(2)
	waitCounts(t, h, Count{Capacity: 2, Allocatable: 2})
	if err := h.Admit(t.Context(), Pod{UID: "u", Containers: []Container{wants("a", 1)}}); err != nil {
		t.Fatal(err)
	}
	want := []Use{{"a", resourceName, []string{"d0"}}}
	if diff := cmp.Diff(want, h.Uses("u")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	first.server.Stop()
	waitCounts(t, h, Count{Capacity: 2})

	second := serve(t, root, "second.sock")
	if err := register(pluginapi.Version, "second.sock", resourceName); err != nil {
		t.Fatal(err)
	}
	second.lists <- healthy(3)
	waitCounts(t, h, Count{Capacity: 3, Allocatable: 3})

	third := serve(t, root, "third.sock")
	if err := register(pluginapi.Version, "third.sock", resourceName); err != nil {
		t.Fatal(err)
	}
	third.lists <- healthy(4)
	waitCounts(t, h, Count{Capacity: 4, Allocatable: 4})
	second.server.Stop() // is nobody's loss

	if err := h.Admit(t.Context(), Pod{UID: "v", Containers: []Container{wants("a", 3)}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Use{{"a", resourceName, []string{"d1", "d2", "d3"}}}, h.Uses("v")); diff != "" {
		t.Errorf("after the restart (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]Count{resourceName: {Capacity: 4, Allocatable: 4}}, h.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	_, root, register := started(t)
	serve(t, root, "good.sock")
	for _, tt := range []struct{ version, endpoint, resource, want string }{
		{"v1alpha1", "good.sock", resourceName, `"v1beta1"`},
		{pluginapi.Version, "good.sock", "vf", "domain/name"},
		{pluginapi.Version, "good.sock", "example.com/a b", "domain/name"},
		{pluginapi.Version, "gone.sock", resourceName, "gone.sock"},
	} {
		if err := register(tt.version, tt.endpoint, tt.resource); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v", tt, err)
		}
	}
}

func TestPodResources(t *testing.T) {
	t.Parallel()
	h, root, register := started(t)
	p := serve(t, root, "plugin.sock")
	if err := register(pluginapi.Version, "plugin.sock", resourceName); err != nil {
		t.Fatal(err)
	}
	devices := healthy(3)
	devices[1].Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: 1}}}
	devices[2].Health = pluginapi.Unhealthy
	p.lists <- devices
	waitCounts(t, h, Count{Capacity: 3, Allocatable: 2})
	if err := h.Admit(t.Context(), Pod{UID: "u", Namespace: "ns", Name: "pod", Containers: []Container{wants("a", 2), wants("b", 0)}}); err != nil {
		t.Fatal(err)
	}
	client := resourcesapi.NewPodResourcesListerClient(connect(t, root, resourcesSocket))
	entries := []*resourcesapi.ContainerDevices{
		{ResourceName: resourceName, DeviceIds: []string{"d0"}},
		{ResourceName: resourceName, DeviceIds: []string{"d1"}, Topology: &resourcesapi.TopologyInfo{Nodes: []*resourcesapi.NUMANode{{ID: 1}}}},
	}
	pod := &resourcesapi.PodResources{Name: "pod", Namespace: "ns", Containers: []*resourcesapi.ContainerResources{{Name: "a", Devices: entries}, {Name: "b"}}}

	list, err := client.List(t.Context(), &resourcesapi.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*resourcesapi.PodResources{pod}, list.PodResources, protocmp.Transform()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	one, err := client.Get(t.Context(), &resourcesapi.GetPodResourcesRequest{PodNamespace: "ns", PodName: "pod"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pod, one.PodResources, protocmp.Transform()); diff != "" {
		t.Errorf("get (-want +got):\n%s", diff)
	}
	if _, err := client.Get(t.Context(), &resourcesapi.GetPodResourcesRequest{PodNamespace: "ns", PodName: "other"}); err == nil {
		t.Error("a pod without devices was found")
	}
	all, err := client.GetAllocatableResources(t.Context(), &resourcesapi.AllocatableResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(entries, all.Devices, protocmp.Transform()); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
}
