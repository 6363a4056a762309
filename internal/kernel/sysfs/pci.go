package sysfs

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
)

// PCIDevice is a PCI function, /sys/bus/pci/devices/ADDRESS.
type PCIDevice struct {
	Address         string    // 0000:17:00.0
	Path            string    // real path below sysfs' root: devices/pci0000:16/0000:16:01.0/0000:17:00.0
	Vendor          uint16    // vendor: 0x15b3
	Device          uint16    // device: 0x1021
	SubsystemVendor uint16    // subsystem_vendor
	SubsystemDevice uint16    // subsystem_device
	Class           uint32    // class, 24 bits: 0x020000
	Driver          string    // name of the bound driver; empty for none
	NUMANode        int       // numa_node; -1 where the platform does not say
	LocalCPUs       string    // local_cpulist: "0-31,64-95"
	Link            PCILink   // what the link runs at
	LinkMax         PCILink   // what the function could run at
	PhysFn          string    // PCI address of the PF; empty unless this is a VF
	SRIOV           *SRIOV    // nil unless this is a PF with an SR-IOV capability
	Auxiliary       []AuxFunc // subfunctions (SFs) below it
}

// PCILink is the speed and width of a PCIe link.
type PCILink struct {
	GigaTransfers float64 // GT/s: 32 for PCIe 5.0; 0 where unknown
	Lanes         int     // 16; 0 where unknown
}

// SRIOV is the SR-IOV state of a PF.
type SRIOV struct {
	TotalVFs         int      // sriov_totalvfs: how many the card offers now
	NumVFs           int      // sriov_numvfs: how many exist
	DriversAutoprobe bool     // sriov_drivers_autoprobe: whether a driver binds new VFs
	VFs              []string // PCI address by VF number (virtfn0, virtfn1, …); "" for one that vanished
}

// AuxFunc is a subfunction: an auxiliary device such as mlx5_core.sf.4 below a
// PCI function.
type AuxFunc struct {
	Name  string // mlx5_core.sf.4
	Path  string // real path below sysfs' root
	SFNum int    // sfnum
}

const busPCI = "bus/pci/devices"

// PCIAddresses returns the addresses of all PCI functions in ascending order.
func (fs FS) PCIAddresses() ([]string, error) {
	found, err := fs.names(fs.Sys(busPCI))
	slices.SortFunc(found, comparePCI)
	return found, err
}

// PCIDevices returns those PCI functions whose class keep approves of, by
// address. Of the others it reads nothing but the class: a node has hundreds.
func (fs FS) PCIDevices(keep func(class uint32) bool) ([]PCIDevice, error) {
	bus, err := fs.open("bus/pci", "devices")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer bus.close()
	var kept []string
	for _, address := range bus.names() {
		class := value(bus, address+"/class", parseClass, noClass)
		if class != noClass && keep(class) {
			kept = append(kept, address)
		}
	}
	slices.SortFunc(kept, comparePCI)
	found, err := each(kept, fs.PCIDevice)
	return found, errors.Join(err, bus.done())
}

// PCIDevice returns a PCI function by its address, 0000:17:00.0.
func (fs FS) PCIDevice(address string) (PCIDevice, error) {
	d, err := fs.open(busPCI, address)
	if err != nil {
		return PCIDevice{Address: address}, err
	}
	defer d.close()
	dev := PCIDevice{
		Address:         address,
		Path:            d.real,
		Vendor:          value(d, "vendor", parsePCIID, 0),
		Device:          value(d, "device", parsePCIID, 0),
		SubsystemVendor: value(d, "subsystem_vendor", parsePCIID, 0),
		SubsystemDevice: value(d, "subsystem_device", parsePCIID, 0),
		Class:           value(d, "class", parseClass, 0),
		Driver:          d.linkName("driver"),
		NUMANode:        value(d, "numa_node", parseInt, -1),
		LocalCPUs:       d.text("local_cpulist"),
		Link:            readPCILink(d, "current_link_speed", "current_link_width"),
		LinkMax:         readPCILink(d, "max_link_speed", "max_link_width"),
		PhysFn:          d.linkName("physfn"),
		SRIOV:           readSRIOV(d),
		Auxiliary:       readAuxiliary(d),
	}
	return dev, d.done()
}

func readPCILink(d *dir, speed, width string) PCILink {
	return PCILink{
		GigaTransfers: value(d, speed, parseLinkSpeed, 0),
		Lanes:         value(d, width, parseLinkWidth, 0),
	}
}

// readSRIOV returns nil where there is no sriov_totalvfs, which the kernel
// offers on functions with the capability only.
func readSRIOV(d *dir) *SRIOV {
	total := value(d, "sriov_totalvfs", parseVFs, -1)
	if total < 0 {
		return nil
	}
	s := &SRIOV{
		TotalVFs:         total,
		NumVFs:           value(d, "sriov_numvfs", parseVFs, 0),
		DriversAutoprobe: d.text("sriov_drivers_autoprobe") == "1",
	}
	for i := range s.NumVFs {
		s.VFs = append(s.VFs, d.linkName("virtfn"+strconv.Itoa(i)))
	}
	return s
}

func readAuxiliary(d *dir) []AuxFunc {
	var funcs []AuxFunc
	for _, name := range d.names() {
		if !isSubfunction(name) {
			continue
		}
		if num := value(d, name+"/sfnum", parseInt, -1); num >= 0 {
			funcs = append(funcs, AuxFunc{Name: name, Path: d.real + "/" + name, SFNum: num})
		}
	}
	slices.SortFunc(funcs, func(a, b AuxFunc) int { return compareNatural(a.Name, b.Name) })
	return funcs
}

// isSubfunction reports whether an auxiliary device, MODULE.KIND.N, is a
// subfunction. Others are what a driver made of one function, such as
// mlx5_core.rdma.0.
func isSubfunction(name string) bool {
	i := strings.LastIndex(name, ".sf.")
	if i <= 0 {
		return false
	}
	_, ok := parseIndex(name[i+len(".sf."):])
	return ok
}

// comparePCI orders addresses DOMAIN:BUS:DEVICE.FUNCTION, in which only the
// domain has no fixed width: behind an Intel VMD it has five digits.
func comparePCI(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func parsePCIID(s string) (uint16, error) {
	id, err := parseHex(s, 16)
	return uint16(id), err
}

// noClass is no class: classes have 24 bits.
const noClass = ^uint32(0)

func parseClass(s string) (uint32, error) {
	class, err := parseHex(s, 24)
	return uint32(class), err
}

// parseVFs parses a number of VFs, which is one of 16 bits in the capability.
func parseVFs(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, wants(s, "a number of VFs up to 65535")
	}
	return int(n), nil
}

// parseLinkSpeed parses "32.0 GT/s PCIe", "2.5 GT/s" and "Unknown", which some
// kernels write "Unknown speed".
func parseLinkSpeed(s string) (float64, error) {
	if strings.HasPrefix(s, "Unknown") {
		return 0, nil
	}
	number, _, ok := strings.Cut(s, " GT/s")
	speed, err := parseDecimal(number)
	if !ok || err != nil {
		return 0, wants(s, `a speed such as "32.0 GT/s PCIe"`)
	}
	return speed, nil
}

// parseLinkWidth parses a number of lanes; 255 stands for unknown.
func parseLinkWidth(s string) (int, error) {
	lanes, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return 0, wants(s, "a number of lanes up to 255")
	}
	if lanes == 255 {
		return 0, nil
	}
	return int(lanes), nil
}
