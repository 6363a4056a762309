package cases

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"railhead/internal/inventory"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// Inventory reads the machine afresh, as the command line does. What cannot be read fails the test.
func Inventory(t *testing.T) *inventory.Snapshot {
	t.Helper()
	r, err := inventory.NewReader(node.Running(sysfs.New("/")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	s := inventory.Join(r.Read(nil, inventory.Changes{All: true}), inventory.Options{})
	for _, p := range s.Problems {
		t.Errorf("inventory: %s", p)
	}
	return s
}

// comparison is what was compared, and what differed.
type comparison struct {
	t                                                 *testing.T
	devices, ports, netdevs, addresses, gids, charDev int
	different                                         []string
}

// EventuallyAsTools wants what a function returns to be as the tools have it, once the kernel has come to rest.
func EventuallyAsTools(t *testing.T, snapshot func() *inventory.Snapshot) {
	t.Helper()
	var c *comparison
	Eventually(t, func() string {
		c = compareWithTools(t, snapshot())
		return strings.Join(c.different, "; ")
	})
	t.Logf("equal to rdma, ip and sysfs: %d RDMA devices, %d ports, %d netdevs, %d addresses, %d GIDs, %d character devices",
		c.devices, c.ports, c.netdevs, c.addresses, c.gids, c.charDev)
}

// compareWithTools holds the host namespace's part of a snapshot against `rdma -j`, `ip -j` and sysfs read with nothing
// but `os`, in both directions.
func compareWithTools(t *testing.T, s *inventory.Snapshot) *comparison {
	t.Helper()
	c := &comparison{t: t}
	tools, links := RDMADevices(t), RDMALinks(t)
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.RDMA != nil && d.RDMA.NetNS == nil {
			c.device(d.RDMA, tools[d.RDMA.Name], links[d.RDMA.Name])
			delete(tools, d.RDMA.Name)
		}
		c.pci(d)
		c.netdevices(d)
	}
	for name := range tools {
		c.differ("rdma dev lists %s, the inventory does not", name)
	}
	return c
}

func (c *comparison) differ(format string, args ...any) {
	c.different = append(c.different, fmt.Sprintf(format, args...))
}

// equal compares one value.
func (c *comparison) equal(what string, ours, theirs any) {
	if fmt.Sprint(ours) != fmt.Sprint(theirs) {
		c.differ("%s: the inventory has %v, the tools have %v", what, ours, theirs)
	}
}

// device compares an RDMA device with what `rdma` and sysfs say.
func (c *comparison) device(r *inventory.RDMA, tool RDMADevice, link RDMALink) {
	c.t.Helper()
	c.devices++
	c.equal(r.Name+" by rdma dev", r.Name, tool.Name)
	if r.Index == nil {
		c.differ("%s: no index", r.Name)
	} else {
		c.equal(r.Name+" index", *r.Index, tool.Index)
	}
	c.equal(r.Name+" node GUID", r.NodeGUID, tool.NodeGUID)
	c.equal(r.Name+" system image GUID", r.SysImageGUID, tool.SysImageGUID)
	for _, p := range r.Ports {
		name := fmt.Sprintf("%s/%d", r.Name, p.Number)
		c.ports++
		c.equal(name+" port", p.Number, link.Port)
		c.equal(name+" state", p.State, link.State)
		c.equal(name+" physical state", p.PhysState, link.PhysicalState)
		c.equal(name+" netdev", p.Netdev, link.Netdev)
		c.gidTable(name, p, filepath.Join("/sys/class/infiniband", r.Name, "ports", strconv.Itoa(p.Number)))
	}
	c.charDevices(r)
}

// gidTable compares the GIDs with a plain reading of sysfs.
func (c *comparison) gidTable(name string, p inventory.Port, dir string) {
	c.t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "gids"))
	if err != nil {
		c.differ("%v", err)
	}
	c.equal(name+" GID table", p.GIDTableLen, len(entries))
	ours := map[string]string{}
	for _, g := range p.GIDs {
		ours[strconv.Itoa(g.Index)] = strings.Join([]string{g.GID, g.Type, g.Netdev}, " ")
	}
	theirs := map[string]string{}
	for _, e := range entries {
		gid := readOrNothing(filepath.Join(dir, "gids", e.Name()))
		if strings.Trim(gid, "0:") == "" {
			continue
		}
		c.gids++
		theirs[e.Name()] = strings.Join([]string{
			gid, readOrNothing(filepath.Join(dir, "gid_attrs/types", e.Name())), readOrNothing(filepath.Join(dir, "gid_attrs/ndevs", e.Name())),
		}, " ")
	}
	c.equal(name+" GIDs", ours, theirs)
}

// readOrNothing is the content of a file that may refuse to be read, or go away.
func readOrNothing(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// charDevices compares the verbs devices with those whose ibdev names the device.
func (c *comparison) charDevices(r *inventory.RDMA) {
	c.t.Helper()
	files, err := filepath.Glob("/sys/class/infiniband_verbs/uverbs*/ibdev")
	if err != nil {
		c.t.Fatal(err)
	}
	var theirs []string
	for _, f := range files {
		if readOrNothing(f) == r.Name {
			dir := filepath.Dir(f)
			theirs = append(theirs, filepath.Base(dir)+" "+readOrNothing(filepath.Join(dir, "dev")))
		}
	}
	var ours []string
	for _, d := range r.CharDevices {
		if strings.HasPrefix(d.Name, "uverbs") {
			ours = append(ours, fmt.Sprintf("%s %d:%d", d.Name, d.Major, d.Minor))
		}
		if _, err := os.Stat("/dev/infiniband/" + d.Name); (err == nil) != d.Exists {
			c.differ("%s: the inventory says %v of its being in /dev/infiniband", d.Name, d.Exists)
		}
	}
	c.charDev += len(ours)
	c.equal(r.Name+" verbs devices", ours, theirs)
}

// pci compares a function with sysfs.
func (c *comparison) pci(d *inventory.Device) {
	c.t.Helper()
	if d.PCI == nil {
		return
	}
	c.equal(d.ID+" vendor", "0x"+d.PCI.Vendor, readOrNothing(PCIPath(d.PCI.Address, "vendor")))
	c.equal(d.ID+" device", "0x"+d.PCI.Device, readOrNothing(PCIPath(d.PCI.Address, "device")))
	numa := "-1"
	if d.PCI.NUMANode != nil {
		numa = strconv.Itoa(*d.PCI.NUMANode)
	}
	c.equal(d.ID+" NUMA node", numa, readOrNothing(PCIPath(d.PCI.Address, "numa_node")))
	if d.SRIOV != nil {
		c.equal(d.ID+" VFs", d.SRIOV.NumVFs, readOrNothing(PCIPath(d.PCI.Address, "sriov_numvfs")))
	}
}

// address is what `ip -j addr` says of an address.
type address struct {
	Local     string `json:"local"`
	PrefixLen int    `json:"prefixlen"`
}

// addressesOf are the addresses that `ip` lists of a netdev.
func addressesOf(netdev string) ([]string, error) {
	out, err := Try("ip", "-j", "addr", "show", "dev", netdev)
	if err != nil {
		return nil, err
	}
	var links []struct {
		Addresses []address `json:"addr_info"`
	}
	if err := json.Unmarshal([]byte(out), &links); err != nil {
		return nil, fmt.Errorf("ip addr of %s: %w in %q", netdev, err, out)
	}
	var list []string
	for _, l := range links {
		for _, a := range l.Addresses {
			list = append(list, fmt.Sprintf("%s/%d", a.Local, a.PrefixLen))
		}
	}
	return list, nil
}

// netdevices compares the netdevs of a device with what `ip` says.
func (c *comparison) netdevices(d *inventory.Device) {
	c.t.Helper()
	links := Links(c.t)
	for _, n := range d.Netdevs {
		if n.NetNS != nil {
			continue
		}
		c.netdevs++
		link := links[n.Name]
		c.equal(n.Name+" index", n.Index, link.Index)
		c.equal(n.Name+" address", n.Address, link.Address)
		c.equal(n.Name+" MTU", n.MTU, link.MTU)
		c.equal(n.Name+" master", n.Master, link.Master)
		theirs, err := addressesOf(n.Name)
		if err != nil {
			c.differ("%v", err)
		}
		var ours []string
		for _, a := range n.Addresses {
			ours = append(ours, a.String())
		}
		c.addresses += len(ours)
		slices.Sort(ours)
		slices.Sort(theirs)
		c.equal(n.Name+" addresses", ours, theirs)
	}
}
