package sysfs_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

const counterTree = `
-- sys/class/infiniband/mlx5_0 -> ../../devices/infiniband/mlx5_0 --
-- sys/devices/infiniband/mlx5_0/{} --
hw_counters/lifespan: 10
hw_counters/cq_overflow: 3
ports/1/counters/port_xmit_data: 18446744073709551615
ports/1/counters/port_rcv_data: 0
ports/1/counters/symbol_error: 65535
ports/1/counters/VL15_dropped: N/A (no PMA)
ports/1/hw_counters/lifespan: 10
ports/1/hw_counters/out_of_buffer: 7
ports/1/cm_tx_msgs/req: 21
ports/1/cm_rx_duplicates/rep: 1
ports/2/state: 1: DOWN
`

// values are all counters of directories, as text.
func values(t *testing.T, fs sysfs.FS, dirs []*sysfs.CounterDir) []string {
	t.Helper()
	var found []string
	for _, d := range dirs {
		dst := make([]sysfs.CounterValue, len(d.Files))
		if err := d.Read(fs, nil, dst); err != nil {
			t.Fatal(err)
		}
		for i, v := range dst {
			text := d.Name + "/" + d.Files[i] + " absent"
			if v.Present {
				text = fmt.Sprintf("%s/%s %d", d.Name, d.Files[i], v.Value)
			}
			found = append(found, text)
		}
	}
	return found
}

func TestCounters(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, counterTree)
	tests := []struct {
		name string
		list func() ([]*sysfs.CounterDir, error)
		want []string
		err  error
	}{
		{
			name: "port",
			list: func() ([]*sysfs.CounterDir, error) { return fs.PortCounters("mlx5_0", 1) },
			want: []string{
				"counters/VL15_dropped absent", "counters/port_rcv_data 0", "counters/port_xmit_data 18446744073709551615",
				"counters/symbol_error 65535", "hw_counters/out_of_buffer 7", "cm_tx_msgs/req 21", "cm_rx_duplicates/rep 1",
			},
		},
		{name: "port without counters", list: func() ([]*sysfs.CounterDir, error) { return fs.PortCounters("mlx5_0", 2) }},
		{name: "no such port", list: func() ([]*sysfs.CounterDir, error) { return fs.PortCounters("mlx5_0", 3) }, err: os.ErrNotExist},
		{name: "device", list: func() ([]*sysfs.CounterDir, error) { return fs.DeviceCounters("mlx5_0") }, want: []string{"hw_counters/cq_overflow 3"}},
		{name: "no such device", list: func() ([]*sysfs.CounterDir, error) { return fs.DeviceCounters("mlx5_1") }, err: os.ErrNotExist},
		{name: "no name", list: func() ([]*sysfs.CounterDir, error) { return fs.PortCounters("..", 1) }, err: os.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dirs, err := tt.list()
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, values(t, fs, dirs), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// countersDir returns the first directory of counters of a tree of its own.
func countersDir(t *testing.T) (fs sysfs.FS, d *sysfs.CounterDir, path string) {
	t.Helper()
	fs = kerneltest.TreeString(t, counterTree)
	dirs, err := fs.PortCounters("mlx5_0", 1)
	if err != nil {
		t.Fatal(err)
	}
	return fs, dirs[0], fs.Sys("class/infiniband/mlx5_0/ports/1/counters")
}

func TestCountersSome(t *testing.T) {
	t.Parallel()
	fs, d, _ := countersDir(t)
	dst := []sysfs.CounterValue{{1, true}, {2, true}, {3, true}, {4, true}}
	if err := d.Read(fs, []int{3, 1}, dst); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]sysfs.CounterValue{{}, {0, true}, {}, {65535, true}}, dst); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := d.Read(fs, []int{}, dst); err != nil || dst[1].Present {
		t.Errorf("none: read %v, error %v", dst, err)
	}
}

// TestCountersOneBad: a file that is gone has no value, one that cannot be read
// is an error, and neither hides the others.
func TestCountersOneBad(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		damage func(file string) error
		err    string
		is     error
	}{
		{name: "gone", damage: func(string) error { return nil }},
		{name: "no device behind it", damage: listen},
		{name: "says nothing now", damage: silent, err: "resource temporarily unavailable", is: unix.EAGAIN},
		{name: "directory", damage: func(file string) error { return os.Mkdir(file, 0o700) }, err: "is a directory", is: unix.EISDIR},
		{name: "word", damage: write("many\n"), err: `port_xmit_data: "many", want a decimal number`},
		{name: "empty", damage: write(""), err: `port_xmit_data: "", want a decimal number`},
		{name: "too many digits", damage: write("18446744073709551616\n"), err: "want a decimal number of 64 bits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fs, d, path := countersDir(t)
			file := filepath.Join(path, "port_xmit_data")
			if err := errors.Join(os.Remove(file), tt.damage(file)); err != nil {
				t.Fatal(err)
			}
			dst := make([]sysfs.CounterValue, len(d.Files))
			err := d.Read(fs, nil, dst)
			if diff := cmp.Diff([]sysfs.CounterValue{{}, {0, true}, {}, {65535, true}}, dst); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %v", err, tt.is)
			}
		})
	}
}

// listen makes a socket, which the kernel opens with ENXIO.
func listen(file string) error { return unix.Mknod(file, unix.S_IFSOCK|0o600, 0) }

// silent makes a FIFO whose writer, which stays open, says nothing.
func silent(file string) error {
	if err := mkfifo(file); err != nil {
		return err
	}
	_, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
	return err
}

func write(text string) func(string) error {
	return func(file string) error { return os.WriteFile(file, []byte(text), 0o600) }
}

// TestCountersElsewhere reads the same directory through another view of sysfs,
// as it is done for a device in another namespace, and after its end.
func TestCountersElsewhere(t *testing.T) {
	t.Parallel()
	fs, d, path := countersDir(t)
	other := kerneltest.TreeString(t, strings.ReplaceAll(counterTree, "65535", "1"))
	dst := make([]sysfs.CounterValue, len(d.Files))
	for _, tt := range []struct {
		fs   sysfs.FS
		want uint64
	}{{fs, 65535}, {fs.WithSys(other.Sys()), 1}, {fs, 65535}} {
		if err := d.Read(tt.fs, nil, dst); err != nil || dst[3].Value != tt.want {
			t.Errorf("read %v, error %v, want %d", dst[3], err, tt.want)
		}
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := d.Read(fs, nil, dst); !errors.Is(err, os.ErrNotExist) || dst[3].Present {
		t.Errorf("gone: read %v, error %v, want os.ErrNotExist", dst[3], err)
	}
}

func TestCountersLeaveNothingOpen(t *testing.T) {
	fs, d, path := countersDir(t)
	if err := os.Remove(filepath.Join(path, "port_rcv_data")); err != nil {
		t.Fatal(err)
	}
	dst := make([]sysfs.CounterValue, len(d.Files))
	before := openFiles(t)
	for range 3 {
		if err := d.Read(fs, nil, dst); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.PortCounters("mlx5_0", 1); err != nil {
			t.Fatal(err)
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files open, want %d", after, before)
	}
}

func TestCountersAllocateNothing(t *testing.T) {
	fs, d, _ := countersDir(t)
	dst := make([]sysfs.CounterValue, len(d.Files))
	indexes := []int{0, 1, 2, 3}
	allocated := testing.AllocsPerRun(100, func() {
		if err := d.Read(fs, indexes, dst); err != nil {
			t.Fatal(err)
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations, want none", allocated)
	}
}

// FuzzParseCounter: error, or the number that strconv finds too.
func FuzzParseCounter(f *testing.F) {
	for _, s := range []string{"0\n", "18446744073709551615\n", "18446744073709551616", "N/A (no PMA)\n", "", "-1", "1 2", "0x1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := sysfs.ParseCounter([]byte(s))
		digits := strings.TrimSuffix(s, "\n")
		want, wrong := strconv.ParseUint(digits, 10, 64)
		switch {
		case digits == "N/A (no PMA)":
			if err != nil || got.Present {
				t.Errorf("%v, error %v, want no value", got, err)
			}
		case (err != nil) != (wrong != nil):
			t.Errorf("%q: error %v, want that of strconv: %v", s, err, wrong)
		case err == nil && got != sysfs.CounterValue{Value: want, Present: true}:
			t.Errorf("%q: %v, want %d", s, got, want)
		case err != nil && got != sysfs.CounterValue{}:
			t.Errorf("%q: %v beside error %v", s, got, err)
		}
	})
}

// BenchmarkCounters reads the 21 files that mlx5 has in "counters", from memory.
func BenchmarkCounters(b *testing.B) {
	var tree strings.Builder
	tree.WriteString("-- sys/class/infiniband/mlx5_0/ports/1/counters/{} --\n")
	for i := range 21 {
		fmt.Fprintf(&tree, "counter_%d: %d\n", i, uint64(math.MaxUint64)-uint64(i))
	}
	fs := kerneltest.TreeString(b, tree.String())
	dirs, err := fs.PortCounters("mlx5_0", 1)
	if err != nil {
		b.Fatal(err)
	}
	d, dst := dirs[0], make([]sysfs.CounterValue, 21)
	table := attrs{dir: fs.Sys("class/infiniband/mlx5_0/ports/1/counters"), names: d.Files}
	benchmark(b, []attrs{table}, func() error { return d.Read(fs, nil, dst) })
}
