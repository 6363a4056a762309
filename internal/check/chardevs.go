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
	for _, d := range n.devices(func(d *inventory.Device) bool { return d.RDMA != nil }) {
		verbs := charDevices(d, "uverbs")
		if len(verbs) == 0 {
			without = append(without, d.RDMA.Name)
		}
		for _, c := range verbs {
			if !c.Exists && n.HasDevInfiniBand {
				findings = append(findings, nodeMissing(d, c, "infiniband_verbs", "0666", Error))
			}
		}
	}
	if n.HasDev && !n.HasDevInfiniBand && n.hasRDMA() {
		findings = append(findings, noDevInfiniBand())
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
			if !c.Exists && n.HasDevInfiniBand {
				findings = append(findings, nodeMissing(r.device, c, "infiniband_mad", "0600", Warning))
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
	if len(n.ports(isStandard)) == 0 || n.ConnectionDevice || !n.HasDevInfiniBand {
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

// noDevInfiniBand stands for all files that are missing.
func noDevInfiniBand() Finding {
	return Finding{
		Severity: Error,
		ID:       "char-device-missing",
		Object:   "/dev/infiniband",
		Seen:     "it does not exist",
		Why:      "programs open RDMA devices through the files in it",
		Mend:     []string{"udevadm trigger --action=add --subsystem-match=infiniband_verbs # in a container: mount the host's /dev/infiniband"},
	}
}

func nodeMissing(d *inventory.Device, c inventory.CharDevice, subsystem, mode string, severity Severity) Finding {
	return Finding{
		Severity: severity,
		ID:       "char-device-missing",
		Object:   "/dev/infiniband/" + c.Name,
		Seen:     fmt.Sprintf("the kernel has %s (%d:%d) for %s, /dev/infiniband has no such file", c.Name, c.Major, c.Minor, d.RDMA.Name),
		Why:      "what is not in /dev cannot be given to a pod",
		Mend: []string{
			"udevadm trigger --action=add --subsystem-match=" + subsystem,
			fmt.Sprintf("mknod -m %s /dev/infiniband/%s c %d %d # without udev", mode, c.Name, c.Major, c.Minor),
		},
	}
}

func classMissing(class string, devices []string, n *Node, module string, severity Severity, why string) Finding {
	f := Finding{
		Severity: severity,
		ID:       "char-device-missing",
		Object:   firstFew(devices),
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
