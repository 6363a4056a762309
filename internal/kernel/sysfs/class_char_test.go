package sysfs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

func TestCharDevices(t *testing.T) {
	t.Parallel()
	got, err := kerneltest.Tree(t, "testdata/roce.txtar").CharDevices()
	if err != nil {
		t.Fatal(err)
	}
	want := []sysfs.CharDevice{
		{Name: "uverbs0", Class: "uverbs", IBDev: "mlx5_0", Major: 231, Minor: 192, Exists: true},
		{Name: "uverbs10", Class: "uverbs", IBDev: "rxe0", Major: 231, Minor: 202},
		{Name: "issm0", Class: "issm", IBDev: "mlx5_0", Port: 1, Major: 231, Minor: 64},
		{Name: "umad0", Class: "umad", IBDev: "mlx5_0", Port: 1, Major: 231, Exists: true},
		{Name: "rdma_cm", Class: "rdma_cm", Major: 10, Minor: 58, Exists: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

func TestCharDevicesNone(t *testing.T) {
	t.Parallel()
	got, err := kerneltest.TreeString(t, "").CharDevices()
	if err != nil || len(got) != 0 {
		t.Errorf("%+v, %v; want none", got, err)
	}
}

func TestCharDevicesBad(t *testing.T) {
	t.Parallel()
	got, err := kerneltest.TreeString(t, `
-- sys/class/infiniband_verbs/uverbs0/{} --
dev: 231
ibdev: mlx5_0
-- sys/class/infiniband_verbs/uverbs1/{} --
dev: 231:193
ibdev: mlx5_1
-- sys/class/infiniband_mad --
a file
`).CharDevices()
	for _, want := range []string{`uverbs0/dev: "231", want`, "infiniband_mad: not a directory"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	want := []sysfs.CharDevice{
		{Name: "uverbs0", Class: "uverbs", IBDev: "mlx5_0"},
		{Name: "uverbs1", Class: "uverbs", IBDev: "mlx5_1", Major: 231, Minor: 193},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

func TestCharClass(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"uverbs0": "uverbs", "umad12": "umad", "issm3": "issm", "rdma_cm": "rdma_cm",
		"abi_version": "", "uverbs": "", "uverbs-1": "", "uverbs01": "", "fuse": "", "rdma_cm0": "", "": "",
	} {
		if got := sysfs.CharClass(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// FuzzParseDev: a number or an error, and a number reads the same when
// written.
func FuzzParseDev(f *testing.F) {
	for _, s := range []string{"231:192", "10:58", ":", "1:", "231", "4294967296:0", "-1:0", "1:2:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		major, minor, err := sysfs.ParseDev(s)
		if err != nil && (major != 0 || minor != 0) {
			t.Errorf("%d:%d beside error %v", major, minor, err)
		}
		major2, minor2, err := sysfs.ParseDev(fmt.Sprintf("%d:%d", major, minor))
		if err != nil || major2 != major || minor2 != minor {
			t.Errorf("%d:%d, written and read again: %d:%d, %v", major, minor, major2, minor2, err)
		}
	})
}
