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

func netnsModeWanted(n *Node, w Wishes) []Finding {
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
	if n.OtherNetNS == 0 {
		f.Mend = append(f.Mend, "rdma system set netns "+w.NetNSMode)
	} else {
		f.Seen += fmt.Sprintf("; %s exist, so it cannot be changed before a reboot", plural(n.OtherNetNS, "other network namespace"))
	}
	f.Mend = append(f.Mend, n.modeAtBoot(w.NetNSMode)...)
	if n.OtherNetNS > 0 {
		f.Mend = append(f.Mend, "reboot")
	}
	return []Finding{f}
}

// modeAtBoot returns the commands that make a mode the one at boot: a kernel
// argument where ib_core is built in, else modprobe.d and the initramfs, which
// may load ib_core before the root file system is there.
func (n *Node) modeAtBoot(mode string) []string {
	param := "netns_mode=" + paramOf(mode)
	if n.Modules["ib_core"].Builtin {
		return []string{"# ib_core is built into the kernel: add the kernel argument ib_core." + param + " to the boot loader"}
	}
	return []string{
		fmt.Sprintf("echo 'options ib_core %s' > /etc/modprobe.d/ib_core.conf", param),
		n.rebuildInitramfs() + " # ib_core may be loaded from the initramfs, which has its own copy of modprobe.d",
	}
}

func (n *Node) rebuildInitramfs() string {
	switch n.Distribution {
	case "debian", "ubuntu":
		return "update-initramfs -u -k all"
	default:
		return "dracut --regenerate-all --force"
	}
}

// netnsModeAtBoot compares the mode now with the one the next boot will give.
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
		Mend:     n.modeAtBoot(mode),
	}
	if n.BootNetNSMode == exclusive {
		f.Why = "the setting did not reach ib_core: it was made after ib_core was loaded, or the initramfs has no copy of it"
		f.Mend = []string{n.rebuildInitramfs(), "reboot"}
	}
	return []Finding{f}
}
