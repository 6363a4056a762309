package npwg

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/golden"
)

// TestDevices: the k-th network of a resource takes its k-th device.
func TestDevices(t *testing.T) {
	t.Parallel()
	vf := func(resource, kind string) Chain {
		return Chain{Resource: resource, Plugins: []Plugin{{Type: kind, Config: json.RawMessage(`{"type":"` + kind + `"}`)}}}
	}
	named := func(id string) Selected { return Selected{Namespace: "ai", Name: "x", At: "at", DeviceID: id} }
	allocated := map[string][]string{"e/a": {"0000:3b:00.3", "0000:3b:00.2", "0000:3b:00.4"}, "e/b": {"dev7", "dev7"}}
	tests := []struct {
		name     string
		selected []Selected
		chains   []Chain
		want     []string
		err      []string
	}{
		{
			name:     "in order",
			selected: make([]Selected, 5),
			chains:   []Chain{vf("", "calico"), vf("e/a", "sriov"), vf("e/b", "sriov"), vf("e/a", "sriov"), vf("", "macvlan")},
			want:     []string{"", "0000:3b:00.2", "dev7", "0000:3b:00.3", ""},
		},
		{
			name:     "default network counts with the others",
			selected: []Selected{{Default: true, Name: "d"}, {Name: "x"}},
			chains:   []Chain{vf("e/a", "sriov"), vf("e/a", "sriov")},
			want:     []string{"0000:3b:00.2", "0000:3b:00.3"},
		},
		{
			name: "none left", selected: []Selected{{}, {Namespace: "ai", Name: "x", At: "at"}}, chains: []Chain{vf("e/b", "sriov"), vf("e/b", "sriov")},
			err: []string{`at: network ai/x takes a device of resource "e/b", of which the pod has 2`, "one more of it"},
		},
		{name: "none left, and none needed", selected: make([]Selected, 2), chains: []Chain{vf("e/b", "macvlan"), vf("e/b", "macvlan")}, want: []string{"dev7", ""}},
		{name: "not allocated", selected: []Selected{named("")}, chains: []Chain{vf("e/c", "ib-sriov")}, err: []string{`resource "e/c", of which the pod has 0`}},
		{name: "network has its own", selected: make([]Selected, 1), chains: []Chain{{Plugins: []Plugin{{Type: "sriov", Config: json.RawMessage(`{"deviceID":"x"}`)}}}}, want: []string{""}},
		{name: "named by the pod", selected: []Selected{named("0000:3b:00.4")}, chains: []Chain{vf("", "sriov")}, want: []string{"0000:3b:00.4"}},
		{name: "named by the pod, with a resource", selected: []Selected{named("0000:3b:00.4")}, chains: []Chain{vf("e/a", "sriov")}, want: []string{"0000:3b:00.2"}},
		{name: "another's", selected: []Selected{named("0000:5e:00.2")}, chains: []Chain{vf("", "sriov")}, err: []string{`at.deviceID: "0000:5e:00.2" is no device that is allocated to this pod`}},
		{name: "named twice", selected: []Selected{named("dev7"), named("dev7")}, chains: []Chain{vf("", "sriov"), vf("", "sriov")}, err: []string{`"dev7"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Devices(tt.selected, tt.chains, allocated)
			checkError(t, err, tt.err...)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"0000:3b:00.3", "0000:3b:00.2", "0000:3b:00.4"}, allocated["e/a"]); diff != "" {
		t.Errorf("what the kubelet allocated was changed: %s", diff)
	}
}

func TestDeviceInfo(t *testing.T) {
	t.Parallel()
	if got, want := PluginDeviceFile("example.com/vf", "0000:3b:00.2"), "dp/example.com-vf-0000:3b:00.2-device.json"; got != want {
		t.Errorf("file of the device plugin %q, want %q", got, want)
	}
	if got, want := NetworkDeviceFile("c0ffee", "net1"), "cni/c0ffee_net1-device.json"; got != want {
		t.Errorf("file of the attachment %q, want %q", got, want)
	}
	made := DeviceInfo{Type: DevicePCI, Version: DeviceInfoVersion, PCI: &PCIDevice{Address: "0000:3b:00.2", PFAddress: "0000:3b:00.0", RDMADevice: "mlx5_4"}}
	text, err := json.MarshalIndent(made, "", "  ")
	checkError(t, err)
	golden.Equal(t, "testdata/device-info.golden", append(text, '\n'))
	got, err := ParseDeviceInfo(text)
	checkError(t, err)
	if diff := cmp.Diff(made, got); diff != "" {
		t.Errorf("read again: %s", diff)
	}
	got, err = ParseDeviceInfo([]byte(`{"type":"vdpa","version":"1.2.0","vdpa":{"driver":"vhost","pci-address":"0000:3b:00.2"},"new":1}`))
	checkError(t, err)
	if diff := cmp.Diff(DeviceInfo{Type: DeviceVDPA, Version: "1.2.0", VDPA: &VDPADevice{Driver: "vhost", Address: "0000:3b:00.2"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = ParseDeviceInfo([]byte(`{"type":"usb"}`))
	checkError(t, err, `type "usb": want one of`)
	_, err = ParseDeviceInfo([]byte(`[]`))
	checkError(t, err, "is no JSON object")
}
