package simulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// kubelet answers what devices pods were given.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer

	mu   sync.Mutex
	pods []*podresources.PodResources // replaced, never changed

	server *grpc.Server
	ended  chan error
}

// newKubelet listens at a path.
func newKubelet(socket string) (*kubelet, error) {
	listener, err := net.Listen("unix", socket) //nolint:noctx // it does not wait
	if err != nil {
		return nil, fmt.Errorf("pod-resources socket: %w", err)
	}
	k := &kubelet{server: grpc.NewServer(), ended: make(chan error, 1)}
	podresources.RegisterPodResourcesListerServer(k.server, k)
	go func() { k.ended <- k.server.Serve(listener) }()
	return k, nil
}

func (k *kubelet) close() error {
	k.server.Stop()
	if err := <-k.ended; !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

func (k *kubelet) set(pods []*podresources.PodResources) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = pods
}

func (k *kubelet) list() []*podresources.PodResources {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods
}

// List returns what all pods were given.
func (k *kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return &podresources.ListPodResourcesResponse{PodResources: k.list()}, nil
}

// Get returns what one pod was given.
func (k *kubelet) Get(_ context.Context, r *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
	for _, p := range k.list() {
		if p.Namespace == r.PodNamespace && p.Name == r.PodName {
			return &podresources.GetPodResourcesResponse{PodResources: p}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "pod %s in namespace %s not found", r.PodName, r.PodNamespace)
}

// resources is what the kubelet gave to a pod: of a VF its PCI address, of a
// shared device a number that says nothing.
func (r *run) resources() *podresources.PodResources {
	container := &podresources.ContainerResources{Name: containerName}
	for i, f := range r.functions {
		id := f.pci
		if r.pod.Use == modeShared || id == "" {
			id = fmt.Sprintf("%x", hash(uint64(i), r.uid, f.id))
		}
		name := strings.ReplaceAll(r.pod.Resource, "{rail}", fmt.Sprint(*f.card.spec.Rail))
		at := slices.IndexFunc(container.Devices, func(d *podresources.ContainerDevices) bool { return d.ResourceName == name })
		if at < 0 {
			at = len(container.Devices)
			container.Devices = append(container.Devices, &podresources.ContainerDevices{ResourceName: name})
		}
		container.Devices[at].DeviceIds = append(container.Devices[at].DeviceIds, id)
	}
	return &podresources.PodResources{
		Namespace: r.pod.Namespace, Name: r.name, Containers: []*podresources.ContainerResources{container},
	}
}
