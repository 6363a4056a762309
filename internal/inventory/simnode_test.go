package inventory

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// simNode is a node with simulated cards, whose files are in a directory and
// whose netlink is a fakekernel. Tests change it while it is read; a change
// returns what the kernel's events say of it.
type simNode struct {
	tb        testing.TB
	root      string
	kernel    *fakekernel.Kernel
	reader    *Reader
	cards     simCards
	functions []*simFunction
	pfs       int    // how many there are
	links     int    // the last link index
	devices   uint32 // the next RDMA device index
	chars     int    // the next number of a uverbs and umad
}

// simFunction is a PF, VF or SF.
type simFunction struct {
	id     string // PCI address or auxiliary device
	path   string // below sys
	pf     *simFunction
	vfs    []*simFunction
	gidLen int
	gids   map[int]simGID
	rdma   string
	device uint32
	netdev string
	link   int
	char   int

	isBound bool // to its driver
	isHere  bool // its RDMA device and netdev are in our namespace
}

type simGID struct{ gid, typ, netdev string }

// simCards says what cards a node has, each with a PF.
type simCards struct {
	pfs, vfs int // VFs on each PF
	gids     int // size of a PF's GID table
	others   int // files of a PCI function that nobody reads
}

// gidsOfVF is the size of the GID table of a VF.
const gidsOfVF = 16

func newSimNode(tb testing.TB, c simCards) *simNode {
	tb.Helper()
	n := &simNode{tb: tb, root: memoryDir(tb), cards: c, links: 1}
	n.kernel = fakekernel.New(fakekernel.Facts{
		System:   &rdmanl.System{NetNSMode: "exclusive", CopyOnFork: new(true)},
		Links:    []rtnl.Link{{Index: 1, Name: "lo", Type: 772}},
		Settings: map[int]ethtool.LinkSettings{},
	})
	n.write("proc/sys/kernel/osrelease", "6.12.48")
	n.write("proc/thread-self/ns/net", "") // who looks for namespaces finds ours alone
	n.write("sys/module/ib_core/parameters/netns_mode", "N")
	n.mkdir("sys/bus/pci/drivers/mlx5_core")
	n.mkdir("sys/class/infiniband")
	for range c.pfs {
		n.addVFs(n.addPF(), c.vfs)
	}
	n.open()
	return n
}

// memoryDir is a temporary directory in memory where there is one.
func memoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "railhead-") //nolint:usetesting // tb.TempDir is on disk
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// open gives the node a new Reader.
func (n *simNode) open() {
	n.tb.Helper()
	settings, err := n.kernel.Ethtool()
	n.must(err)
	tree := sysfs.New(n.root)
	n.reader = &Reader{fs: tree, node: node.Running(tree), links: n.kernel.Links(), rdma: n.kernel.RDMA(), settings: settings}
	n.tb.Cleanup(func() {
		if err := n.reader.Close(); err != nil {
			n.tb.Error(err)
		}
	})
}

func (n *simNode) must(err error) {
	n.tb.Helper()
	if err != nil {
		n.tb.Fatal(err)
	}
}

func (n *simNode) file(name string) string { return filepath.Join(n.root, name) }

func (n *simNode) mkdir(name string) {
	n.tb.Helper()
	n.must(os.MkdirAll(n.file(name), 0o755))
}

func (n *simNode) write(name, value string) {
	n.tb.Helper()
	n.mkdir(filepath.Dir(name))
	n.put(name, value)
}

// put writes a file in one go: an attribute is never empty for a moment.
func (n *simNode) put(name, value string) {
	n.tb.Helper()
	n.must(os.WriteFile(n.file("new"), []byte(value+"\n"), 0o644))
	n.must(os.Rename(n.file("new"), n.file(name)))
}

// writeAll writes the attributes of one directory.
func (n *simNode) writeAll(dir string, attributes map[string]string) {
	n.tb.Helper()
	n.mkdir(dir)
	for name, value := range attributes {
		n.put(dir+"/"+name, value)
	}
}

// link makes a relative symbolic link between files below root.
func (n *simNode) link(name, target string) {
	n.tb.Helper()
	n.mkdir(filepath.Dir(name))
	relative, err := filepath.Rel(filepath.Dir(name), target)
	n.must(err)
	n.must(os.Symlink(relative, n.file(name)))
}

func (n *simNode) remove(name string) {
	n.tb.Helper()
	n.must(os.RemoveAll(n.file(name)))
}

// addPF adds a card, with a GPU beside it and a device that is neither.
func (n *simNode) addPF() *simFunction {
	n.tb.Helper()
	bus := n.pfs*16 + 1
	n.pfs++
	bridge := fmt.Sprintf("devices/pci%04x:00/%04x:00:01.0", n.pfs, n.pfs)
	f := &simFunction{id: fmt.Sprintf("%04x:%02x:00.0", n.pfs, bus&0xff), gidLen: max(n.cards.gids, gidsOfVF)}
	f.path = bridge + "/" + f.id
	n.addPCI(f.path, "0x15b3", "0x1021", "0x020000")
	n.writeAll("sys/"+f.path, map[string]string{"sriov_totalvfs": "128", "sriov_numvfs": "0", "sriov_drivers_autoprobe": "1"})
	n.addPCI(fmt.Sprintf("%s/%04x:%02x:1e.0", bridge, n.pfs, bus&0xff), "0x10de", "0x2330", "0x030200")
	n.addPCI(fmt.Sprintf("%s/%04x:%02x:1f.0", bridge, n.pfs, bus&0xff), "0x8086", "0x0b00", "0x088000")
	n.functions = append(n.functions, f)
	n.bind(f)
	return f
}

func (n *simNode) addPCI(path, vendor, device, class string) {
	n.tb.Helper()
	dir := "sys/" + path
	n.writeAll(dir, map[string]string{
		"vendor": vendor, "device": device, "class": class, "subsystem_vendor": vendor, "subsystem_device": "0x0041",
		"numa_node": "0", "local_cpulist": "0-31,64-95",
		"current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16", "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16",
	})
	others := map[string]string{}
	for i := range n.cards.others {
		others[fmt.Sprint("other", i)] = ""
	}
	n.writeAll(dir, others)
	n.link("sys/bus/pci/devices/"+filepath.Base(path), dir)
}

// addVFs enables VFs on a PF that has none.
func (n *simNode) addVFs(pf *simFunction, vfs int) Changes {
	n.tb.Helper()
	if vfs == 0 {
		return Changes{}
	}
	changed := pathChange(pf.path)
	n.write("sys/"+pf.path+"/sriov_numvfs", strconv.Itoa(vfs))
	for i := range vfs {
		id := fmt.Sprintf("%s%02x.%d", pf.id[:8], 2+i/8, i%8)
		f := &simFunction{id: id, path: filepath.Dir(pf.path) + "/" + id, pf: pf, gidLen: gidsOfVF}
		n.addPCI(f.path, "0x15b3", "0x101e", "0x020000")
		n.link("sys/"+f.path+"/physfn", "sys/"+pf.path)
		n.link(fmt.Sprintf("sys/%s/virtfn%d", pf.path, i), "sys/"+f.path)
		n.functions = append(n.functions, f)
		pf.vfs = append(pf.vfs, f)
		changed.merge(n.bind(f))
	}
	return changed
}

// removeVFs disables all VFs of a PF. The kernel announces the end of each VF,
// and of the PF nothing.
func (n *simNode) removeVFs(pf *simFunction) Changes {
	n.tb.Helper()
	var changed Changes
	for i, f := range pf.vfs {
		changed.merge(n.unbind(f))
		changed.merge(pathChange(f.path))
		n.remove("sys/" + f.path)
		n.remove("sys/bus/pci/devices/" + f.id)
		n.remove(fmt.Sprintf("sys/%s/virtfn%d", pf.path, i))
	}
	n.write("sys/"+pf.path+"/sriov_numvfs", "0")
	n.functions = slices.DeleteFunc(n.functions, func(f *simFunction) bool { return slices.Contains(pf.vfs, f) })
	pf.vfs = nil
	return changed
}

// addSF adds a subfunction to a PF.
func (n *simNode) addSF(pf *simFunction, number int) Changes {
	n.tb.Helper()
	id := fmt.Sprintf("mlx5_core.sf.%d", number)
	f := &simFunction{id: id, path: pf.path + "/" + id, pf: pf, gidLen: gidsOfVF}
	n.write("sys/"+f.path+"/sfnum", strconv.Itoa(80+number))
	n.functions = append(n.functions, f)
	changed := pathChange(f.path)
	changed.merge(n.bind(f))
	return changed
}

// bind gives a function its driver, and so an RDMA device and a netdev.
func (n *simNode) bind(f *simFunction) Changes {
	n.tb.Helper()
	n.link("sys/"+f.path+"/driver", "sys/bus/pci/drivers/mlx5_core")
	f.isBound = true
	n.links++
	f.link, f.netdev = n.links, fmt.Sprintf("eth%d", n.links)
	f.device, f.rdma = n.devices, fmt.Sprintf("mlx5_%d", n.devices)
	n.devices++
	f.gids = map[int]simGID{}
	changed := n.appear(f)
	changed.merge(pathChange(f.path))
	return changed
}

// unbind takes the driver away.
func (n *simNode) unbind(f *simFunction) Changes {
	n.tb.Helper()
	changed := pathChange(f.path)
	if f.isHere {
		changed.merge(n.vanish(f))
	}
	n.removeChars(f)
	f.isBound = false
	n.remove("sys/" + f.path + "/driver")
	return changed
}

// setGID sets an entry of a GID table.
func (n *simNode) setGID(f *simFunction, index int, gid, typ, netdev string) {
	n.tb.Helper()
	f.gids[index] = simGID{gid, typ, netdev}
	port := fmt.Sprintf("sys/%s/infiniband/%s/ports/1", f.path, f.rdma)
	n.write(fmt.Sprintf("%s/gids/%d", port, index), gid)
	n.write(fmt.Sprintf("%s/gid_attrs/types/%d", port, index), typ)
	n.write(fmt.Sprintf("%s/gid_attrs/ndevs/%d", port, index), netdev)
}

// addAddress gives a link an address, and the RDMA device of a function its
// GIDs.
func (n *simNode) addAddress(f *simFunction, link int, netdev string, address netip.Addr) Changes {
	n.tb.Helper()
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.Addresses = append(k.Addresses, rtnl.Address{LinkIndex: link, Prefix: netip.PrefixFrom(address, 24), Scope: "global"})
	})
	b := address.As4()
	gid := fmt.Sprintf("0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3])
	for _, typ := range []string{"IB/RoCE v1", "RoCE v2"} {
		index := 0
		for f.gids[index].gid != "" {
			index++
		}
		n.setGID(f, index, gid, typ, netdev)
	}
	return linkChange(link)
}

// removeAddresses takes all addresses of a link away, with their GIDs.
func (n *simNode) removeAddresses(f *simFunction, link int, netdev string) Changes {
	n.tb.Helper()
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.Addresses = slices.DeleteFunc(k.Addresses, func(a rtnl.Address) bool { return a.LinkIndex == link })
	})
	for index, g := range maps.Clone(f.gids) {
		if index > 1 && g.netdev == netdev {
			n.write(fmt.Sprintf("sys/%s/infiniband/%s/ports/1/gids/%d", f.path, f.rdma, index), "0000:0000:0000:0000:0000:0000:0000:0000")
			delete(f.gids, index)
		}
	}
	return linkChange(link)
}

// addMacvlan puts a macvlan on the netdev of a function.
func (n *simNode) addMacvlan(f *simFunction, address netip.Addr) Changes {
	n.tb.Helper()
	n.links++
	l := rtnl.Link{Index: n.links, Name: fmt.Sprintf("macvlan%d", n.links), Type: 1, Kind: "macvlan", Mode: "bridge", ParentIndex: f.link, Up: true}
	n.kernel.Change(func(k *fakekernel.Facts) { k.Links = append(k.Links, l) })
	return n.addAddress(f, l.Index, l.Name, address)
}

// changeLink changes a link in netlink.
func (n *simNode) changeLink(index int, change func(*rtnl.Link)) Changes {
	n.tb.Helper()
	n.kernel.Change(func(k *fakekernel.Facts) {
		for i := range k.Links {
			if k.Links[i].Index == index {
				change(&k.Links[i])
			}
		}
	})
	return linkChange(index)
}

// changeRDMA changes an RDMA device in netlink.
func (n *simNode) changeRDMA(f *simFunction, change func(*rdmanl.Device)) {
	n.tb.Helper()
	n.kernel.Change(func(k *fakekernel.Facts) {
		for i := range k.RDMA {
			if k.RDMA[i].Index == f.device {
				k.RDMA[i].Ports = slices.Clone(k.RDMA[i].Ports)
				change(&k.RDMA[i])
			}
		}
	})
}

// setPortState changes the state of a port; the kernel makes no event of that.
func (n *simNode) setPortState(f *simFunction, up bool) Changes {
	n.tb.Helper()
	state, phys := "DOWN", "DISABLED"
	attributes := map[string]string{"state": "1: DOWN", "phys_state": "3: Disabled", "rate": "40 Gb/sec (4X QDR)"}
	if up {
		state, phys = "ACTIVE", "LINK_UP"
		attributes = map[string]string{"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)"}
	}
	n.writeAll(fmt.Sprintf("sys/%s/infiniband/%s/ports/1", f.path, f.rdma), attributes)
	n.changeRDMA(f, func(d *rdmanl.Device) { d.Ports[0].State, d.Ports[0].PhysState = state, phys })
	return Changes{}
}

// setSpeed changes what a link runs at.
func (n *simNode) setSpeed(f *simFunction, megabits int) Changes {
	n.tb.Helper()
	n.write("sys/"+f.path+"/net/"+f.netdev+"/speed", strconv.Itoa(megabits))
	n.kernel.Change(func(k *fakekernel.Facts) {
		s := k.Settings[f.link]
		s.SpeedMegabits = megabits
		k.Settings[f.link] = s
	})
	return linkChange(f.link)
}

// renameRDMA renames an RDMA device.
func (n *simNode) renameRDMA(f *simFunction, name string) Changes {
	n.tb.Helper()
	dir := "sys/" + f.path + "/infiniband/"
	n.must(os.Rename(n.file(dir+f.rdma), n.file(dir+name)))
	n.remove("sys/class/infiniband/" + f.rdma)
	f.rdma = name
	n.link("sys/class/infiniband/"+name, dir+name)
	for class, char := range map[string]string{"infiniband_verbs": "uverbs", "infiniband_mad": "umad"} {
		n.write(fmt.Sprintf("sys/%s/%s/%s%d/ibdev", f.path, class, char, f.char), name)
	}
	n.changeRDMA(f, func(d *rdmanl.Device) { d.Name, d.Ports[0].DeviceName = name, name })
	return pathChange(f.path + "/infiniband/" + name)
}

// renameNetdev renames a netdev, which GIDs name.
func (n *simNode) renameNetdev(f *simFunction, name string) Changes {
	n.tb.Helper()
	dir := "sys/" + f.path + "/net/"
	old := f.netdev
	n.must(os.Rename(n.file(dir+old), n.file(dir+name)))
	n.remove("sys/class/net/" + old)
	f.netdev = name
	n.link("sys/class/net/"+name, dir+name)
	for index, g := range f.gids {
		if g.netdev == old {
			n.setGID(f, index, g.gid, g.typ, name)
		}
	}
	n.changeRDMA(f, func(d *rdmanl.Device) { d.Ports[0].NetdevName = name })
	changed := n.changeLink(f.link, func(l *rtnl.Link) { l.Name = name })
	changed.merge(pathChange(f.path + "/net/" + name))
	return changed
}

// bond puts the netdevs of two functions into a bond, for which the RDMA device
// of the first stands alone.
func (n *simNode) bond(first, second *simFunction) int {
	n.tb.Helper()
	n.links++
	bond := rtnl.Link{Index: n.links, Name: "bond0", Type: 1, Kind: "bond", BondMode: "802.3ad", Up: true, Running: true, MTU: 9000}
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.Links = append(k.Links, bond)
		k.RDMA = slices.DeleteFunc(k.RDMA, func(d rdmanl.Device) bool { return d.Index == second.device })
	})
	n.remove("sys/" + second.path + "/infiniband")
	n.remove("sys/class/infiniband/" + second.rdma)
	n.removeChars(second)
	for _, f := range []*simFunction{first, second} {
		n.changeLink(f.link, func(l *rtnl.Link) { l.MasterIndex = bond.Index })
	}
	for index, g := range first.gids {
		n.setGID(first, index, g.gid, g.typ, bond.Name)
	}
	return bond.Index
}

// read reads what changed and joins it.
func (n *simNode) read(prev *Facts, changed Changes) (*Facts, *Snapshot) {
	f := n.reader.Read(prev, changed)
	return f, Join(f, Options{})
}

// check compares a snapshot with what a Reader sees that starts afresh.
func (n *simNode) check(got *Snapshot) string {
	n.tb.Helper()
	_, want := n.read(nil, Changes{})
	return diff(n.tb, want, got)
}

// diff compares snapshots as text, line by line.
func diff(tb testing.TB, want, got *Snapshot) string {
	tb.Helper()
	a, b := strings.Split(string(encode(tb, want)), "\n"), strings.Split(string(encode(tb, got)), "\n")
	if slices.Equal(a, b) {
		return ""
	}
	return cmp.Diff(a, b)
}
