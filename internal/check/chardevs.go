package check

import (
	"fmt"
	"strings"

	"railhead/internal/inventory"
)

// charDevices returns the character devices of a device whose names start with
// prefix.
func charDevices(d *inventory.Device, prefix string) []inventory.CharDevice {
	var list []inventory.CharDevice
	for _, c := range d.RDMA.CharDevices {
		if strings.HasPrefix(c.Name, prefix) {
			list = append(list, c)
		}
	}
	return list
}

// verbsDeviceMissing finds RDMA devices that user space cannot open.
func verbsDeviceMissing(n *Node, _ Wishes) []Finding {
	var findings []Finding
	var without []string
	for i := range n.Inventory.Devices {
		d := &n.Inventory.Devices[i]
		if d.RDMA == nil {
			continue
		}
		verbs := charDevices(d, "uverbs")
		if len(verbs) == 0 {
			without = append(without, d.RDMA.Name)
		}
		for _, c := range verbs {
			if !c.Exists && n.HasDev {
				findings = append(findings, nodeMissing(d, c, "infiniband_verbs"))
			}
		}
	}
	if len(without) == 0 {
		return findings
	}
	return append(findings, classMissing("uverbs", without, n, "ib_uverbs", Error,
		"programs open an RDMA device through its uverbs device"))
}

// madDeviceMissing finds InfiniBand devices that subnet tools cannot open.
// Nothing on Ethernet needs umad or issm.
func madDeviceMissing(n *Node, _ Wishes) []Finding {
	var findings []Finding
	var without []string
	seen := map[*inventory.Device]bool{}
	for _, r := range n.ports(here) {
		if r.port.LinkLayer != inventory.InfiniBand || seen[r.device] {
			continue
		}
		seen[r.device] = true
		mad := append(charDevices(r.device, "umad"), charDevices(r.device, "issm")...)
		if len(mad) == 0 {
			without = append(without, r.device.RDMA.Name)
		}
		for _, c := range mad {
			if !c.Exists && n.HasDev {
				findings = append(findings, nodeMissing(r.device, c, "infiniband_mad"))
			}
		}
	}
	if len(without) == 0 {
		return findings
	}
	return append(findings, classMissing("umad", without, n, "ib_umad", Warning,
		"InfiniBand's own tools (ibstat, sminfo, opensm) and pods that ask for umad or issm need it"))
}

// connectionDeviceMissing finds a node without rdma_cm.
func connectionDeviceMissing(n *Node, _ Wishes) []Finding {
	if len(n.ports(isStandard)) == 0 || n.ConnectionDevice || !n.HasDev {
		return nil
	}
	f := Finding{
		Severity: Error,
		ID:       "char-device-missing",
		Object:   "/dev/infiniband/rdma_cm",
		Seen:     "it does not exist",
		Why:      "programs that connect by IP address (rdma_cm) need it",
		Mend:     loadModule("rdma_ucm"),
	}
	if n.Modules["rdma_ucm"].Loaded {
		f.Seen += ", though module rdma_ucm is loaded"
		f.Mend = []string{"udevadm trigger --action=add --subsystem-match=misc"}
	}
	return []Finding{f}
}

func nodeMissing(d *inventory.Device, c inventory.CharDevice, subsystem string) Finding {
	return Finding{
		Severity: Error,
		ID:       "char-device-missing",
		Object:   "/dev/infiniband/" + c.Name,
		Seen:     fmt.Sprintf("the kernel has %s (%d:%d) for %s, /dev/infiniband has no such file", c.Name, c.Major, c.Minor, d.RDMA.Name),
		Why:      "what is not in /dev cannot be given to a pod",
		Mend: []string{
			"udevadm trigger --action=add --subsystem-match=" + subsystem,
			fmt.Sprintf("mkdir -p /dev/infiniband && mknod -m 0666 /dev/infiniband/%s c %d %d # without udev", c.Name, c.Major, c.Minor),
		},
	}
}

func classMissing(class string, devices []string, n *Node, module string, severity Severity, why string) Finding {
	f := Finding{
		Severity: severity,
		ID:       "char-device-missing",
		Object:   strings.Join(devices, ", "),
		Seen:     fmt.Sprintf("no %s device; module %s is not loaded", class, module),
		Why:      why,
		Mend:     loadModule(module),
	}
	if n.Modules[module].Loaded {
		f.Seen = fmt.Sprintf("no %s device, though module %s is loaded", class, module)
		f.Mend = []string{"dmesg | grep " + module}
	}
	return f
}
