package inventory

import (
	"cmp"
	"slices"
	"strings"

	"railhead/internal/kernel/sysfs"
)

// Distance is how far apart two PCI functions are, in the words of
// "nvidia-smi topo", nearest first.
type Distance string

// The distances between a GPU and a device.
const (
	PIX  Distance = "PIX"  // below one PCIe switch or root port
	PXB  Distance = "PXB"  // across several PCIe switches
	PHB  Distance = "PHB"  // across one host bridge
	NODE Distance = "NODE" // across host bridges of one NUMA node
	SYS  Distance = "SYS"  // across NUMA nodes
)

// rank orders distances, nearest first.
func (d Distance) rank() int {
	return slices.Index([]Distance{PIX, PXB, PHB, NODE, SYS}, d)
}

// place is where a PCI function sits: the root complex, then PCI addresses
// down to the function itself.
type place struct {
	hops []string
	numa int
}

// placeOf takes the real sysfs path of a PCI function apart.
func placeOf(p *sysfs.PCIDevice) place {
	hops := strings.Split(p.Path, "/")
	if root := slices.IndexFunc(hops, func(h string) bool { return strings.HasPrefix(h, "pci") }); root >= 0 {
		return place{hops: hops[root:], numa: p.NUMANode}
	}
	return place{numa: p.NUMANode}
}

// distance compares two places. Functions below one switch are near each other
// even when the switch has a port for each.
func distance(a, b place) Distance {
	shared := 0
	for shared < min(len(a.hops), len(b.hops)) && a.hops[shared] == b.hops[shared] {
		shared++
	}
	const portAndFunction = 2
	switch {
	case shared > 1 && len(a.hops)-shared <= portAndFunction && len(b.hops)-shared <= portAndFunction:
		return PIX
	case shared > 1:
		return PXB
	case shared == 1:
		return PHB
	case a.numa >= 0 && a.numa == b.numa:
		return NODE
	default:
		return SYS
	}
}

// affinities lists all GPUs by their distance from a device.
func affinities(device place, gpus []gpuPlace) []Affinity {
	list := make([]Affinity, 0, len(gpus))
	for _, g := range gpus {
		list = append(list, Affinity{GPU: g.address, Distance: distance(device, g.place)})
	}
	slices.SortStableFunc(list, func(a, b Affinity) int { return cmp.Compare(a.Distance.rank(), b.Distance.rank()) })
	return list
}

type gpuPlace struct {
	address string
	place   place
}

// isGPU tells whether a PCI function counts as a GPU.
func isGPU(p *sysfs.PCIDevice) bool {
	for _, c := range gpuClasses {
		if p.Class>>8 == c.class && (c.vendor == 0 || c.vendor == p.Vendor) {
			return true
		}
	}
	return false
}

// isNetwork tells whether a PCI function is a network or InfiniBand
// controller.
func isNetwork(class uint32) bool {
	const network, infiniBand = 0x02, 0x0c06
	return class>>16 == network || class>>8 == infiniBand
}

// compareNames orders PCI addresses as the bus does, domains above ffff last,
// and names that end in a number by that number.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// pciOf is what a snapshot says of a PCI function.
func pciOf(p *sysfs.PCIDevice) *PCI {
	pci := &PCI{
		Address:   p.Address,
		Vendor:    hexID(p.Vendor),
		Device:    hexID(p.Device),
		Driver:    p.Driver,
		NUMANode:  numaNode(p.NUMANode),
		LocalCPUs: p.LocalCPUs,
		Link:      PCILink(p.Link),
		LinkMax:   PCILink(p.LinkMax),
	}
	if p.SubsystemVendor != 0 {
		pci.Subsystem = hexID(p.SubsystemVendor) + ":" + hexID(p.SubsystemDevice)
	}
	hops := placeOf(p).hops
	if len(hops) > 0 {
		pci.Root = hops[0]
	}
	if bridges := bridgesAbove(hops); len(bridges) > 0 {
		pci.RootPort = bridges[0]
		if len(bridges) >= 3 { // root port, then the switch's upstream and downstream ports
			pci.Switch = bridges[len(bridges)-2]
		}
	}
	return pci
}

// bridgesAbove returns the bridges between the root complex and a function.
func bridgesAbove(hops []string) []string {
	if len(hops) < 3 {
		return nil
	}
	return hops[1 : len(hops)-1]
}

func numaNode(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func hexID(id uint16) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[id>>12], digits[id>>8&15], digits[id>>4&15], digits[id&15]})
}
