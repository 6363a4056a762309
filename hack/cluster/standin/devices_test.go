package standin

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"railhead/hack/cluster/standin/deviceplugin"
	"railhead/internal/kernel/kerneltest"
)

const vf = "example.com/vf"

// onePlugin has one device.
type onePlugin struct {
	pluginapi.UnimplementedDevicePluginServer
}

func (onePlugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (onePlugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: []*pluginapi.Device{{ID: "vf0", Health: pluginapi.Healthy}}}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

func (onePlugin) Allocate(_ context.Context, r *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	return &pluginapi.AllocateResponse{ContainerResponses: make([]*pluginapi.ContainerAllocateResponse, len(r.GetContainerRequests()))}, nil
}

// register starts the plugin on a node.
func (s *scene) register(node string) {
	s.t.Helper()
	dir := filepath.Join(s.dir, node, deviceplugin.PluginDir)
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "unix", filepath.Join(dir, "vf.sock"))
	if err != nil {
		s.t.Fatal(err)
	}
	server := grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(server, onePlugin{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	s.t.Cleanup(func() { server.Stop(); serving.Wait() })
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	request := &pluginapi.RegisterRequest{Version: pluginapi.Version, Endpoint: "vf.sock", ResourceName: vf}
	if _, err := pluginapi.NewRegistrationClient(conn).Register(s.t.Context(), request); err != nil {
		s.t.Fatal(err)
	}
}

// A node tells what its plugins offer, and a pod gets it unless another has it.
func TestDevices(t *testing.T) {
	kerneltest.NetNS(t, func() {
		s := newScene(t, somePod("ns", "first", "standin1"))
		nodes, err := s.client.CoreV1().Nodes().Watch(t.Context(), meta.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.awaitPhase("first", core.PodRunning) // so the node is there
		s.register("standin1")
		for e := range nodes.ResultChan() {
			if n, ok := e.Object.(*core.Node); ok && n.Name == "standin1" && n.Status.Allocatable[vf] == resource.MustParse("1") && n.Status.Capacity[vf] == resource.MustParse("1") {
				break
			}
		}
		wanting := func(name string) *core.Pod {
			p := somePod("ns", name, "standin1")
			p.Spec.Containers[0].Resources.Limits = core.ResourceList{vf: resource.MustParse("1")}
			s.create(p)
			return p
		}
		owner := wanting("owner")
		s.awaitPhase("owner", core.PodRunning)
		wanting("late")
		if late := s.awaitPhase("late", core.PodFailed); late.Status.Reason != "UnexpectedAdmissionError" || !strings.Contains(late.Status.Message, "1 requested, 0 available") {
			t.Errorf("status %+v", late.Status)
		}
		if calls := s.calls("late"); len(calls) > 0 {
			t.Errorf("a rejected pod was connected: %+v", calls)
		}
		s.delete(owner, 0)
		s.awaitGone("owner")
		wanting("next")
		s.awaitPhase("next", core.PodRunning)
		s.endsClean()
	})
}
