//go:build linux

package lab

import (
	"fmt"
	"strconv"

	"railhead/hack/test/vm/plan"
)

// Machine describes one virtual machine and what runs in it.
type Machine struct {
	// Name is the machine's name in the results.
	Name string
	// Kernel chooses its kernel.
	Kernel Kernel
	// MovableRXE replaces the kernel's Soft-RoCE by the one of rxeEdits.
	MovableRXE bool
	// Nodes are its NUMA nodes, each with one processor; none is a plain machine with two processors.
	Nodes []Node
	// Modules are loaded in this order before anything else runs.
	Modules []plan.Module
	// Programs are main packages of this module, by import path, that tests can run by the last element of that.
	Programs []string
	// Suites are the test packages that run in it.
	Suites []Suite
}

// Node is one NUMA node with its PCIe hierarchy: a host bridge of its own, one root port, one switch.
type Node struct {
	// PFs is the number of SR-IOV network cards (igb, 7 virtual functions each) below the switch.
	PFs int
}

// Suite is a set of packages of this module and which of their tests a machine runs.
type Suite struct {
	// Packages is a pattern as the go command takes it, with full import paths.
	Packages string
	// Tests selects top-level tests by name; nil is all.
	Tests func(name string) bool
}

// Dimensions of a machine. The guests' processors are threads of one QEMU process.
const (
	processors = 2
	memoryMiB  = 1024
)

// bootFiles are the files of one boot.
type bootFiles struct {
	kernel, initramfs, userland, modules, share string
}

// qemuArgs is the command line of QEMU for the machine. It uses no acceleration: the lab must run where there is no
// /dev/kvm. tscKHz is the host's time stamp clock, or 0 when it is not known.
func (m Machine) qemuArgs(f bootFiles, tscKHz int) []string {
	args := []string{
		"-machine", "q35,usb=off,vmport=off,smbus=off,sata=off",
		// The oldest processor that runs everything in the guest boots fastest under emulation: newer ones make the
		// kernel choose instructions that are slow to emulate.
		"-accel", "tcg,thread=multi,tb-size=256", "-cpu", "Nehalem",
		"-smp", strconv.Itoa(processors), "-m", strconv.Itoa(memoryMiB),
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-vga", "none", "-serial", "stdio",
		"-kernel", f.kernel, "-initrd", f.initramfs, "-append", kernelArgs(tscKHz),
		"-drive", "if=none,id=userland,format=raw,readonly=on,file.locking=off,file=" + f.userland,
		"-device", "virtio-blk-pci,drive=userland,romfile=",
		"-drive", "if=none,id=modules,format=raw,readonly=on,file.locking=off,file=" + f.modules,
		"-device", "virtio-blk-pci,drive=modules,romfile=",
		"-fsdev", "local,id=share,security_model=none,path=" + f.share,
		"-device", "virtio-9p-pci,fsdev=share,romfile=,mount_tag=" + plan.ShareTag,
		"-device", "virtio-rng-pci,romfile=",
		"-device", fmt.Sprintf("isa-debug-exit,iobase=%#x,iosize=1", plan.ExitPort),
	}
	for i, node := range m.Nodes {
		args = append(args, node.qemuArgs(i, memoryMiB/len(m.Nodes))...)
	}
	return args
}

// qemuArgs are the arguments for NUMA node number i: memory, one processor and
//
//	host bridge (pxb-pcie) - root port - switch upstream port - downstream port for each PF - igb
//
// All network cards of a machine are on one Ethernet segment.
func (n Node) qemuArgs(i, memory int) []string {
	args := []string{
		"-object", fmt.Sprintf("memory-backend-ram,id=mem%d,size=%dM", i, memory),
		"-numa", fmt.Sprintf("node,nodeid=%d,cpus=%d,memdev=mem%d", i, i, i),
		// Bus numbers are far apart, so that each bridge has room for its hierarchy.
		"-device", fmt.Sprintf("pxb-pcie,id=bridge%d,bus=pcie.0,numa_node=%d,bus_nr=%d", i, i, 32*(i+1)),
		"-device", fmt.Sprintf("pcie-root-port,id=root%d,bus=bridge%d,chassis=%d,slot=0", i, i, 16*(i+1)),
		"-device", fmt.Sprintf("x3130-upstream,id=switch%d,bus=root%d", i, i),
	}
	for pf := range n.PFs {
		id := fmt.Sprintf("%d-%d", i, pf)
		args = append(args,
			"-device", fmt.Sprintf("xio3130-downstream,id=down%s,bus=switch%d,chassis=%d,slot=%d", id, i, 16*(i+1)+pf+1, pf),
			"-netdev", fmt.Sprintf("hubport,id=net%s,hubid=0", id),
			"-device", fmt.Sprintf("igb,bus=down%s,netdev=net%s,mac=52:54:00:00:%02x:%02x,romfile=", id, id, i, pf),
		)
	}
	return args
}

// kernelArgs is the kernel's command line. Warnings go to the console, where the host looks for them.
func kernelArgs(tscKHz int) string {
	args := "console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off nokaslr no_timer_check audit=0 random.trust_cpu=on"
	if tscKHz > 0 {
		// QEMU passes the host's time stamp counter through; on a busy host the kernel's own calibration of it is far off.
		args += fmt.Sprintf(" tsc=reliable tsc_early_khz=%d", tscKHz)
	}
	return args
}
