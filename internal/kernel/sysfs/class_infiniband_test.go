package sysfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

func TestIBDevices(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
		want []sysfs.IBDevice
	}{
		{
			name: "RoCE, Soft-RoCE and a dangling link",
			file: "testdata/roce.txtar",
			want: []sysfs.IBDevice{
				{
					Name:         "mlx5_0",
					Path:         "devices/pci0000:16/0000:16:01.0/0000:17:00.0/infiniband/mlx5_0",
					DevicePath:   "devices/pci0000:16/0000:16:01.0/0000:17:00.0",
					NodeType:     "CA",
					NodeGUID:     "0c42:a103:0065:1234",
					SysImageGUID: "0c42:a103:0065:1234",
					Firmware:     "28.39.1002",
					BoardID:      "MT_0000000838",
					HCAType:      "MT4129",
					Ports: []sysfs.IBPort{{
						Number:      1,
						LinkLayer:   "Ethernet",
						State:       "ACTIVE",
						PhysState:   "LinkUp",
						Rate:        sysfs.Rate{Gigabits: 400, Lanes: 4, Speed: "NDR"},
						GIDTableLen: 12,
						GIDs: []sysfs.GID{
							{Index: 0, GID: "fe80:0000:0000:0000:0e42:a1ff:fe65:1234", Type: "IB/RoCE v1", Netdev: "enp23s0f0np0"},
							{Index: 1, GID: "fe80:0000:0000:0000:0e42:a1ff:fe65:1234", Type: "RoCE v2", Netdev: "enp23s0f0np0"},
							{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a00:0001", Type: "RoCE v2", Netdev: "bond0"},
							{Index: 10, GID: "0000:0000:0000:0000:0000:ffff:0a00:0002", Type: "RoCE v2"},
						},
					}},
				},
				{
					Name:     "rxe0",
					Path:     "devices/virtual/infiniband/rxe0",
					Parent:   "eth0.100",
					NodeType: "CA",
					NodeGUID: "5054:00ff:fe12:3456",
					Ports: []sysfs.IBPort{{
						Number:    1,
						LinkLayer: "Ethernet",
						State:     "DOWN",
						PhysState: "Disabled",
						Rate:      sysfs.Rate{Gigabits: 2.5, Lanes: 1, Speed: "SDR"},
					}},
				},
			},
		},
		{
			name: "InfiniBand",
			file: "testdata/infiniband.txtar",
			want: []sysfs.IBDevice{{
				Name:         "mlx5_2",
				Path:         "devices/pci0000:00/0000:05:00.0/infiniband/mlx5_2",
				DevicePath:   "devices/pci0000:00/0000:05:00.0",
				NodeType:     "CA",
				NodeGUID:     "b8ce:f603:00a1:0002",
				SysImageGUID: "b8ce:f603:00a1:0002",
				Firmware:     "20.31.1014",
				BoardID:      "MT_0000000224",
				HCAType:      "MT4123",
				Ports: []sysfs.IBPort{
					{
						Number:      1,
						LinkLayer:   "InfiniBand",
						State:       "ACTIVE",
						PhysState:   "LinkUp",
						Rate:        sysfs.Rate{Gigabits: 200, Lanes: 4, Speed: "HDR"},
						LID:         5,
						SMLID:       1,
						GIDTableLen: 2,
						GIDs:        []sysfs.GID{{GID: "fe80:0000:0000:0000:b8ce:f603:00a1:0002", Type: "IB/RoCE v1"}},
					},
					{
						Number:      2,
						LinkLayer:   "InfiniBand",
						State:       "DOWN",
						PhysState:   "Polling",
						Rate:        sysfs.Rate{Gigabits: 10, Lanes: 4, Speed: "SDR"},
						LID:         0xffff,
						GIDTableLen: 1,
						GIDs:        []sysfs.GID{{GID: "fe80:0000:0000:0000:b8ce:f603:00a1:0003", Type: "IB/RoCE v1"}},
					},
				},
			}},
		},
		{
			name: "no RDMA",
			file: "testdata/system.txtar",
			want: []sysfs.IBDevice{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := kerneltest.Tree(t, tt.file).IBDevices()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIBDeviceNames(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, `
-- sys/class/infiniband/mlx5_10/ --
-- sys/class/infiniband/mlx5_2 -> nowhere --
-- sys/class/infiniband/bnxt_re0/ --
-- sys/class/infiniband/a_file --
`)
	got, err := fs.IBDeviceNames()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bnxt_re0", "mlx5_2", "mlx5_10"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestIBDeviceErrors(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/roce.txtar")
	tests := []struct {
		name   string
		device string
		want   error
	}{
		{"missing", "mlx5_77", os.ErrNotExist},
		{"dangling link", "mlx5_9", os.ErrNotExist},
		{"no name", "", os.ErrInvalid},
		{"path", "../net/bond0", os.ErrInvalid},
		{"parent", "..", os.ErrInvalid},
		{"zero byte", "a\x00b", os.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := fs.IBDevice(tt.device); !errors.Is(err, tt.want) {
				t.Errorf("IBDevice: error %v, want %v", err, tt.want)
			}
			if _, _, err := fs.GIDs(tt.device, 1); !errors.Is(err, tt.want) {
				t.Errorf("GIDs: error %v, want %v", err, tt.want)
			}
		})
	}
}

// TestIBDeviceHostile: whatever stands in place of an attribute costs that
// attribute only.
func TestIBDeviceHostile(t *testing.T) {
	t.Parallel()
	const dir = "sys/class/infiniband/mlx5_0"
	tests := []struct {
		name    string
		attr    string
		put     func(name string) error
		wantErr string
	}{
		{"10 MiB", "fw_ver", file(strings.Repeat("x", 10<<20)), "fw_ver: more than 4096 bytes"},
		{"more than a page", "fw_ver", file(strings.Repeat("x", 4097)), "fw_ver: more than 4096 bytes"},
		{"directory", "fw_ver", mkdir, "fw_ver: is a directory"},
		{"FIFO", "fw_ver", mkfifo, ""},
		{"FIFO for a number", "ports/1/lid", mkfifo, `lid: "", want`},
		{"FIFO for a directory", "ports/1/gids", mkfifo, "gids: not a directory"},
		{"FIFO for a link", "device", mkfifo, ""},
		{"link to itself", "fw_ver", func(name string) error { return os.Symlink("fw_ver", name) }, "fw_ver: too many levels"},
		{"garbage for a rate", "ports/1/rate", file("\x00\xff\x1b[2J"), `rate: "\x00\xff\x1b[2J", want a rate`},
		{"garbage for a number", "ports/1/sm_lid", file("five"), `sm_lid: "five", want 0x`},
		{"junk port", "ports/x", mkdir, ""},
		{"file for a port", "ports/3", file(""), "ports/3: not a directory"},
		{"junk beside the GIDs", "ports/1/gids/-1", file("x"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fs := kerneltest.TreeString(t, "-- "+dir+"/{} --\nnode_guid: 1:2\nports/1/state: 4: ACTIVE\n-- sys/class/infiniband/mlx5_1/{} --\nfw_ver: 2\n")
			attr := fs.Path(dir, tt.attr)
			if err := os.MkdirAll(filepath.Dir(attr), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := tt.put(attr); err != nil {
				t.Fatal(err)
			}
			got, err := fs.IBDevices()
			if text := fmt.Sprint(err); !strings.Contains(text, tt.wantErr) || tt.wantErr == "" && err != nil {
				t.Errorf("error %v, want one with %q", err, tt.wantErr)
			}
			want := []sysfs.IBDevice{
				{Name: "mlx5_0", Path: dir[4:], NodeGUID: "1:2", Ports: []sysfs.IBPort{{Number: 1, State: "ACTIVE"}}},
				{Name: "mlx5_1", Path: "class/infiniband/mlx5_1", Firmware: "2"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIBDeviceBinary: text is passed on byte by byte.
func TestIBDeviceBinary(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "\x00", "\xff\xfe\n\n", strings.Repeat("\x80", 4096)} {
		fs := kerneltest.TreeString(t, "-- sys/class/infiniband/x/ --\n")
		if err := file(text)(fs.Sys("class/infiniband/x/fw_ver")); err != nil {
			t.Fatal(err)
		}
		dev, err := fs.IBDevice("x")
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSuffix(text, "\n"); dev.Firmware != want {
			t.Errorf("firmware %q, want %q", dev.Firmware, want)
		}
	}
}

func TestIBDeviceUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything; runs as any other user")
	}
	fs := kerneltest.Tree(t, "testdata/roce.txtar")
	if err := os.Chmod(fs.Sys("class/infiniband/mlx5_0/fw_ver"), 0); err != nil {
		t.Fatal(err)
	}
	got, err := fs.IBDevices()
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v, want os.ErrPermission", err)
	}
	if len(got) != 2 || got[0].BoardID == "" {
		t.Errorf("devices %+v, want two with all but the firmware", got)
	}
}

func TestIBDevicesMany(t *testing.T) {
	t.Parallel()
	const n = 1000
	var archive strings.Builder
	for i := range n {
		fmt.Fprintf(&archive, "-- sys/class/infiniband/mlx5_%d/{} --\nnode_type: 1: CA\nports/1/rate: 100 Gb/sec (4X EDR)\n", i)
	}
	got, err := kerneltest.TreeString(t, archive.String()).IBDevices()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != n {
		t.Fatalf("%d devices, want %d", len(got), n)
	}
	for i, dev := range got {
		if dev.Name != fmt.Sprintf("mlx5_%d", i) || len(dev.Ports) != 1 || dev.Ports[0].Rate.Gigabits != 100 {
			t.Fatalf("device %d: %+v", i, dev)
		}
	}
}

func TestGIDs(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/roce.txtar")
	gids, tableLen, err := fs.GIDs("mlx5_0", 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(gids) != 4 || gids[3].Index != 10 || tableLen != 12 {
		t.Errorf("%d entries %+v in a table of %d, want 4 to index 10 in one of 12", len(gids), gids, tableLen)
	}
	if _, _, err := fs.GIDs("mlx5_0", 2); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("port 2: error %v, want os.ErrNotExist", err)
	}
	if gids, tableLen, err := fs.GIDs("rxe0", 1); err != nil || gids != nil || tableLen != 0 {
		t.Errorf("port without a table: %v, %d, %v; want nothing", gids, tableLen, err)
	}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		in      string
		want    sysfs.Rate
		wantErr bool
	}{
		{"NDR", "400 Gb/sec (4X NDR)", sysfs.Rate{Gigabits: 400, Lanes: 4, Speed: "NDR"}, false},
		{"fraction", "2.5 Gb/sec (1X SDR)", sysfs.Rate{Gigabits: 2.5, Lanes: 1, Speed: "SDR"}, false},
		{"twelve lanes", "30 Gb/sec (12X SDR)", sysfs.Rate{Gigabits: 30, Lanes: 12, Speed: "SDR"}, false},
		{"a speed to come", "3200 Gb/sec (8X GDR)", sysfs.Rate{Gigabits: 3200, Lanes: 8, Speed: "GDR"}, false},
		{"no speed", "10 Gb/sec (4X)", sysfs.Rate{Gigabits: 10, Lanes: 4}, false},
		{"no lanes", "10 Gb/sec", sysfs.Rate{Gigabits: 10}, false},
		{"empty", "", sysfs.Rate{}, true},
		{"other unit", "10 Mb/sec", sysfs.Rate{}, true},
		{"no number", "x Gb/sec (4X NDR)", sysfs.Rate{}, true},
		{"infinite", "Inf Gb/sec (4X NDR)", sysfs.Rate{}, true},
		{"open", "10 Gb/sec (4X NDR", sysfs.Rate{}, true},
		{"lanes missing", "10 Gb/sec (X NDR)", sysfs.Rate{}, true},
		{"negative lanes", "10 Gb/sec (-4X NDR)", sysfs.Rate{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := sysfs.ParseRate(tt.in)
			if got != tt.want || (err != nil) != tt.wantErr {
				t.Errorf("%+v, %v; want %+v, error %t", got, err, tt.want, tt.wantErr)
			}
		})
	}
}

func TestParseLID(t *testing.T) {
	t.Parallel()
	checkParse(t, sysfs.ParseLID, []parseCase[uint32]{
		{"0", 0, true},
		{"0x0", 0, true},
		{"0x5", 5, true},
		{"0xffff", 0xffff, true},
		{"0xffffffff", 0xffffffff, true},
		{"0x100000000", 0, false},
		{"5", 0, false},
		{"0x", 0, false},
		{"0x1_0", 0, false},
		{"", 0, false},
	})
}

// FuzzParseRate: a rate or an error, and a rate reads the same when written.
func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)", "10 Gb/sec (4X)", "10 Gb/sec", "", "1e9 Gb/sec (4X NDR)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rate, err := sysfs.ParseRate(s)
		if err != nil {
			if rate != (sysfs.Rate{}) {
				t.Errorf("%+v beside error %v", rate, err)
			}
			return
		}
		if rate.Gigabits < 0 || rate.Lanes < 0 {
			t.Fatalf("%+v, want nothing negative", rate)
		}
		again, err := sysfs.ParseRate(formatRate(rate))
		if err != nil || again != rate {
			t.Errorf("%+v, written and read again: %+v, %v", rate, again, err)
		}
	})
}

func formatRate(r sysfs.Rate) string {
	speed := r.Speed
	if speed != "" {
		speed = " " + speed
	}
	return fmt.Sprintf("%.400f Gb/sec (%dX%s)", r.Gigabits, r.Lanes, speed)
}

// FuzzIsZeroGID: a GID is zero when each of its digits is.
func FuzzIsZeroGID(f *testing.F) {
	f.Add("0000:0000:0000:0000:0000:0000:0000:0000")
	f.Add("0000:0000:0000:0000:0000:ffff:0a00:0001")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.NewReplacer("0", "", ":", "").Replace(s) == ""
		if got := sysfs.IsZeroGID([]byte(s)); got != want {
			t.Errorf("%q: %t, want %t", s, got, want)
		}
	})
}

// FuzzParseLID: error or a number that reads the same when written.
func FuzzParseLID(f *testing.F) {
	f.Add("0")
	f.Add("0xffff")
	f.Fuzz(func(t *testing.T, s string) {
		lid, err := sysfs.ParseLID(s)
		if err != nil && lid != 0 {
			t.Errorf("%d beside error %v", lid, err)
		}
		if again, err := sysfs.ParseLID(fmt.Sprintf("0x%x", lid)); err != nil || again != lid {
			t.Errorf("%d, written and read again: %d, %v", lid, again, err)
		}
	})
}

// BenchmarkIBDevice reads a device with one port and 256 GIDs, 16 of them in
// use, as a mlx5 PF with some VLANs has.
func BenchmarkIBDevice(b *testing.B) {
	var archive strings.Builder
	archive.WriteString(`
-- sys/class/infiniband/mlx5_0 -> ../../devices/pci0000:16/0000:17:00.0/infiniband/mlx5_0 --
-- sys/devices/pci0000:16/0000:17:00.0/infiniband/mlx5_0/{} --
node_type: 1: CA
node_guid: 0c42:a103:0065:1234
sys_image_guid: 0c42:a103:0065:1234
fw_ver: 28.39.1002
board_id: MT_0000000838
hca_type: MT4129
device -> ../../../0000:17:00.0
ports/1/link_layer: Ethernet
ports/1/state: 4: ACTIVE
ports/1/phys_state: 5: LinkUp
ports/1/rate: 400 Gb/sec (4X NDR)
ports/1/lid: 0x0
ports/1/sm_lid: 0x0
`)
	device := attrs{names: []string{"node_type", "node_guid", "sys_image_guid", "fw_ver", "board_id", "hca_type"}, links: []string{"device"}}
	port := attrs{names: []string{"link_layer", "state", "phys_state", "rate", "lid", "sm_lid"}}
	var table attrs
	for i := range 256 {
		gid := "0000:0000:0000:0000:0000:0000:0000:0000"
		if i < 16 {
			gid = fmt.Sprintf("0000:0000:0000:0000:0000:ffff:0a00:00%02x", i+1)
			fmt.Fprintf(&archive, "ports/1/gid_attrs/types/%d: RoCE v2\nports/1/gid_attrs/ndevs/%d: eth0\n", i, i)
			port.names = append(port.names, fmt.Sprintf("gid_attrs/types/%d", i), fmt.Sprintf("gid_attrs/ndevs/%d", i))
		}
		fmt.Fprintf(&archive, "ports/1/gids/%d: %s\n", i, gid)
		table.names = append(table.names, strconv.Itoa(i))
	}
	fs := kerneltest.TreeString(b, archive.String())
	device.dir = fs.Sys("class/infiniband/mlx5_0")
	port.dir = filepath.Join(device.dir, "ports/1")
	table.dir = filepath.Join(port.dir, "gids")
	benchmark(b, []attrs{device, port, table}, func() error {
		_, err := fs.IBDevice("mlx5_0")
		return err
	})
}

// parseCase is a value of an attribute and what it means; where it is not ok,
// it is an error.
type parseCase[T comparable] struct {
	in   string
	want T
	ok   bool
}

func checkParse[T comparable](t *testing.T, parse func(string) (T, error), cases []parseCase[T]) {
	t.Helper()
	for _, c := range cases {
		got, err := parse(c.in)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%q: %v, %v; want %v, ok %t", c.in, got, err, c.want, c.ok)
		}
	}
}

func file(content string) func(string) error {
	return func(name string) error { return os.WriteFile(name, []byte(content), 0o600) }
}

func mkdir(name string) error { return os.Mkdir(name, 0o700) }

func mkfifo(name string) error { return unix.Mkfifo(filepath.Clean(name), 0o600) }
