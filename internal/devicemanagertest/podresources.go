package devicemanagertest

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// lister answers which pod has which devices. Pods without any are not listed.
type lister struct {
	resourcesapi.UnimplementedPodResourcesListerServer
	devices *book
}

// List lists all pods with devices.
func (l *lister) List(context.Context, *resourcesapi.ListPodResourcesRequest) (*resourcesapi.ListPodResourcesResponse, error) {
	answer := &resourcesapi.ListPodResourcesResponse{}
	for _, r := range l.devices.records() {
		answer.PodResources = append(answer.PodResources, l.pod(r))
	}
	return answer, nil
}

// Get is one pod of List.
func (l *lister) Get(_ context.Context, request *resourcesapi.GetPodResourcesRequest) (*resourcesapi.GetPodResourcesResponse, error) {
	for _, r := range l.devices.records() {
		if r.pod.Namespace == request.GetPodNamespace() && r.pod.Name == request.GetPodName() {
			return &resourcesapi.GetPodResourcesResponse{PodResources: l.pod(r)}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "pod %s/%s has no devices", request.GetPodNamespace(), request.GetPodName())
}

// GetAllocatableResources lists all healthy devices.
func (l *lister) GetAllocatableResources(context.Context, *resourcesapi.AllocatableResourcesRequest) (*resourcesapi.AllocatableResourcesResponse, error) {
	answer := &resourcesapi.AllocatableResourcesResponse{}
	for _, use := range l.devices.healthy() {
		answer.Devices = append(answer.Devices, convert(use.Resource, l.devices.described(use.Resource, use.Devices))...)
	}
	return answer, nil
}

// pod converts what a pod has.
func (l *lister) pod(r record) *resourcesapi.PodResources {
	answer := &resourcesapi.PodResources{Namespace: r.pod.Namespace, Name: r.pod.Name}
	for _, c := range r.pod.Containers {
		container := &resourcesapi.ContainerResources{Name: c.Name}
		for _, use := range r.uses {
			if use.Container == c.Name {
				container.Devices = append(container.Devices, convert(use.Resource, l.devices.described(use.Resource, use.Devices))...)
			}
		}
		answer.Containers = append(answer.Containers, container)
	}
	return answer
}

// convert makes one entry a device: each may be at another NUMA node.
func convert(resource string, devices []*pluginapi.Device) []*resourcesapi.ContainerDevices {
	var all []*resourcesapi.ContainerDevices
	for _, d := range devices {
		entry := &resourcesapi.ContainerDevices{ResourceName: resource, DeviceIds: []string{d.GetID()}}
		if nodes := d.GetTopology().GetNodes(); len(nodes) > 0 {
			entry.Topology = &resourcesapi.TopologyInfo{}
			for _, n := range nodes {
				entry.Topology.Nodes = append(entry.Topology.Nodes, &resourcesapi.NUMANode{ID: n.GetID()})
			}
		}
		all = append(all, entry)
	}
	return all
}
