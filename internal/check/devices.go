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
		notes = append(notes, "in "+r.device.RDMA.NetNS.String())
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, ", ") + ")"
}

// ports returns the ports of the devices that keep accepts, without those that
// stand on an eswitch for other functions.
func (n *Node) ports(keep func(*inventory.Device) bool) []portRef {
	var refs []portRef
	for i := range n.Inventory.Devices {
		d := &n.Inventory.Devices[i]
		if d.RDMA == nil || !keep(d) {
			continue
		}
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

// here accepts devices that are in the namespace we look from.
func here(d *inventory.Device) bool { return d.RDMA.NetNS == nil }

// notVF accepts devices that are the node's own: a VF waits, down and without
// addresses, for its pod.
func notVF(d *inventory.Device) bool { return d.Kind != inventory.VF && here(d) }

// netdev returns the netdev that carries a port, if it is the device's own.
func (r portRef) netdev() *inventory.Netdev {
	for i := range r.device.Netdevs {
		if r.device.Netdevs[i].Name == r.port.Netdev {
			return &r.device.Netdevs[i]
		}
	}
	return nil
}

// isStandard accepts devices that speak RoCE, InfiniBand or iWARP, and not a
// protocol of their vendor's own, such as EFA, which has neither GUIDs nor
// rdma_cm.
func isStandard(d *inventory.Device) bool {
	return slices.ContainsFunc(d.RDMA.Ports, func(p inventory.Port) bool {
		return p.LinkLayer == inventory.Ethernet || p.LinkLayer == inventory.InfiniBand
	})
}

// plural returns "1 thing" or "n things".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
