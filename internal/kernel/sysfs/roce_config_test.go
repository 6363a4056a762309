package sysfs_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

const roceTree = `
-- sys/class/infiniband/mlx5_0/tc/1/traffic_class --
Global tclass=106
-- sys/class/infiniband/mlx5_1/tc/1/traffic_class --
src_addr=192.0.2.1, tclass=104
-- sys/kernel/config/rdma_cm/mlx5_0/ports/1/{} --
default_roce_mode: RoCE v2
default_roce_tos: 106
-- sys/class/net/eth0/{} --
qos/trust: dscp
ecn/roce_np/enable/0: 0
ecn/roce_np/enable/3: 1
ecn/roce_np/enable/7: 1
ecn/roce_rp/enable/0: 0
ecn/roce_rp/enable/3: maybe
ecn/roce_rp/enable/4: 1
-- sys/class/net/eth1/{} --
mtu: 1500
`

func TestRoCEConfig(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, roceTree)
	tests := []struct {
		name   string
		device string
		port   int
		netdev string
		want   sysfs.RoCEConfig
		err    string
		is     error
	}{
		{
			name: "all, one file of which is wrong", device: "mlx5_0", port: 1, netdev: "eth0",
			want: sysfs.RoCEConfig{
				TrafficClass: new(106), Trust: "dscp", NotifyECN: new(uint8(0x88)), ReactECN: new(uint8(0x10)),
				DefaultMode: "RoCE v2", DefaultTOS: new(106),
			},
			err: `ecn/roce_rp/enable/3: "maybe", want 0 or 1`,
		},
		{
			name: "no netdev", device: "mlx5_0", port: 1,
			want: sysfs.RoCEConfig{TrafficClass: new(106), DefaultMode: "RoCE v2", DefaultTOS: new(106)},
		},
		{name: "no class for all connections, and no directory in configfs", device: "mlx5_1", port: 1, netdev: "eth1"},
		{name: "another port", device: "mlx5_0", port: 2},
		{name: "neither there", device: "mlx5_9", port: 1, netdev: "eth9"},
		{name: "no name of a device", device: "../net", port: 1, err: "want the name of one file", is: os.ErrInvalid},
		{
			name: "no name of a netdev", device: "mlx5_0", port: 1, netdev: "..",
			want: sysfs.RoCEConfig{TrafficClass: new(106), DefaultMode: "RoCE v2", DefaultTOS: new(106)},
			err:  "want the name of one file", is: os.ErrInvalid,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := fs.RoCEConfig(tt.device, tt.port, tt.netdev)
			if diff := cmp.Diff(tt.want, got); diff != "" {
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

// TestRoCEConfigMakesNothing: a directory in configfs would change how rdma_cm
// connects.
func TestRoCEConfigMakesNothing(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, roceTree)
	if _, err := fs.RoCEConfig("mlx5_1", 1, "eth1"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(fs.Path("sys/kernel/config/rdma_cm"))
	if err != nil || len(entries) != 1 {
		t.Errorf("entries %v, error %v, want mlx5_0 alone", entries, err)
	}
}

// FuzzParseTrafficClass: error, nothing, or a class that reads the same when
// written.
func FuzzParseTrafficClass(f *testing.F) {
	for _, s := range []string{"Global tclass=106", "tclass=1\nGlobal tclass=0\n", "Global tclass=256", "Global tclass=-1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		class, err := sysfs.ParseTrafficClass(s)
		switch {
		case err != nil && class != nil:
			t.Errorf("%d beside error %v", *class, err)
		case err == nil && class == nil && strings.HasPrefix(s, "Global tclass="):
			t.Errorf("%q is nothing", s)
		case class != nil:
			again, err := sysfs.ParseTrafficClass("Global tclass=" + strconv.Itoa(*class))
			if err != nil || *again != *class || *class < 0 || *class > 255 {
				t.Errorf("%q: %d, then error %v", s, *class, err)
			}
		}
	})
}
