package check

import (
	"fmt"
	"strings"
)

// The values of ib_core's parameter netns_mode.
const (
	shared    = "shared"
	exclusive = "exclusive"
)

// modeParam is what ib_core's boolean parameter netns_mode says: true is
// shared.
func modeParam(value string) string {
	switch strings.ToLower(value) {
	case "0", "n", "no", "off", "false":
		return exclusive
	case "1", "y", "yes", "on", "true", "":
		return shared
	}
	return ""
}

func paramOf(mode string) string {
	if mode == exclusive {
		return "0"
	}
	return "1"
}

func netnsMode(n *Node, w Wishes) []Finding {
	mode := n.Inventory.System.NetNSMode
	if w.NetNSMode == "" || mode == "" || mode == w.NetNSMode {
		return nil
	}
	f := Finding{
		Severity: Error,
		ID:       "netns-mode",
		Object:   "node",
		Seen:     fmt.Sprintf("RDMA network namespace mode is %s, wanted is %s", mode, w.NetNSMode),
		Why:      "in shared mode every pod sees every RDMA device and none can be moved into a pod",
	}
	if mode == exclusive {
		f.Why = "in exclusive mode a pod sees only RDMA devices that were moved into it, so devices cannot be shared"
	}
	now := "rdma system set netns " + w.NetNSMode
	switch {
	case n.OtherNetNS == nil:
		f.Mend = append(f.Mend, now+" # refused (device or resource busy) while any other network namespace exists, then reboot")
	case *n.OtherNetNS == 0:
		f.Mend = append(f.Mend, now)
	default:
		f.Seen += fmt.Sprintf("; it cannot be changed before a reboot, as %s exist", plural(*n.OtherNetNS, "other network namespace"))
	}
	f.Mend = append(f.Mend, n.setModeAtBoot(w.NetNSMode)...)
	if n.OtherNetNS != nil && *n.OtherNetNS > 0 {
		f.Mend = append(f.Mend, "reboot")
	}
	return []Finding{f}
}

// setModeAtBoot returns the commands that make a mode the one at boot: a kernel
// argument where there is one already or ib_core is built in, else modprobe.d
// and the initramfs, which may load ib_core before the root file system is
// there.
func (n *Node) setModeAtBoot(mode string) []string {
	param := "netns_mode=" + paramOf(mode)
	if n.Modules["ib_core"].Builtin || n.BootNetNSModeFrom == commandLine {
		return n.setKernelArgument("ib_core." + param)
	}
	set := fmt.Sprintf("echo 'options ib_core %s' > /etc/modprobe.d/ib_core.conf", param)
	if file := n.BootNetNSModeFrom; file != "" && file != kernelDefault && file != "/etc/modprobe.d/ib_core.conf" {
		set = fmt.Sprintf("sed -i 's/netns_mode=[^ ]*/%s/' %s", param, file)
	}
	return []string{
		set,
		n.rebuildInitramfs() + " # ib_core may be loaded from the initramfs, which has its own copy of modprobe.d",
	}
}

func (n *Node) setKernelArgument(argument string) []string {
	if n.isDebian() {
		return []string{
			"# in GRUB_CMDLINE_LINUX of /etc/default/grub: " + argument,
			"update-grub",
		}
	}
	return []string{
		"grubby --update-kernel=ALL --args=" + argument + " # with ostree: rpm-ostree kargs --append-if-missing=" + argument,
	}
}

func (n *Node) rebuildInitramfs() string {
	if n.isDebian() {
		return "update-initramfs -u -k all"
	}
	return "dracut --regenerate-all --force"
}

// netnsModeAtBoot compares the mode now, or that wanted, with the one the next
// boot will give.
func netnsModeAtBoot(n *Node, w Wishes) []Finding {
	mode := n.Inventory.System.NetNSMode
	if mode == "" || n.BootNetNSMode == mode || w.NetNSMode != "" && w.NetNSMode != mode {
		return nil
	}
	f := Finding{
		Severity: Warning,
		ID:       "netns-mode-at-boot",
		Object:   "node",
		Seen:     fmt.Sprintf("RDMA network namespace mode is %s, but the next boot makes it %s (%s)", mode, n.BootNetNSMode, n.BootNetNSModeFrom),
		Why:      "after a reboot pods of this node get their RDMA devices in another way than now",
		Mend:     n.setModeAtBoot(mode),
	}
	if n.BootNetNSMode == exclusive && w.NetNSMode == "" {
		f.Why = "the setting did not reach ib_core: it was made after ib_core was loaded, or the initramfs has no copy of it"
		f.Mend = []string{n.rebuildInitramfs(), "reboot # or take the setting back"}
	}
	return []Finding{f}
}
