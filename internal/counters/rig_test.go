package counters

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"railhead/internal/inventory"
	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// rig is one RDMA device with a kernel that has all counters of its driver.
type rig struct {
	tb     testing.TB
	device inventory.Device
	root   string
	kernel *fakekernel.Kernel
	facts  fakekernel.Facts
}

const (
	rigDevice = 7 // RDMA index
	rigLink   = 3 // netdev index
	rigPCI    = "0000:17:00.0"
)

// newRig makes a device with one port. Every counter of its driver counts, from
// a value that is its place in the table.
func newRig(tb testing.TB, module string, kind inventory.Kind, linkLayer string) *rig {
	tb.Helper()
	r := &rig{tb: tb, root: tb.TempDir()}
	r.device = inventory.Device{
		ID: rigPCI, Kind: kind, PCI: &inventory.PCI{Address: rigPCI, Driver: module},
		RDMA: &inventory.RDMA{Name: "dev0", Index: new(uint32(rigDevice)), Protocol: "roce", Ports: []inventory.Port{
			{Number: 1, LinkLayer: linkLayer, Netdev: "eth0", State: "ACTIVE", PhysState: "LINK_UP", Gigabits: 400, MaxGigabits: 400, Lanes: 4, MTU: 9000, MaxMTU: 9978, RDMAMTU: 4096, GIDTableLen: 256},
		}},
		Netdevs: []inventory.Netdev{{Name: "eth0", Index: rigLink}},
	}
	if kind == inventory.VF {
		r.device.Parent = "0000:17:00.1"
	}
	if kind == inventory.Virtual {
		r.device.PCI = nil
	}
	driver := Driver(&r.device)
	r.facts = fakekernel.Facts{
		System: &rdmanl.System{NetNSMode: "exclusive"},
		RDMA: []rdmanl.Device{{Index: rigDevice, Name: "dev0", PortCount: 1, Protocol: "roce", Ports: []rdmanl.Port{
			{DeviceIndex: rigDevice, DeviceName: "dev0", Number: 1, State: "ACTIVE", PhysState: "LINK_UP", NetdevIndex: rigLink, NetdevName: "eth0"},
		}}},
		Links:   []rtnl.Link{{Index: rigLink, Name: "eth0"}},
		HCAs:    map[uint32]*fakekernel.HCA{rigDevice: {Ports: map[int]*fakekernel.HCAPort{}, QPs: []rdmanl.QP{{Number: 1, Type: "RC", State: "RTS"}}}},
		NICs:    map[int]*fakekernel.NIC{rigLink: {}},
		Devlink: []fakekernel.Reporter{},
	}
	r.statistics(keysOf(statistics, driver), counting)
	r.driverStats(keysOf(driverStats, driver), counting)
	r.files(keysOf(deviceFiles, driver), "hw_counters")
	if driver == "mlx5" || driver == "mlx4" {
		r.files(keysOf(portFiles, ""), "ports/1/counters")
	}
	for _, dir := range cmDirs {
		r.files([]string{"req", "rej"}, "ports/1/"+dir.name)
	}
	r.write("class/infiniband/dev0/ports/1/state", "4: ACTIVE")
	r.kernel = fakekernel.New(r.facts)
	return r
}

// counting sets every counter to its place.
func counting(dst []uint64) {
	for i := range dst {
		dst[i] = uint64(i + 1)
	}
}

// keysOf are the kernel's names of a source's counters, in the order of the
// tables, but for those that are elsewhere mostly.
func keysOf(s source, driver string) []string {
	var keys []string
	for _, set := range sets {
		if set.source != s || set.again || !slices.Contains(set.drivers, driver) && (driver != "" || set.drivers != nil) {
			continue
		}
		for _, r := range set.rows {
			switch {
			case strings.HasPrefix(r.key, representorPrefix) && s == statistics:
			case strings.Contains(r.key, "#"):
				for i := range digits {
					keys = append(keys, expand(r.key, digits[i]))
				}
			default:
				keys = append(keys, r.key)
			}
		}
	}
	return keys
}

func (r *rig) statistics(names []string, values func([]uint64)) {
	if len(names) == 0 {
		return
	}
	port := &fakekernel.HCAPort{Values: values}
	for i, name := range names {
		port.Counters = append(port.Counters, rdmanl.CounterStatus{Index: uint32(i), Name: name, Enabled: true})
	}
	r.facts.HCAs[rigDevice].Ports[1] = port
}

func (r *rig) driverStats(names []string, values func([]uint64)) {
	r.facts.NICs[rigLink].StatNames, r.facts.NICs[rigLink].Stats = names, values
}

func (r *rig) files(names []string, dir string) {
	for i, name := range names {
		r.write(filepath.Join("class/infiniband/dev0", dir, name), strconv.Itoa(i+1))
	}
}

func (r *rig) write(name, value string) {
	r.tb.Helper()
	full := filepath.Join(r.root, "sys", name)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		r.tb.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(value+"\n"), 0o600); err != nil {
		r.tb.Fatal(err)
	}
}

// access is how to reach the device.
func (r *rig) access() Access {
	r.tb.Helper()
	eth, err := r.kernel.Ethtool()
	if err != nil {
		r.tb.Fatal(err)
	}
	dev, err := r.kernel.Devlink()
	if err != nil {
		r.tb.Fatal(err)
	}
	a := Access{RDMA: r.kernel.RDMA(), Links: r.kernel.Links(), Ethtool: eth, Devlink: dev, FS: sysfs.New(r.root)}
	r.tb.Cleanup(func() {
		_, _, _, _ = a.RDMA.Close(), a.Links.Close(), eth.Close(), dev.Close()
	})
	return a
}

// read reads all tiers, each of which must go without an error.
func (r *rig) read(reader *Reader, a Access) []Sample {
	r.tb.Helper()
	var samples []Sample
	for tier := range Tiers {
		var err error
		if samples, err = reader.Read(tier, a, samples); err != nil {
			r.tb.Fatalf("tier %d: %v", tier, err)
		}
	}
	return samples
}

// name is the name of a sample as it is exposed.
func name(f *Family) string {
	if f.Kind == Counter {
		return f.Name + "_total"
	}
	return f.Name
}

// line is a sample as it is exposed.
func line(s Sample) string {
	var labels []string
	for _, l := range s.Series.Labels {
		labels = append(labels, fmt.Sprintf("%s=%q", l.Name, l.Value))
	}
	return fmt.Sprintf("%s{%s} %v", name(s.Series.Family), strings.Join(labels, ","), float64(s.Value)*s.Series.Scale)
}

func lines(samples []Sample) []string {
	var list []string
	for _, s := range samples {
		list = append(list, line(s))
	}
	return list
}

// vnicReporter is the health reporter of the rig's PCI function.
func vnicReporter() fakekernel.Reporter {
	return fakekernel.Reporter{
		Reporter: devlink.Reporter{Bus: "pci", Device: rigPCI, Name: "vnic"},
		Names:    keysOf(vnic, "mlx5"), Values: counting,
	}
}

// pfc is priority flow control with priority 3 on.
func pfc() rtnl.PFC {
	return rtnl.PFC{Enabled: 1 << 3, Requests: [8]uint64{3: 33}, Indications: [8]uint64{3: 44}}
}

func standardStat() ethtool.StandardStat {
	return ethtool.StandardStat{Group: "eth-phy", Name: "SymbolErrorDuringCarrier", Value: 5}
}
