package sysfs_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

func TestPCIAddresses(t *testing.T) {
	t.Parallel()
	got, err := kerneltest.Tree(t, "testdata/roce.txtar").PCIAddresses()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0000:16:01.0", "0000:17:00.0", "0000:17:00.1", "0000:17:00.7", "10000:e1:00.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func TestPCIDevices(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/roce.txtar")
	var asked []uint32
	got, err := fs.PCIDevices(func(class uint32) bool {
		asked = append(asked, class)
		return class>>16 == 0x02
	})
	if err != nil {
		t.Fatal(err)
	}
	const path = "devices/pci0000:16/0000:16:01.0/"
	want := []sysfs.PCIDevice{
		{
			Address:         "0000:17:00.0",
			Path:            path + "0000:17:00.0",
			Vendor:          0x15b3,
			Device:          0x1021,
			SubsystemVendor: 0x15b3,
			SubsystemDevice: 0x0041,
			Class:           0x020000,
			Driver:          "mlx5_core",
			NUMANode:        1,
			LocalCPUs:       "0-31,64-95",
			Link:            sysfs.PCILink{GigaTransfers: 16, Lanes: 8},
			LinkMax:         sysfs.PCILink{GigaTransfers: 32, Lanes: 16},
			SRIOV:           &sysfs.SRIOV{TotalVFs: 8, NumVFs: 2, DriversAutoprobe: true, VFs: []string{"0000:17:00.1", ""}},
			Auxiliary: []sysfs.AuxFunc{
				{Name: "mlx5_core.sf.4", Path: path + "0000:17:00.0/mlx5_core.sf.4", SFNum: 17},
				{Name: "mlx5_core.sf.10", Path: path + "0000:17:00.0/mlx5_core.sf.10", SFNum: 88},
			},
		},
		{
			Address:  "0000:17:00.1",
			Path:     path + "0000:17:00.1",
			Vendor:   0x15b3,
			Device:   0x101e,
			Class:    0x020000,
			NUMANode: -1,
			PhysFn:   "0000:17:00.0",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if len(asked) != 4 {
		t.Errorf("asked about classes %#x, want those of 4 functions", asked)
	}
}

func TestPCIDevicesNone(t *testing.T) {
	t.Parallel()
	got, err := kerneltest.TreeString(t, "").PCIDevices(func(uint32) bool { return true })
	if err != nil || len(got) != 0 {
		t.Errorf("%+v, %v; want none", got, err)
	}
}

// TestPCIDevicesBad: what one function lacks is no matter of the others.
func TestPCIDevicesBad(t *testing.T) {
	t.Parallel()
	got, err := kerneltest.TreeString(t, `
-- sys/bus/pci/devices/0000:01:00.0/{} --
class: 0x020000
vendor: mellanox
current_link_width: many
sriov_totalvfs: 4
sriov_numvfs: 70000
m.sf.1/sfnum: x
-- sys/bus/pci/devices/0000:02:00.0/{} --
class: strange
-- sys/bus/pci/devices/0000:03:00.0/{} --
class: 0x020700
vendor: 0x15b3
`).PCIDevices(func(uint32) bool { return true })
	for _, want := range []string{
		`0000:01:00.0/vendor: "mellanox", want 0x`, `current_link_width: "many", want`, `sriov_numvfs: "70000", want`,
		`m.sf.1/sfnum: "x", want`, `0000:02:00.0/class: "strange", want`,
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	want := []sysfs.PCIDevice{
		{
			Address: "0000:01:00.0", Path: "bus/pci/devices/0000:01:00.0", Class: 0x020000, NUMANode: -1,
			SRIOV: &sysfs.SRIOV{TotalVFs: 4},
		},
		{Address: "0000:03:00.0", Path: "bus/pci/devices/0000:03:00.0", Class: 0x020700, NUMANode: -1, Vendor: 0x15b3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

func TestPCIDeviceErrors(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/roce.txtar")
	for address, want := range map[string]error{
		"0000:99:00.0":       os.ErrNotExist,
		"0000:17:00.7":       os.ErrNotExist,
		"../../../../../etc": os.ErrInvalid,
	} {
		if _, err := fs.PCIDevice(address); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", address, err, want)
		}
	}
}

// TestPCIDevicesLive reads the functions of the running system.
func TestPCIDevicesLive(t *testing.T) {
	t.Parallel()
	var fs sysfs.FS
	if _, err := os.Stat(fs.Sys("bus/pci/devices")); err != nil {
		t.Skipf("needs a machine with PCI: %v", err)
	}
	devices, err := fs.PCIDevices(func(uint32) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		if d.Vendor == 0 || !strings.HasPrefix(d.Path, "devices/") || !strings.HasSuffix(d.Path, "/"+d.Address) {
			t.Errorf("%+v, want a vendor and a path that ends in the address", d)
		}
	}
}

func TestParsePCI(t *testing.T) {
	t.Parallel()
	checkParse(t, sysfs.ParsePCIID, []parseCase[uint16]{
		{"0x15b3", 0x15b3, true}, {"0x0000", 0, true}, {"0x10000", 0, false}, {"15b3", 0, false}, {"0xzz", 0, false}, {"", 0, false},
	})
	checkParse(t, sysfs.ParseClass, []parseCase[uint32]{
		{"0x020000", 0x020000, true}, {"0xffffff", 0xffffff, true}, {"0x1000000", 0, false}, {"0x", 0, false}, {"-0x1", 0, false},
	})
	checkParse(t, sysfs.ParseLinkSpeed, []parseCase[float64]{
		{"32.0 GT/s PCIe", 32, true},
		{"2.5 GT/s", 2.5, true},
		{"64.0 GT/s PCIe", 64, true},
		{"Unknown", 0, true},
		{"Unknown speed", 0, true},
		{"", 0, false},
		{"32", 0, false},
		{"x GT/s", 0, false},
	})
	checkParse(t, sysfs.ParseLinkWidth, []parseCase[int]{
		{"16", 16, true}, {"0", 0, true}, {"255", 0, true}, {"256", 0, false}, {"-1", 0, false}, {"", 0, false},
	})
	checkParse(t, sysfs.ParseVFs, []parseCase[int]{
		{"0", 0, true}, {"127", 127, true}, {"65535", 65535, true}, {"65536", 0, false}, {"-1", 0, false}, {"", 0, false},
	})
}

func TestIsSubfunction(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"mlx5_core.sf.4": true, "a.b.sf.0": true, "mlx5_core.rdma.0": false, "mlx5_core.sf.x": false,
		"mlx5_core.sf": false, ".sf.4": false, "sf.4": false, "msi_irqs": false, "": false,
	} {
		if got := sysfs.IsSubfunction(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

// FuzzParsePCI: each parser returns a value in its bounds or an error, and
// the value reads the same when written.
func FuzzParsePCI(f *testing.F) {
	for _, s := range []string{"0x15b3", "0x020000", "32.0 GT/s PCIe", "Unknown", "16", "255", "65535", "-1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkRoundTrip(t, sysfs.ParsePCIID, s, func(id uint16) string { return fmt.Sprintf("0x%04x", id) })
		checkRoundTrip(t, sysfs.ParseClass, s, func(class uint32) string { return fmt.Sprintf("0x%06x", class) })
		checkRoundTrip(t, sysfs.ParseLinkSpeed, s, func(speed float64) string { return fmt.Sprintf("%.400f GT/s PCIe", speed) })
		checkRoundTrip(t, sysfs.ParseLinkWidth, s, strconv.Itoa)
		checkRoundTrip(t, sysfs.ParseVFs, s, strconv.Itoa)
		if class, err := sysfs.ParseClass(s); err == nil && class > 0xffffff {
			t.Errorf("class %#x has more than 24 bits", class)
		}
	})
}

func checkRoundTrip[T comparable](t *testing.T, parse func(string) (T, error), s string, format func(T) string) {
	t.Helper()
	var zero T
	v, err := parse(s)
	if err != nil && v != zero {
		t.Errorf("%q: %v beside error %v", s, v, err)
	}
	if again, err := parse(format(v)); err != nil || again != v {
		t.Errorf("%q: %v, written and read again: %v, %v", s, v, again, err)
	}
}

// BenchmarkPCIDevice reads a PF with 16 VFs and two subfunctions.
func BenchmarkPCIDevice(b *testing.B) {
	var archive strings.Builder
	archive.WriteString(`
-- sys/bus/pci/devices/0000:17:00.0 -> ../../../devices/pci0000:16/0000:17:00.0 --
-- sys/devices/pci0000:16/0000:17:00.0/{} --
driver -> ../../../bus/pci/drivers/mlx5_core
class: 0x020000
vendor: 0x15b3
device: 0x1021
subsystem_vendor: 0x15b3
subsystem_device: 0x0041
numa_node: 1
local_cpulist: 0-31,64-95
current_link_speed: 32.0 GT/s PCIe
current_link_width: 16
max_link_speed: 32.0 GT/s PCIe
max_link_width: 16
sriov_totalvfs: 16
sriov_numvfs: 16
sriov_drivers_autoprobe: 1
mlx5_core.sf.4/sfnum: 17
mlx5_core.sf.5/sfnum: 18
`)
	links := []string{"driver"}
	for i := range 16 {
		fmt.Fprintf(&archive, "virtfn%d -> ../0000:17:01.%d\n", i, i)
		links = append(links, fmt.Sprintf("virtfn%d", i))
	}
	fs := kerneltest.TreeString(b, archive.String())
	device := attrs{dir: fs.Sys("bus/pci/devices/0000:17:00.0"), links: links, names: []string{
		"class", "vendor", "device", "subsystem_vendor", "subsystem_device", "numa_node", "local_cpulist",
		"current_link_speed", "current_link_width", "max_link_speed", "max_link_width",
		"sriov_totalvfs", "sriov_numvfs", "sriov_drivers_autoprobe", "mlx5_core.sf.4/sfnum", "mlx5_core.sf.5/sfnum",
	}}
	benchmark(b, []attrs{device}, func() error {
		_, err := fs.PCIDevice("0000:17:00.0")
		return err
	})
}
