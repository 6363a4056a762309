package check

import (
	"fmt"
	"slices"
	"strings"

	"railhead/internal/inventory"
)

// portRef is a port with the device it belongs to.
type portRef struct {
	device *inventory.Device
	port   *inventory.Port
}

// String names a port as an administrator would look for it.
func (r portRef) String() string {
	return fmt.Sprintf("%s port %d%s", r.device.RDMA.Name, r.port.Number, r.note())
}

func (r portRef) note() string {
	var notes []string
	if r.device.Rail != nil {
		notes = append(notes, fmt.Sprintf("rail %d", *r.device.Rail))
	}
	if r.port.Netdev != "" {
		notes = append(notes, r.port.Netdev)
	}
	if r.device.RDMA.NetNS != nil {
		notes = append(notes, "in "+r.device.RDMA.NetNS.Name())
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, ", ") + ")"
}

// deviceName names a device by its RDMA device and its place.
func deviceName(d *inventory.Device) string {
	if d.RDMA == nil || d.RDMA.Name == d.ID {
		return d.ID
	}
	return fmt.Sprintf("%s (%s)", d.RDMA.Name, d.ID)
}

// devices returns the devices that keep accepts.
func (n *Node) devices(keep func(*inventory.Device) bool) []*inventory.Device {
	var list []*inventory.Device
	for i := range n.Inventory.Devices {
		if d := &n.Inventory.Devices[i]; keep(d) {
			list = append(list, d)
		}
	}
	return list
}

// ports returns the ports of the RDMA devices that keep accepts, without those
// that stand on an eswitch for other functions.
func (n *Node) ports(keep func(*inventory.Device) bool) []portRef {
	var refs []portRef
	for _, d := range n.devices(func(d *inventory.Device) bool { return d.RDMA != nil && keep(d) }) {
		for k := range d.RDMA.Ports {
			if !d.RDMA.Ports[k].Representor {
				refs = append(refs, portRef{device: d, port: &d.RDMA.Ports[k]})
			}
		}
	}
	return refs
}

// anyDevice accepts every device.
func anyDevice(*inventory.Device) bool { return true }

// here accepts RDMA devices of the namespace we look from.
func here(d *inventory.Device) bool { return d.RDMA.NetNS == nil }

// isOwn accepts RDMA devices that are the node's own. A VF or SF waits, down
// and without addresses, for its pod.
func isOwn(d *inventory.Device) bool {
	return here(d) && (d.IsRoot() || d.Kind == inventory.Virtual)
}

// isCard accepts RDMA devices of cards: the functions that stand for a whole
// port, and not a share of one.
func isCard(d *inventory.Device) bool { return here(d) && d.IsRoot() }

// isRail accepts cards that are rails.
func isRail(d *inventory.Device) bool { return isCard(d) && d.Rail != nil }

// isStandard accepts devices that speak RoCE, InfiniBand, Omni-Path or iWARP,
// and not a protocol of their vendor's own or raw Ethernet, which have neither
// GUIDs nor rdma_cm. Netlink tells the protocol; sysfs alone, the link layer.
func isStandard(d *inventory.Device) bool {
	if d.RDMA.Index != nil {
		return slices.Contains([]string{"ib", "roce", "iw", "opa"}, d.RDMA.Protocol)
	}
	return slices.ContainsFunc(d.RDMA.Ports, func(p inventory.Port) bool {
		return p.LinkLayer == inventory.Ethernet || p.LinkLayer == inventory.InfiniBand
	})
}

// isMellanox tells whether the tools of that maker work on a card.
func isMellanox(d *inventory.Device) bool { return d.PCI != nil && d.PCI.Vendor == "15b3" }

// orInfo is a severity that holds for rails: what another card lacks is worth
// knowing, but it may be meant so.
func orInfo(d *inventory.Device, s Severity) Severity {
	if d.Rail == nil {
		return Info
	}
	return s
}

// netdev returns the netdev that carries a port, if it is in this namespace.
func (r portRef) netdev() *inventory.Netdev {
	for i := range r.device.Netdevs {
		if n := &r.device.Netdevs[i]; n.Name == r.port.Netdev && n.NetNS == nil {
			return n
		}
	}
	return nil
}

// plural returns "1 thing" or "n things".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// firstFew joins words, and says how many more there are after a handful.
func firstFew(words []string) string {
	const few = 4
	if len(words) <= few {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:few], ", "), len(words)-few)
}
