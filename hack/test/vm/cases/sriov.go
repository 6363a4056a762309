package cases

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// pciDevices is where sysfs has PCI devices by address.
const pciDevices = "/sys/bus/pci/devices"

// PCIPath is a file of a PCI device in sysfs.
func PCIPath(address, file string) string { return filepath.Join(pciDevices, address, file) }

// PFs are the PCI addresses of the machine's SR-IOV cards, in the order of their NUMA nodes.
func PFs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(PCIPath("*", "sriov_totalvfs"))
	if err != nil {
		t.Fatal(err)
	}
	addresses := make([]string, len(files))
	for i, file := range files {
		addresses[i] = filepath.Base(filepath.Dir(file))
	}
	return addresses
}

// VF is a virtual function.
type VF struct {
	// Address is its PCI address.
	Address string
	// Netdev is the name of its network device.
	Netdev string
}

// AddVFs makes n virtual functions of a card and waits for their network devices; they go away with the test. The card
// itself is set up: its functions have no carrier otherwise.
func AddVFs(t *testing.T, pf string, n int) []VF {
	t.Helper()
	Run(t, "ip", "link", "set", NetdevOf(t, pf), "up")
	WriteFile(t, PCIPath(pf, "sriov_numvfs"), strconv.Itoa(n))
	t.Cleanup(func() { WriteFile(t, PCIPath(pf, "sriov_numvfs"), "0") })
	vfs := make([]VF, n)
	for i := range vfs {
		target, err := os.Readlink(PCIPath(pf, "virtfn"+strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		vfs[i].Address = filepath.Base(target)
		Eventually(t, func() string {
			vfs[i].Netdev = NetdevOf(t, vfs[i].Address)
			if vfs[i].Netdev == "" {
				return "network device of virtual function " + vfs[i].Address
			}
			return ""
		})
	}
	return vfs
}

// NetdevOf is the network device of a PCI device that the host namespace sees, or empty.
func NetdevOf(t *testing.T, address string) string {
	t.Helper()
	return onlyEntry(t, PCIPath(address, "net"))
}

// RDMADeviceOf is the RDMA device of a PCI device that the host namespace sees, or empty.
func RDMADeviceOf(t *testing.T, address string) string {
	t.Helper()
	return onlyEntry(t, PCIPath(address, "infiniband"))
}

// onlyEntry is the name of a directory's entry, or empty when there is none.
func onlyEntry(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		return ""
	}
	return entries[0].Name()
}
