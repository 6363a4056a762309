package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"railhead/internal/inventory"
)

// guidZero has one finding a card that has no GUID, and one a PF whose VFs have
// none.
func guidZero(n *Node, _ Wishes) []Finding {
	var findings []Finding
	vfs := map[string][]*inventory.Device{}
	for _, d := range n.devices(hasNoGUID) {
		if d.Kind == inventory.VF && d.Parent != "" {
			vfs[d.Parent] = append(vfs[d.Parent], d)
			continue
		}
		f := Finding{
			Severity: Error,
			ID:       "guid-zero",
			Object:   deviceName(d),
			Seen:     "node GUID is " + d.RDMA.NodeGUID,
			Why:      guidWhy,
			Mend:     []string{"# give the card a GUID with its maker's tool"},
		}
		switch {
		case d.Kind == inventory.VF:
			f.Mend = []string{"# on the hypervisor: ip link set dev PF_NETDEV vf NUMBER mac MAC, then attach the VF again"}
		case isMellanox(d):
			f.Mend = []string{fmt.Sprintf("mstflint -d %s query # does the firmware have a GUID?", d.ID)}
		}
		findings = append(findings, f)
	}
	for _, pf := range n.devices(anyDevice) {
		if list := vfs[pf.ID]; len(list) > 0 {
			findings = append(findings, vfGUIDs(pf, list))
		}
	}
	return findings
}

const guidWhy = "connections by rdma_cm fail, and tools cannot tell devices without a GUID apart"

// hasNoGUID accepts devices of this namespace without a GUID. One in a pod is
// left alone: what mends it takes it away from the pod.
func hasNoGUID(d *inventory.Device) bool {
	return d.RDMA != nil && here(d) && isStandard(d) && d.RDMA.NodeGUID != "" && strings.Trim(d.RDMA.NodeGUID, "0:") == "" &&
		!slices.ContainsFunc(d.Netdevs, func(n inventory.Netdev) bool { return n.NetNS != nil })
}

// vfGUIDs gives VFs addresses through their PF; the driver takes them over, as
// GUIDs too, when it binds the VFs the next time.
func vfGUIDs(pf *inventory.Device, vfs []*inventory.Device) Finding {
	var numbers []string
	for _, d := range vfs {
		if d.VF != nil {
			numbers = append(numbers, strconv.Itoa(*d.VF))
		}
	}
	netdev := "PF_NETDEV"
	if len(pf.Netdevs) > 0 {
		netdev = pf.Netdevs[0].Name
	}
	set := fmt.Sprintf("ip link set dev %s vf $n mac $(cat /sys/bus/pci/devices/$vf/net/*/address)", netdev)
	if len(vfs[0].RDMA.Ports) > 0 && vfs[0].RDMA.Ports[0].LinkLayer == inventory.InfiniBand {
		set = fmt.Sprintf("ip link set dev %s vf $n node_guid GUID && ip link set dev %s vf $n port_guid GUID", netdev, netdev)
	}
	return Finding{
		Severity: Error,
		ID:       "guid-zero",
		Object:   deviceName(pf),
		Seen:     fmt.Sprintf("node GUID is zero on %s: %s", plural(len(vfs), "VF"), firstFew(numbers)),
		Why:      guidWhy,
		Mend: []string{fmt.Sprintf("for n in %s; do vf=$(basename $(readlink /sys/bus/pci/devices/%s/virtfn$n)); %s; "+
			"echo $vf > /sys/bus/pci/drivers/%s/unbind; echo $vf > /sys/bus/pci/drivers/%s/bind; done # not while a pod has one of them",
			strings.Join(numbers, " "), pf.ID, set, vfs[0].PCI.Driver, vfs[0].PCI.Driver)},
	}
}
