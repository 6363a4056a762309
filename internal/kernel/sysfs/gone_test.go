package sysfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

// oneFunction is a function with an RDMA device of one port and a netdev.
const oneFunction = `
-- sys/devices/pci0000:16/0000:17:00.0/{} --
vendor: 0x15b3
class: 0x020000
-- sys/devices/pci0000:16/0000:17:00.0/infiniband/mlx5_0/{} --
device -> ../../../0000:17:00.0
node_type: 1: CA
-- sys/devices/pci0000:16/0000:17:00.0/infiniband/mlx5_0/ports/1/{} --
state: 4: ACTIVE
gids/0: fe80:0000:0000:0000:0e42:a1ff:fe65:1234
gid_attrs/types/0: RoCE v2
-- sys/devices/pci0000:16/0000:17:00.0/net/eth0/{} --
device -> ../../../0000:17:00.0
ifindex: 2
address: 0c:42:a1:65:12:34
-- sys/devices/pci0000:16/0000:17:00.0/infiniband_verbs/uverbs0/{} --
dev: 231:192
ibdev: mlx5_0
-- sys/class/infiniband/mlx5_0 -> ../../devices/pci0000:16/0000:17:00.0/infiniband/mlx5_0 --
-- sys/class/infiniband_verbs/uverbs0 -> ../../devices/pci0000:16/0000:17:00.0/infiniband_verbs/uverbs0 --
-- sys/class/net/eth0 -> ../../devices/pci0000:16/0000:17:00.0/net/eth0 --
-- sys/bus/pci/devices/0000:17:00.0 -> ../../../devices/pci0000:16/0000:17:00.0 --
`

// TestReadWhileReplaced has a device go at each moment of its reading, and come
// back at each later one: its directory with the link that leads to it, or the
// link alone. It must be read as it was or be gone.
func TestReadWhileReplaced(t *testing.T) {
	t.Parallel()
	devices := []struct {
		name string
		link string
		dir  string // below the function
		read func(sysfs.FS) (any, error)
	}{
		{"RDMA device", "class/infiniband/mlx5_0", "infiniband/mlx5_0", readIB},
		{"netdev", "class/net/eth0", "net/eth0", func(fs sysfs.FS) (any, error) { return fs.Netdev("eth0") }},
		{"function", "bus/pci/devices/0000:17:00.0", "", func(fs sysfs.FS) (any, error) { return fs.PCIDevice("0000:17:00.0") }},
		{"character device", "class/infiniband_verbs/uverbs0", "infiniband_verbs/uverbs0", readChar},
	}
	for _, d := range devices {
		for _, what := range []string{"link", "directory"} {
			t.Run(d.name+", "+what, func(t *testing.T) {
				t.Parallel()
				tree := newRestless(t)
				tree.parts = []string{tree.Sys(d.link)}
				if what == "directory" {
					tree.parts = append(tree.parts, tree.Sys("devices/pci0000:16/0000:17:00.0", d.dir))
				}
				want, last := tree.read(t, never, never, d.read)
				for goes := 1; goes <= last; goes++ {
					for comes := goes; comes <= last; comes++ {
						got, _ := tree.read(t, goes, comes, d.read)
						if diff := cmp.Diff(want, got); got != nil && diff != "" {
							t.Fatalf("gone from moment %d to %d of %d (-want +got):\n%s", goes, comes, last, diff)
						}
					}
				}
			})
		}
	}
}

// TestReadWhilePortGoes has a port go, as ports do before their device. Then the
// port must not be there, nor half of it.
func TestReadWhilePortGoes(t *testing.T) {
	t.Parallel()
	tree := newRestless(t)
	tree.parts = []string{tree.Sys("class/infiniband/mlx5_0/ports/1")}
	want, last := tree.read(t, never, never, readIB)
	for goes := 1; goes <= last; goes++ {
		got, _ := tree.read(t, goes, never, readIB)
		if d, ok := got.(sysfs.IBDevice); ok && len(d.Ports) > 0 && cmp.Diff(want, got) != "" {
			t.Fatalf("gone at moment %d of %d (-want +got):\n%s", goes, last, cmp.Diff(want, got))
		}
	}
}

func readIB(fs sysfs.FS) (any, error) { return fs.IBDevice("mlx5_0") }

func readChar(fs sysfs.FS) (any, error) {
	found, err := fs.CharDevices()
	if err == nil && len(found) == 0 {
		return nil, os.ErrNotExist
	}
	return found, err
}

// never is a moment that does not come.
const never = 0

// restless is a tree of which parts go and come.
type restless struct {
	sysfs.FS

	parts []string
	saved string // a copy of the tree
}

func newRestless(t *testing.T) *restless {
	t.Helper()
	return &restless{FS: kerneltest.TreeString(t, oneFunction), saved: kerneltest.TreeString(t, oneFunction).Path()}
}

// read reads while the parts go and come at two moments, counted from 1. It
// returns nil if the device is gone, and the number of moments.
func (r *restless) read(t *testing.T, goes, comes int, read func(sysfs.FS) (any, error)) (got any, moments int) {
	t.Helper()
	isAway := false
	got, err := read(r.Before(func(string) {
		moments++
		if moments == goes {
			isAway = true
			r.takeAway(t)
		}
		if moments == comes {
			isAway = false
			r.bringBack(t)
		}
	}))
	if isAway {
		r.bringBack(t)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, moments
	}
	if err != nil {
		t.Fatalf("gone from moment %d to %d: %v", goes, comes, err)
	}
	return got, moments
}

func (r *restless) takeAway(t *testing.T) {
	t.Helper()
	for _, name := range r.parts {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
}

// bringBack makes the parts anew.
func (r *restless) bringBack(t *testing.T) {
	t.Helper()
	for _, name := range slices.Backward(r.parts) {
		below, err := filepath.Rel(r.Path(), name)
		if err != nil {
			t.Fatal(err)
		}
		from := filepath.Join(r.saved, below)
		if target, errLink := os.Readlink(from); errLink == nil {
			err = os.Symlink(target, name)
		} else {
			err = os.CopyFS(name, os.DirFS(from))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
