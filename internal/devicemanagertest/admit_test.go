package devicemanagertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const resourceName = "example.com/vf"

// scripted is a plugin that answers as it is told, without a wire.
type scripted struct {
	pluginapi.DevicePluginClient // what is not scripted is not called

	liked     []string
	fails     error // of Allocate
	asked     []*pluginapi.ContainerPreferredAllocationRequest
	allocated [][]string
	started   [][]string
}

func (s *scripted) GetPreferredAllocation(_ context.Context, r *pluginapi.PreferredAllocationRequest, _ ...grpc.CallOption) (*pluginapi.PreferredAllocationResponse, error) {
	s.asked = append(s.asked, r.ContainerRequests...)
	return &pluginapi.PreferredAllocationResponse{ContainerResponses: []*pluginapi.ContainerPreferredAllocationResponse{{DeviceIDs: s.liked}}}, nil
}

func (s *scripted) Allocate(_ context.Context, r *pluginapi.AllocateRequest, _ ...grpc.CallOption) (*pluginapi.AllocateResponse, error) {
	s.allocated = append(s.allocated, r.ContainerRequests[0].DevicesIds)
	return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{}}}, s.fails
}

func (s *scripted) PreStartContainer(_ context.Context, r *pluginapi.PreStartContainerRequest, _ ...grpc.CallOption) (*pluginapi.PreStartContainerResponse, error) {
	s.started = append(s.started, r.DevicesIds)
	return &pluginapi.PreStartContainerResponse{}, nil
}

// hosting is a host with one plugin that lists n healthy devices, d0 and on.
func hosting(s *scripted, n int) *Host {
	h := &Host{plugins: map[string]*plugin{resourceName: {
		resource: resourceName,
		client:   s,
		options:  &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true, PreStartRequired: true},
	}}}
	h.devices.list(resourceName, healthy(n))
	return h
}

// healthy are n healthy devices.
func healthy(n int) []*pluginapi.Device {
	var devices []*pluginapi.Device
	for i := range n {
		devices = append(devices, &pluginapi.Device{ID: fmt.Sprintf("d%d", i), Health: pluginapi.Healthy})
	}
	return devices
}

// wants is a container that wants devices.
func wants(name string, n int) Container {
	return Container{Name: name, Devices: map[string]int{resourceName: n}}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	initial := wants("init", 2)
	initial.Init = true
	tests := []struct {
		name       string
		liked      []string
		containers []Container
		want       []Use
		err        string
	}{
		{name: "first of the free ones", containers: []Container{wants("a", 2)}, want: []Use{{"a", resourceName, []string{"d0", "d1"}}}},
		{name: "what the plugin likes", liked: []string{"d3", "d2"}, containers: []Container{wants("a", 2)}, want: []Use{{"a", resourceName, []string{"d2", "d3"}}}},
		{name: "the plugin likes too few", liked: []string{"d3"}, containers: []Container{wants("a", 2)}, want: []Use{{"a", resourceName, []string{"d0", "d3"}}}},
		{name: "the plugin likes too many, twice, and what it has not", liked: []string{"x", "d3", "d3", "d2", "d1"}, containers: []Container{wants("a", 2)}, want: []Use{{"a", resourceName, []string{"d2", "d3"}}}},
		{name: "two containers", containers: []Container{wants("a", 1), wants("b", 2)}, want: []Use{{"a", resourceName, []string{"d0"}}, {"b", resourceName, []string{"d1", "d2"}}}},
		{
			name: "after an init container", containers: []Container{initial, wants("a", 1), wants("b", 2)},
			want: []Use{{"init", resourceName, []string{"d0", "d1"}}, {"a", resourceName, []string{"d0"}}, {"b", resourceName, []string{"d1", "d2"}}},
		},
		{name: "none wanted", containers: []Container{wants("a", 0), {Name: "b", Devices: map[string]int{"other.example/gpu": 3}}}},
		{name: "too many", containers: []Container{wants("a", 1), wants("b", 4)}, err: "container b: " + resourceName + ": 4 requested, 3 available"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := hosting(&scripted{liked: tt.liked}, 4)
			err := h.Admit(t.Context(), Pod{UID: "u", Containers: tt.containers})
			if got := fmt.Sprint(err); err != nil && got != tt.err || err == nil && tt.err != "" {
				t.Errorf("error %q, want %q", got, tt.err)
			}
			if diff := cmp.Diff(tt.want, h.Uses("u")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The plugin learns which devices a container must get, and is told of each allocation and start.
func TestPluginIsTold(t *testing.T) {
	t.Parallel()
	s := &scripted{}
	h := hosting(s, 3)
	first := wants("init", 1)
	first.Init = true
	if err := h.Admit(t.Context(), Pod{UID: "u", Containers: []Container{first, wants("a", 2)}}); err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, a := range s.asked {
		asked = append(asked, fmt.Sprint(a.GetAvailableDeviceIDs(), a.GetMustIncludeDeviceIDs(), a.GetAllocationSize()))
	}
	if diff := cmp.Diff([]string{"[d0 d1 d2] [] 1", "[d0 d1 d2] [d0] 2"}, asked); diff != "" {
		t.Errorf("asked for its opinion (-want +got):\n%s", diff)
	}
	want := [][]string{{"d0"}, {"d0", "d1"}}
	if diff := cmp.Diff(want, s.allocated); diff != "" {
		t.Errorf("allocated (-want +got):\n%s", diff)
	}
	if err := h.Prepare(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.started); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
}

func TestFailedAllocationGivesNothing(t *testing.T) {
	t.Parallel()
	s := &scripted{fails: errors.New("broken card")}
	h := hosting(s, 2)
	err := h.Admit(t.Context(), Pod{UID: "u", Containers: []Container{wants("a", 1)}})
	if !errors.Is(err, s.fails) {
		t.Errorf("error %v", err)
	}
	if uses := h.Uses("u"); len(uses) > 0 {
		t.Errorf("it has %v", uses)
	}
	s.fails = nil
	if err := h.Admit(t.Context(), Pod{UID: "v", Containers: []Container{wants("a", 2)}}); err != nil {
		t.Errorf("the next pod: %v", err)
	}
}

func TestPluginGone(t *testing.T) {
	t.Parallel()
	h := hosting(&scripted{}, 2)
	if err := h.Admit(t.Context(), Pod{UID: "u", Containers: []Container{wants("a", 1)}}); err != nil {
		t.Fatal(err)
	}
	h.devices.lose(resourceName)
	if diff := cmp.Diff(map[string]Count{resourceName: {Capacity: 2}}, h.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if err := h.Admit(t.Context(), Pod{UID: "v", Containers: []Container{wants("a", 1)}}); err == nil || !strings.Contains(err.Error(), "0 available") {
		t.Errorf("error %v", err)
	}
	delete(h.plugins, resourceName)
	if err := h.Prepare(t.Context(), "u"); err == nil {
		t.Error("a container starts although nobody could prepare its device")
	}
}

// FuzzAdmit does what its bytes say and wants that no two pods ever have the same device, that each container has as
// many as it asked for, and that what is refused changes nothing.
func FuzzAdmit(f *testing.F) {
	f.Add([]byte{0x00, 0x11, 0x22, 0x40, 0x81, 0x00, 0xc3, 0x12})
	f.Fuzz(func(t *testing.T, operations []byte) {
		s := &scripted{}
		h := hosting(s, 8)
		for i, op := range operations {
			uid := fmt.Sprint(int(op) >> 3 & 7)
			switch op >> 6 {
			case 0, 1: // a pod comes, unless it is there
				if len(h.Uses(uid)) > 0 {
					continue
				}
				s.liked = []string{fmt.Sprintf("d%d", i%10)}
				admitOrNothing(t, h, uid, int(op&3), op>>6 == 1)
			case 2: // a pod goes
				h.Release(uid)
			case 3: // some devices break, others vanish, others are well again
				devices := healthy(int(op&7) + 2)
				devices[0].Health = pluginapi.Unhealthy
				h.devices.list(resourceName, devices)
			}
			oneOwner(t, h)
		}
	})
}

// admitOrNothing brings a pod of two containers, the first perhaps an init container.
func admitOrNothing(t *testing.T, h *Host, uid string, n int, initial bool) {
	t.Helper()
	first, second := wants("a", n), wants("b", n+1)
	first.Init = initial
	before := h.devices.free(resourceName)
	err := h.Admit(t.Context(), Pod{UID: uid, Name: uid, Containers: []Container{first, second}})
	after, got := h.devices.free(resourceName), map[string]int{}
	for _, use := range h.Uses(uid) {
		got[use.Container] += len(use.Devices)
		for _, id := range use.Devices {
			if !slices.Contains(before, id) {
				t.Errorf("pod %s got %s of the free %v", uid, id, before)
			}
		}
	}
	if err != nil {
		if len(got) > 0 || !slices.Equal(before, after) {
			t.Errorf("refused (%v), but it has %v, and of %v free ones %v are left", err, got, before, after)
		}
		return
	}
	want := 2*n + 1
	if initial {
		want = n + 1 // the second container takes over those of the first
	}
	if got["a"] != n || got["b"] != n+1 || len(before)-len(after) != want {
		t.Errorf("a pod that wants %d and %d has %v, and took %d", n, n+1, got, len(before)-len(after))
	}
}

// oneOwner wants each device in the hands of one pod, and the others free.
func oneOwner(t *testing.T, h *Host) {
	t.Helper()
	owners := map[string]string{}
	for _, r := range h.devices.records() {
		for _, use := range r.uses {
			for _, id := range use.Devices {
				if other, taken := owners[id]; taken && other != r.pod.UID {
					t.Errorf("%s belongs to pod %s and to pod %s", id, other, r.pod.UID)
				}
				owners[id] = r.pod.UID
			}
		}
	}
	for _, id := range h.devices.free(resourceName) {
		if owners[id] != "" {
			t.Errorf("%s is free and belongs to pod %s", id, owners[id])
		}
	}
}
