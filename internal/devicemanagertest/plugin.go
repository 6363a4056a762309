package devicemanagertest

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// patience is how long a plugin may take to answer.
const patience = 30 * time.Second

// plugin is a connection to one.
type plugin struct {
	resource string
	options  *pluginapi.DevicePluginOptions
	client   pluginapi.DevicePluginClient
	context  context.Context // of the connection
	close    func()
}

// dial connects to a plugin and asks what it wants to be asked.
func dial(ctx context.Context, socket, resource string) (*plugin, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", resource, socket, err)
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	p := &plugin{
		resource: resource,
		client:   pluginapi.NewDevicePluginClient(conn),
		context:  life,
		close: func() {
			end()
			_ = conn.Close()
		},
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.options, err = p.client.GetDevicePluginOptions(ctx, &pluginapi.Empty{}); err != nil {
		p.close()
		return nil, fmt.Errorf("%s at %s: options: %w", resource, socket, err)
	}
	return p, nil
}

// watch calls tell with each list of devices until the plugin ends, for whatever reason.
func (p *plugin) watch(tell func([]*pluginapi.Device)) {
	stream, err := p.client.ListAndWatch(p.context, &pluginapi.Empty{})
	if err != nil {
		return
	}
	for {
		list, err := stream.Recv()
		if err != nil {
			return
		}
		tell(list.GetDevices())
	}
}

// preferred is which devices the plugin would like a container to have; none if it has no opinion.
func (p *plugin) preferred(ctx context.Context, count int, must, free []string) ([]string, error) {
	if !p.options.GetGetPreferredAllocationAvailable() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := p.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: append(append([]string{}, must...), free...), MustIncludeDeviceIDs: must, AllocationSize: int32(count),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("preferred allocation: %w", err)
	}
	if n := len(answer.GetContainerResponses()); n != 1 {
		return nil, fmt.Errorf("preferred allocation: %d answers for one container", n)
	}
	return answer.GetContainerResponses()[0].GetDeviceIDs(), nil
}

// allocate tells the plugin that a container gets devices.
func (p *plugin) allocate(ctx context.Context, devices []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := p.client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: devices}},
	})
	if err != nil {
		return fmt.Errorf("allocate: %w", err)
	}
	if n := len(answer.GetContainerResponses()); n != 1 {
		return fmt.Errorf("allocate: %d answers for one container", n)
	}
	return nil
}

// prepare tells the plugin that a container is about to start, if it wants to know.
func (p *plugin) prepare(ctx context.Context, devices []string) error {
	if !p.options.GetPreStartRequired() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pluginapi.KubeletPreStartContainerRPCTimeoutInSecs*time.Second)
	defer cancel()
	if _, err := p.client.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{DevicesIds: devices}); err != nil {
		return fmt.Errorf("pre-start: %w", err)
	}
	return nil
}
