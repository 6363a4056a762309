package simulation

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// addCard writes the PCI functions of a card into the node's sysfs, the
// bridges above them, and the GPU beside them.
func (m *machine) addCard(c *card) {
	if c.driver.net == "" {
		return
	}
	for bridge := path.Dir(c.functions[0].path); strings.Contains(path.Base(bridge), "."); bridge = path.Dir(bridge) {
		m.addPCI(bridge, map[string]string{"vendor": "0x1000", "device": "0xc030", "class": "0x060400", "numa_node": strconv.Itoa(c.spec.NUMA)})
	}
	for _, f := range c.functions {
		m.addFunction(f)
	}
	if c.spec.GPU {
		domain, bus, _, _ := splitPCI(c.spec.PCI)
		upstream := switchOf(domain, bus)
		gpu := fmt.Sprintf("%[1]s/%[2]s:%02[3]x:01.0/%[2]s:%02[4]x:00.0", upstream, domain, bus-1, bus+1)
		m.addPCI(path.Dir(gpu), map[string]string{"vendor": "0x1000", "device": "0xc030", "class": "0x060400", "numa_node": strconv.Itoa(c.spec.NUMA)})
		m.addPCI(gpu, m.attributes(c, "0x10de", "0x2330", "0x16c1", "0x030200"))
		m.host.tree.link("sys/"+gpu+"/driver", "sys/bus/pci/drivers/nvidia")
	}
}

// attributes are those that all PCI functions of interest have.
func (m *machine) attributes(c *card, vendor, device, subsystem, class string) map[string]string {
	const cpus = 32 // of each NUMA node
	return map[string]string{
		"vendor": vendor, "device": device, "subsystem_vendor": vendor, "subsystem_device": subsystem, "class": class,
		"numa_node": strconv.Itoa(c.spec.NUMA), "local_cpulist": fmt.Sprintf("%d-%d", c.spec.NUMA*cpus, (c.spec.NUMA+1)*cpus-1),
		"current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16",
		"max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16",
	}
}

func (m *machine) addPCI(place string, attributes map[string]string) {
	m.host.tree.writeAll("sys/"+place, attributes)
	m.host.tree.link("sys/bus/pci/devices/"+path.Base(place), "sys/"+place)
}

func (m *machine) addFunction(f *function) {
	d, t := f.card.driver, m.host.tree
	device := d.device
	if f.vf >= 0 {
		device = d.vf
	}
	class := d.class
	if f.isInfiniBand() {
		class = "0x020700"
	}
	m.addPCI(f.path, m.attributes(f.card, d.vendor, device, d.subsystem, class))
	dir := "sys/" + f.path
	t.mkdir("sys/bus/pci/drivers/" + d.net)
	t.link(dir+"/driver", "sys/bus/pci/drivers/"+d.net)
	if f.vf >= 0 {
		pf := f.card.functions[0]
		t.link(dir+"/physfn", "sys/"+pf.path)
		t.link(fmt.Sprintf("sys/%s/virtfn%d", pf.path, f.vf), dir)
		return
	}
	if d.vf != "" {
		t.writeAll(dir, map[string]string{
			"sriov_totalvfs": strconv.Itoa(mostVFs), "sriov_numvfs": strconv.Itoa(f.card.spec.VFs), "sriov_drivers_autoprobe": "1",
		})
	}
}
