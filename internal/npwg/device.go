package npwg

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Devices are the IDs of the devices of each network of a pod, "" where a
// network has none: its k-th network of a resource takes the k-th of the IDs that
// the kubelet allocated for it, in the order of their text. The default network
// counts with the others. selected and chains are of the same networks;
// allocated has the IDs of all containers by resource.
//
// A device that the pod names itself must be allocated to it: else a pod could
// take any other's.
func Devices(selected []Selected, chains []Chain, allocated map[string][]string) ([]string, error) {
	free := map[string][]string{}
	for resource, ids := range allocated {
		free[resource] = slices.Compact(slices.Sorted(slices.Values(ids)))
	}
	devices := make([]string, len(selected))
	for i, c := range chains {
		if ids := free[c.Resource]; len(ids) > 0 {
			devices[i], free[c.Resource] = ids[0], ids[1:]
		}
	}
	for i, s := range selected {
		switch {
		case devices[i] != "":
		case s.DeviceID != "":
			if !take(free, s.DeviceID) {
				return nil, fmt.Errorf("%s.deviceID: %q is no device that is allocated to this pod and free: want one that a container's resources got, or none", s.At, s.DeviceID)
			}
			devices[i] = s.DeviceID
		case chains[i].lacksDevice():
			return nil, fmt.Errorf("%s: network %s takes a device of resource %q, of which the pod has %d, all taken by networks before: want one more of it in the resources of a container",
				s.At, s, chains[i].Resource, len(allocated[chains[i].Resource]))
		}
	}
	return devices, nil
}

// take removes a free device.
func take(free map[string][]string, id string) bool {
	for _, resource := range slices.Sorted(maps.Keys(free)) {
		if i := slices.Index(free[resource], id); i >= 0 {
			free[resource] = slices.Delete(free[resource], i, i+1)
			return true
		}
	}
	return false
}

// lacksDevice says that a plugin can do nothing without a device, and names none.
func (c Chain) lacksDevice() bool {
	return slices.ContainsFunc(c.Plugins, func(p Plugin) bool {
		var own struct {
			DeviceID string `json:"deviceID"`
		}
		return needsDevice[p.Type] && (json.Unmarshal(p.Config, &own) != nil || own.DeviceID == "")
	})
}

// DeviceInfoVersion is the version of the device information specification.
const DeviceInfoVersion = "1.1.0"

// DeviceInfoFolder is where device information stands on a node. Names of
// PluginDeviceFile and NetworkDeviceFile are below it.
const DeviceInfoFolder = "/var/run/k8s.cni.cncf.io/devinfo"

// PluginDeviceFile is the file in which a device plugin describes a device.
func PluginDeviceFile(resource, id string) string {
	flat := strings.NewReplacer("/", "-")
	return "dp/" + flat.Replace(resource) + "-" + flat.Replace(id) + "-device.json"
}

// NetworkDeviceFile is the file of the device that one attachment has.
func NetworkDeviceFile(containerID, netdev string) string {
	return "cni/" + containerID + "_" + netdev + "-device.json"
}

// Types of devices.
const (
	DevicePCI       = "pci"
	DeviceVDPA      = "vdpa"
	DeviceVhostUser = "vhost-user"
	DeviceMemif     = "memif"
)

// DeviceInfo describes the device of an attachment. The part that its Type names is there.
type DeviceInfo struct {
	Type      string       `json:"type,omitempty"`
	Version   string       `json:"version,omitempty"`
	PCI       *PCIDevice   `json:"pci,omitempty"`
	VDPA      *VDPADevice  `json:"vdpa,omitempty"`
	VhostUser *VhostDevice `json:"vhost-user,omitempty"`
	Memif     *MemifDevice `json:"memif,omitempty"`
}

// PCIDevice is a PCI function. Names are those of the node, addresses as 0000:3b:00.2.
type PCIDevice struct {
	Address     string `json:"pci-address,omitempty"`
	VhostNet    string `json:"vhost-net,omitempty"`
	RDMADevice  string `json:"rdma-device,omitempty"`
	PFAddress   string `json:"pf-pci-address,omitempty"`
	Representor string `json:"representor-device,omitempty"`
}

// VDPADevice is a virtio data path in hardware.
type VDPADevice struct {
	Parent      string `json:"parent-device,omitempty"`
	Driver      string `json:"driver,omitempty"`
	Path        string `json:"path,omitempty"`
	Address     string `json:"pci-address,omitempty"`
	PFAddress   string `json:"pf-pci-address,omitempty"`
	Representor string `json:"representor-device,omitempty"`
}

// VhostDevice is a socket of vhost-user.
type VhostDevice struct {
	Mode string `json:"mode,omitempty"`
	Path string `json:"path,omitempty"`
}

// MemifDevice is a socket of a shared memory interface.
type MemifDevice struct {
	Role string `json:"role,omitempty"`
	Path string `json:"path,omitempty"`
	Mode string `json:"mode,omitempty"`
}

// ParseDeviceInfo reads a file of device information. Keys and versions that
// are not known are no error.
func ParseDeviceInfo(text []byte) (DeviceInfo, error) {
	var d DeviceInfo
	if err := json.Unmarshal(text, &d); err != nil {
		return DeviceInfo{}, fmt.Errorf("device information is no JSON object of version %s: %w", DeviceInfoVersion, err)
	}
	known := []string{DevicePCI, DeviceVDPA, DeviceVhostUser, DeviceMemif}
	if !slices.Contains(known, d.Type) {
		return DeviceInfo{}, fmt.Errorf("device information: type %q: want one of %q", d.Type, known)
	}
	return d, nil
}
