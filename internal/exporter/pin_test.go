package exporter

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"railhead/internal/counters"
	"railhead/internal/inventory"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// TestNamespaceEnds samples a device in a network namespace of the running
// kernel: after a sample nothing of this process leads there, and the namespace
// can end at once; the veth that is in it takes its peer here with it.
func TestNamespaceEnds(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "host0", "pod0")
		file := kerneltest.NewNetNS(t)
		kerneltest.MoveLink(t, "pod0", file)
		path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd())
		id, err := netns.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		cookie := checkedCookie(t, path, id, int(file.Fd()))
		e, s := exporterOfPod(t, &inventory.NetNS{ID: id, Path: path})
		for range 3 {
			e.sample(t.Context(), s, time.Now(), []counters.Tier{counters.Traffic, counters.Errors, counters.Slow})
			if left := leadingTo(t, id, cookie); !slices.Equal(left, []int{int(file.Fd())}) {
				t.Errorf("descriptors %v lead to the pod's namespace after a sample, want that of the test alone, %d", left, file.Fd())
			}
		}
		if len(e.nics) != 1 || e.nics[0].list()[0].reader.Asks("ethtool", counters.Traffic) == false {
			t.Fatal("the device is not read")
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		kerneltest.AwaitNoLink(t, "host0")
	})
}

// exporterOfPod is an exporter, and the snapshot of a VF that a pod has.
func exporterOfPod(t *testing.T, where *inventory.NetNS) (*Exporter, *inventory.Snapshot) {
	t.Helper()
	index := uint32(1 << 20)
	s := &inventory.Snapshot{Devices: []inventory.Device{{
		ID: "0000:17:00.1", Kind: inventory.VF, PCI: &inventory.PCI{Address: "0000:17:00.1", Driver: "mlx5_core"},
		RDMA: &inventory.RDMA{
			Name: "mlx5_1", Index: &index, NetNS: where,
			Ports: []inventory.Port{{Number: 1, LinkLayer: inventory.Ethernet, Netdev: "pod0"}},
		},
		Netdevs: []inventory.Netdev{{Name: "pod0", Index: 2, NetNS: where}},
	}}}
	e, err := New(Config{Node: node.Running(sysfs.FS{}), Intervals: DefaultIntervals()})
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

// checkedCookie returns the number by which the kernel tells of a socket in
// which namespace it is. It checks that one there would be found.
func checkedCookie(t *testing.T, path string, id netns.ID, own int) uint64 {
	t.Helper()
	ns, err := netns.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	socket := -1
	err = ns.Do(func() (err error) {
		socket, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		return err
	})
	if err := ns.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cookie, err := unix.GetsockoptUint64(socket, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		t.Skipf("a socket does not tell its namespace before Linux 5.14: %v", err)
	}
	if got := leadingTo(t, id, cookie); !slices.Contains(got, socket) || !slices.Contains(got, own) || len(got) != 2 {
		t.Errorf("descriptors %v lead to the namespace, want %d and the socket %d", got, own, socket)
	}
	if err := unix.Close(socket); err != nil {
		t.Error(err)
	}
	return cookie
}

// leadingTo are the descriptors of this process that keep a network namespace
// alive: those of the namespace itself, and of sockets in it.
func leadingTo(t *testing.T, id netns.ID, cookie uint64) (leading []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		isIt := unix.Fstat(fd, &st) == nil && netns.ID{Dev: st.Dev, Ino: st.Ino} == id
		got, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
		if isIt || err == nil && got == cookie {
			leading = append(leading, fd)
		}
	}
	return leading
}
