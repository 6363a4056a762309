package counters

import (
	"path/filepath"
	"strings"
	"testing"

	"railhead/internal/golden"
	"railhead/internal/inventory"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
)

// TestDrivers reads a device of each driver, whose kernel has all counters that
// the tables know, and holds what comes out against a golden file.
func TestDrivers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, module string
		kind         inventory.Kind
		linkLayer    string
	}{
		{"mlx5-roce-pf", "mlx5_core", inventory.PF, inventory.Ethernet},
		{"mlx5-roce-vf", "mlx5_core", inventory.VF, inventory.Ethernet},
		{"mlx5-ib-pf", "mlx5_core", inventory.PF, inventory.InfiniBand},
		{"mlx4-ib", "mlx4_core", inventory.PF, inventory.InfiniBand},
		{"bnxt", "bnxt_en", inventory.PF, inventory.Ethernet},
		{"irdma", "ice", inventory.PF, inventory.Ethernet},
		{"efa", "efa", inventory.PF, "Unknown"},
		{"mana", "mana", inventory.VF, inventory.Ethernet},
		{"erdma", "erdma", inventory.VF, inventory.Ethernet},
		{"ionic", "ionic", inventory.PF, inventory.Ethernet},
		{"hns", "hns3", inventory.PF, inventory.Ethernet},
		{"rxe", "", inventory.Virtual, inventory.Ethernet},
		{"unknown", "qede", inventory.PF, inventory.Ethernet},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, test.module, test.kind, test.linkLayer)
			r.equip()
			reader := NewReader(&r.device)
			got := strings.Join(lines(r.read(reader, r.access())), "\n") + "\n"
			golden.Equal(t, filepath.Join("testdata", "golden", test.name+".txt"), got)
			if unknown := reader.Unknown(); len(unknown) > 0 {
				t.Errorf("unknown counters: %q", unknown)
			}
			expectDistinct(t, strings.Split(got, "\n"))
		})
	}
}

// equip gives the rig what is not of its driver alone.
func (r *rig) equip() {
	nic := r.facts.NICs[rigLink]
	nic.PFC = pfc
	nic.Standard = []ethtool.StandardStat{standardStat()}
	nic.Pause = &ethtool.Pause{}
	nic.PauseStats = func() ethtool.PauseStats {
		return ethtool.PauseStats{RxFrames: new(uint64(6)), TxFrames: new(uint64(7))}
	}
	nic.FEC = &ethtool.FEC{Modes: []string{"rs"}, Active: "rs"}
	nic.FECStats = func() ethtool.FECStats {
		return ethtool.FECStats{CorrectedBlocks: new(uint64(8)), UncorrectableBlocks: new(uint64(9))}
	}
	r.write("class/infiniband/dev0/tc/1/traffic_class", "Global tclass=106")
	r.write("class/net/eth0/qos/trust", "dscp")
	r.write("class/net/eth0/ecn/roce_np/enable/3", "1")
	r.kernel.Change(func(f *fakekernel.Facts) { f.Devlink = []fakekernel.Reporter{vnicReporter()} })
}

// expectDistinct wants no series twice.
func expectDistinct(t *testing.T, lines []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, l := range lines {
		series, _, _ := strings.Cut(l, "} ")
		if seen[series] && series != "" {
			t.Errorf("%s} comes twice", series)
		}
		seen[series] = true
	}
}
