package check

import (
	"fmt"
	"strings"

	"railhead/internal/inventory"
)

func vfsWanted(n *Node, w Wishes) []Finding {
	if w.VFs == 0 {
		return nil
	}
	var findings []Finding
	for _, d := range n.devices(func(d *inventory.Device) bool { return d.Kind == inventory.PF && d.Rail != nil }) {
		if f, ok := vfsOf(d, w.VFs); ok {
			findings = append(findings, f)
		}
	}
	return findings
}

// vfsOf compares the VFs of one PF with those wanted.
func vfsOf(d *inventory.Device, want int) (Finding, bool) {
	f := Finding{
		Severity: Error,
		ID:       "vfs-wanted",
		Object:   deviceName(d),
		Why:      "pods that ask for a VF of this PF find too few",
	}
	firmware := []string{"# raise the number of VFs in the card's firmware or the BIOS, where the card has SR-IOV"}
	if isMellanox(d) {
		firmware = []string{
			fmt.Sprintf("mstconfig -d %s set SRIOV_EN=1 NUM_OF_VFS=%d", d.ID, want),
			"reboot # and switch SR-IOV on in the BIOS",
		}
	}
	switch {
	case d.SRIOV == nil:
		f.Seen = fmt.Sprintf("%d VFs are wanted, and the PF offers no SR-IOV", want)
		f.Mend = firmware
	case d.SRIOV.TotalVFs < want:
		f.Seen = fmt.Sprintf("%d VFs are wanted, and the firmware offers at most %d", want, d.SRIOV.TotalVFs)
		f.Mend = firmware
	case d.SRIOV.NumVFs < want:
		f.Seen = fmt.Sprintf("%d VFs are wanted, %d exist, %d are possible", want, d.SRIOV.NumVFs, d.SRIOV.TotalVFs)
		f.Mend = createVFs(d, want)
	default:
		return Finding{}, false
	}
	return f, true
}

// createVFs must remove VFs that exist first: the kernel refuses to go from one
// number to another.
func createVFs(d *inventory.Device, want int) []string {
	file := fmt.Sprintf("/sys/bus/pci/devices/%s/sriov_numvfs", d.ID)
	create := fmt.Sprintf("echo %d > %s", want, file)
	if d.SRIOV.NumVFs == 0 {
		return []string{create}
	}
	return []string{"# drain the node first: pods lose the VFs they have", "echo 0 > " + file, create}
}

// vfsUnbound finds VFs that no driver has bound.
func vfsUnbound(n *Node, _ Wishes) []Finding {
	unbound := map[string][]string{}
	for _, d := range n.devices(func(d *inventory.Device) bool { return d.Kind == inventory.VF && d.PCI.Driver == "" }) {
		unbound[d.Parent] = append(unbound[d.Parent], d.ID)
	}
	var findings []Finding
	for _, pf := range n.devices(func(d *inventory.Device) bool { return len(unbound[d.ID]) > 0 }) {
		vfs := unbound[pf.ID]
		f := Finding{
			Severity: Warning,
			ID:       "vfs-unbound",
			Object:   deviceName(pf),
			Seen:     fmt.Sprintf("no driver is bound to %s: %s", plural(len(vfs), "VF"), firstFew(vfs)),
			Why:      "a VF without its driver has neither netdev nor RDMA device",
		}
		if pf.SRIOV != nil && !pf.SRIOV.AutoprobeVFs {
			f.Severity = Info
			f.Seen += "; sriov_drivers_autoprobe is 0, so this may be meant"
			f.Mend = []string{fmt.Sprintf("echo 1 > /sys/bus/pci/devices/%s/sriov_drivers_autoprobe # or the kernel refuses what follows", pf.ID)}
		}
		f.Mend = append(f.Mend, fmt.Sprintf("for vf in %s; do echo $vf > /sys/bus/pci/drivers_probe; done", strings.Join(vfs, " ")))
		findings = append(findings, f)
	}
	return findings
}
