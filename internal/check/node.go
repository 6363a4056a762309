package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"railhead/internal/inventory"
	"railhead/internal/kernel/sysfs"
)

// Node is what rules look at: the inventory, and the settings around it.
type Node struct {
	Inventory         *inventory.Snapshot
	Distribution      []string // ID and ID_LIKE of os-release: "ubuntu", "debian"
	Modules           map[string]Module
	BootNetNSMode     string              // "shared" or "exclusive": what the next boot gives
	BootNetNSModeFrom string              // where that is set: a file, commandLine or kernelDefault
	OtherNetNS        *int                // network namespaces beside the one we look from; nil where unknown
	OpenGPUDriver     bool                // whether NVIDIA's driver is the open one, which has DMA-BUF
	HasDev            bool                // whether there is a /dev at all: a copy of a node may have none
	HasDevInfiniBand  bool                // whether there is a /dev/infiniband
	ConnectionDevice  bool                // whether /dev/infiniband/rdma_cm exists
	IPv4Conf          map[string]IPv4Conf // by netdev of a port
	Runtimes          []Runtime
	Problems          []string // what could not be read
}

// Where the mode at boot may come from beside files of modprobe.d.
const (
	commandLine   = "the kernel's command line"
	kernelDefault = "the kernel's default"
)

func (n *Node) isDebian() bool {
	return slices.Contains(n.Distribution, "debian") || slices.Contains(n.Distribution, "ubuntu")
}

// Module is the state of a kernel module; the zero value is one that is not
// there.
type Module struct {
	Loaded  bool
	Builtin bool
}

// IPv4Conf holds settings of a netdev as they are in force, which is the
// greater of its own and that for all.
type IPv4Conf struct {
	RPFilter    int
	ARPIgnore   int
	ARPAnnounce int
}

// Gather reads the settings that belong to an inventory, from fsys. What
// cannot be read is listed in Problems and leaves out the rules that need it.
// The number of other network namespaces may be unknown.
func Gather(fsys sysfs.FS, snapshot *inventory.Snapshot, otherNetNS *int) *Node {
	g := gatherer{fs: fsys, node: &Node{Inventory: snapshot, OtherNetNS: otherNetNS}}
	g.distribution()
	g.modules()
	g.bootNetNSMode()
	g.connectionDevice()
	g.ipv4Conf()
	g.gpuDriver()
	g.runtimes()
	return g.node
}

type gatherer struct {
	fs   sysfs.FS
	node *Node
}

// problem keeps an error. What does not exist is an answer and not a problem.
func (g *gatherer) problem(err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	g.node.Problems = append(g.node.Problems, strings.Split(err.Error(), "\n")...)
}

// configLimit bounds the configuration files that are read.
const configLimit = 1 << 20

func (g *gatherer) distribution() {
	text, err := g.fs.ConfigFile("/etc/os-release", configLimit)
	g.problem(err)
	g.node.Distribution = osReleaseIDs(string(text))
}

// osReleaseIDs finds ID and ID_LIKE in the text of os-release(5).
func osReleaseIDs(text string) []string {
	var ids []string
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if name == "ID" || name == "ID_LIKE" {
			ids = append(ids, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	return ids
}

// gpuDriver finds out which of its two drivers NVIDIA's GPUs run with.
func (g *gatherer) gpuDriver() {
	text, err := g.fs.ConfigFile("/proc/driver/nvidia/version", configLimit)
	g.problem(err)
	g.node.OpenGPUDriver = strings.Contains(string(text), "Open Kernel Module")
}

// modules reads the state of all modules that a rule asks for.
func (g *gatherer) modules() {
	names := []string{"ib_core", "ib_uverbs", "ib_umad", "rdma_ucm", "nvidia_peermem", "nv_peer_mem", "gdrdrv"}
	for _, d := range g.node.Inventory.Devices {
		if d.PCI == nil {
			continue
		}
		if driver, ok := inventory.DriverOf(d.PCI.Driver); ok {
			names = append(names, driver.RDMA)
		}
	}
	g.node.Modules = map[string]Module{}
	for _, name := range names {
		if _, done := g.node.Modules[name]; done {
			continue
		}
		m, loaded, err := g.fs.Module(name)
		g.problem(err)
		g.node.Modules[name] = Module{Loaded: loaded, Builtin: m.Builtin}
	}
}

// bootNetNSMode finds what ib_core will be told at the next boot. The kernel's
// command line reaches modules too; modprobe reads its files first, so the
// command line counts.
func (g *gatherer) bootNetNSMode() {
	const module, param = "ib_core", "netns_mode"
	g.node.BootNetNSMode, g.node.BootNetNSModeFrom = shared, kernelDefault
	options, err := g.fs.ModuleOptions()
	g.problem(err)
	for _, o := range options {
		if o.Module != module {
			continue
		}
		if value, ok := o.Params[param]; ok {
			g.node.BootNetNSMode, g.node.BootNetNSModeFrom = modeParam(value), o.File
		}
	}
	cmdline, err := g.fs.KernelCommandLine()
	g.problem(err)
	if value, ok := cmdline.Lookup(module + "." + param); ok {
		g.node.BootNetNSMode, g.node.BootNetNSModeFrom = modeParam(value), commandLine
	}
}

func (g *gatherer) connectionDevice() {
	g.node.HasDev = g.exists("/dev")
	g.node.HasDevInfiniBand = g.exists("/dev/infiniband")
	chars, err := g.fs.CharDevices()
	g.problem(err)
	for _, c := range chars {
		if c.Class == "rdma_cm" {
			g.node.ConnectionDevice = c.Exists
		}
	}
}

func (g *gatherer) ipv4Conf() {
	g.node.IPv4Conf = map[string]IPv4Conf{}
	for _, r := range g.node.ports(here) {
		if r.port.Netdev == "" {
			continue
		}
		g.node.IPv4Conf[r.port.Netdev] = IPv4Conf{
			RPFilter:    g.ipv4Setting(r.port.Netdev, "rp_filter"),
			ARPIgnore:   g.ipv4Setting(r.port.Netdev, "arp_ignore"),
			ARPAnnounce: g.ipv4Setting(r.port.Netdev, "arp_announce"),
		}
	}
}

// ipv4Setting is the greater of a netdev's own setting and that for all, as
// Documentation/networking/ip-sysctl.rst has it for the settings asked for.
func (g *gatherer) ipv4Setting(netdev, setting string) int {
	greatest := 0
	for _, name := range []string{"all", netdev} {
		text, err := g.fs.Sysctl("net/ipv4/conf/" + name + "/" + setting)
		g.problem(err)
		if err != nil {
			continue
		}
		value, err := strconv.Atoi(text)
		if err != nil {
			g.problem(fmt.Errorf("sysctl net/ipv4/conf/%s/%s: value %q is no number", name, setting, text))
			continue
		}
		greatest = max(greatest, value)
	}
	return greatest
}

// exists tells whether there is a file at a place on the system.
func (g *gatherer) exists(name string) bool {
	_, err := os.Stat(g.fs.Path(name))
	return err == nil
}
