package simulation

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// function is a PF or VF while the simulation runs.
type function struct {
	card *card
	vf   int    // its number on the PF; -1 of the PF
	id   string // what the scenario calls it
	pci  string // address; empty where it is no hardware
	path string // below sys

	rdma, netdev string // as the host calls them
	index        uint32 // of the RDMA device
	link         int    // index of the netdev; 0 for none
	guid         uint64
	mac          string
	address      netip.Prefix // of an invented netdev where it is; invalid for none
	real         *footing     // the netdev that it stands on; nil where that is invented, or away

	sources    []*source
	past       load // of sources that are gone
	hardware   []counter
	whole      []counter
	statistics []counter
	pma        []counter
	cm         []counter

	place    *namespace // where its RDMA device is
	netPlace *namespace // where its netdev is
	name     string     // of the netdev there
	char     int        // number of its character devices
}

func newFunction(s *Scenario, c *card, vf int) *function {
	f := &function{card: c, vf: vf, id: c.spec.Name}
	if vf >= 0 {
		f.id = vfName(c.spec.Name, vf)
	}
	f.locate()
	if s.RealNode && f.pci != "" {
		f.path = rootPort(c.number) + "/" + f.pci
	}
	f.guid = 0xb83fd2<<40 | 0x0300<<24 | hash(s.Seed, s.Node)&0xfff<<12 | uint64(c.number*(mostVFs+1)+vf+1)
	octets := []any{0xb8, 0x3f, 0xd2, f.guid >> 16 & 0xff, f.guid >> 8 & 0xff, f.guid & 0xff}
	f.mac = fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", octets...)
	if p, err := netip.ParsePrefix(c.spec.Address); err == nil && vf < 0 {
		f.address = p
	}
	return f
}

// locate finds out where the function sits: below a PCIe switch that it may
// share with a GPU.
func (f *function) locate() {
	spec := f.card.spec
	if f.card.driver.net == "" {
		f.path = "devices/virtual"
		f.netdev = spec.Netdev
		if f.netdev == "" {
			f.netdev = fmt.Sprintf("dummy%d", f.card.number)
		}
		return
	}
	domain, bus, slot, number := splitPCI(spec.PCI)
	f.pci = spec.PCI
	f.netdev = spec.Netdev
	if f.vf >= 0 {
		at := 8 + number*64 + f.vf
		f.pci = fmt.Sprintf("%s:%02x:%02x.%d", domain, bus, at/8, at%8)
		f.netdev = fmt.Sprintf("%sv%d", stem(spec, bus, slot, number), f.vf)
	} else if f.netdev == "" {
		f.netdev = stem(spec, bus, slot, number)
		if spec.LinkLayer != linkInfiniBand {
			f.netdev += fmt.Sprintf("np%d", number)
		}
	}
	if !f.card.driver.hasNetdev {
		f.netdev = ""
	}
	f.path = switchOf(domain, bus) + fmt.Sprintf("/%s:%02x:00.0/%s", domain, bus-1, f.pci)
}

// rootPort is the path of a root port that a card has for itself: the buses
// above the netdevs of a real node may be those of other netdevs.
func rootPort(number int) string {
	const perSlot = 8
	return fmt.Sprintf("devices/pci0000:00/0000:00:%02x.%d", 1+number/perSlot, number%perSlot)
}

// splitPCI takes an address apart.
func splitPCI(address string) (domain string, bus, slot, number int) {
	domain, rest, _ := strings.Cut(address, ":")
	_, _ = fmt.Sscanf(rest, "%02x:%02x.%d", &bus, &slot, &number) // its form was checked
	return domain, bus, slot, number
}

// switchOf is the path of the upstream port of the switch above a bus: behind a
// root port, three buses up.
func switchOf(domain string, bus int) string {
	return fmt.Sprintf("devices/pci%[1]s:%02[2]x/%[1]s:%02[2]x:01.0/%[1]s:%02[3]x:00.0", domain, bus-3, bus-2)
}

// stem is how systemd begins the names of netdevs of a PCI function.
func stem(spec *Card, bus, slot, number int) string {
	if spec.LinkLayer == linkInfiniBand {
		return fmt.Sprintf("ibp%ds%d", bus, slot)
	}
	return fmt.Sprintf("enp%ds%df%d", bus, slot, number)
}

// add adds what sends and receives on the function.
func (f *function) add(s *source) { f.sources = append(f.sources, s) }

// load returns what went through the function by a moment.
func (f *function) load(t time.Duration) load {
	sum := f.past
	for _, s := range f.sources {
		sum.add(s.load(t, f.card.payload))
	}
	return sum
}

// isInfiniBand tells whether its ports are InfiniBand.
func (f *function) isInfiniBand() bool { return f.card.spec.LinkLayer == linkInfiniBand }

// linkLayer is that of its ports as sysfs writes it.
func (f *function) linkLayer() string {
	switch {
	case f.card.driver.link != "":
		return f.card.driver.link
	case f.isInfiniBand():
		return linkInfiniBand
	}
	return "Ethernet"
}

// guidText is a GUID as sysfs writes it.
func guidText(guid uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", guid>>48, guid>>32&0xffff, guid>>16&0xffff, guid&0xffff)
}

// nodeGUID is that of the function, which EFA has none of.
func (f *function) nodeGUID() string {
	if f.card.driver.nodeType == "7: unspecified" {
		return guidText(0)
	}
	return guidText(f.guid)
}

// classes of sysfs in which a function has devices.
func (f *function) rdmaDir() string { return "sys/" + f.path + "/infiniband/" + f.rdma }
func (f *function) netDir() string  { return "sys/" + f.path + "/net/" + f.name }
