package cases

import (
	"strings"
	"testing"
)

// RDMADevice is what `rdma -j dev` says of a device, as far as tests use it.
type RDMADevice struct {
	Index        int    `json:"ifindex"`
	Name         string `json:"ifname"`
	NodeType     string `json:"node_type"`
	NodeGUID     string `json:"node_guid"`
	SysImageGUID string `json:"sys_image_guid"`
}

// RDMALink is what `rdma -j link` says of a port, as far as tests use it.
type RDMALink struct {
	Index         int    `json:"ifindex"`
	Name          string `json:"ifname"`
	Port          int    `json:"port"`
	State         string `json:"state"`
	PhysicalState string `json:"physical_state"`
	Netdev        string `json:"netdev"`
	NetdevIndex   int    `json:"netdev_index"`
}

// RDMADevices are the RDMA devices of the host namespace, by name.
func RDMADevices(t *testing.T) map[string]RDMADevice {
	t.Helper()
	return devicesByName(askRDMA[[]RDMADevice](t, "rdma", "-j", "dev"))
}

// RDMADevices are the RDMA devices that the namespace sees, by name.
func (n NetNS) RDMADevices(t *testing.T) map[string]RDMADevice {
	t.Helper()
	return devicesByName(askRDMA[[]RDMADevice](t, "ip", n.exec("rdma", []string{"-j", "dev"})...))
}

// askRDMA is what the program rdma says. It lists devices and then asks for each by
// its number: where one goes in between, it fails, and is asked again.
func askRDMA[T any](t *testing.T, name string, args ...string) T {
	t.Helper()
	var out string
	Eventually(t, func() string {
		said, err := Try(name, args...)
		if err != nil && strings.Contains(err.Error(), "Invalid argument") {
			return err.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		out = said
		return ""
	})
	return parsed[T](t, out, name, args...)
}

// devicesByName indexes devices.
func devicesByName(list []RDMADevice) map[string]RDMADevice {
	devices := map[string]RDMADevice{}
	for _, device := range list {
		devices[device.Name] = device
	}
	return devices
}

// RDMALinks are the ports of the RDMA devices of the host namespace, by device; Soft-RoCE has one port a device.
func RDMALinks(t *testing.T) map[string]RDMALink {
	t.Helper()
	links := map[string]RDMALink{}
	for _, link := range askRDMA[[]RDMALink](t, "rdma", "-j", "link") {
		links[link.Name] = link
	}
	return links
}

// AddRXE makes a Soft-RoCE device on a network device of the host namespace; it is deleted with the test, in whatever
// way the test has left it. While its network device is in a namespace that is being deleted it is left alone: it goes or
// comes home by itself, and Linux 7.2 releases a socket twice when it is deleted at that moment.
func AddRXE(t *testing.T, name, netdev string) {
	t.Helper()
	Run(t, "rdma", "link", "add", name, "type", "rxe", "netdev", netdev)
	t.Cleanup(func() {
		Eventually(t, func() string {
			if _, there := RDMADevices(t)[name]; !there {
				return ""
			}
			if _, there := Links(t)[netdev]; !there {
				return name + " gone with " + netdev
			}
			if _, err := Try("rdma", "link", "del", name); err != nil {
				return err.Error()
			}
			return ""
		})
	})
}

// Exclusive reports whether every RDMA device belongs to one namespace, and not to all.
func Exclusive(t *testing.T) bool {
	t.Helper()
	// `rdma -j system` is not JSON in every release of iproute2.
	return strings.HasPrefix(Run(t, "rdma", "system"), "netns exclusive")
}
