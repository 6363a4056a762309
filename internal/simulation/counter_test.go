package simulation

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// files returns the counters of a function that are files, by their name below
// the device.
func (r *running) fileCounters(id string) map[string]uint64 {
	r.tb.Helper()
	f := r.function(id)
	values := map[string]uint64{}
	for dir, counters := range map[string][]counter{"ports/1/counters/": f.pma, "ports/1/": f.cm, "hw_counters/": f.whole} {
		for _, c := range counters {
			text, err := os.ReadFile(f.place.tree.path(filepath.Join(f.rdmaDir(), dir, c.name)))
			if err != nil {
				r.tb.Fatal(err)
			}
			if values[c.name], err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
				r.tb.Fatal(err)
			}
		}
	}
	return values
}

// TestCountersGrow checks that every counter grows or stays, but for those that
// begin anew at their width, and that none grows beyond it.
func TestCountersGrow(t *testing.T) {
	t.Parallel()
	for _, file := range scenarioFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			r := beginFile(t, file)
			last := map[string]uint64{}
			for range 30 {
				for _, f := range r.machine.functions() {
					for i, counters := range [][]counter{f.hardware, f.statistics, f.pma, f.cm, f.whole} {
						now := make([]uint64, len(counters))
						f.card.values(f, counters, r.machine.moment(), now)
						for j, c := range counters {
							key := fmt.Sprint(f.id, " ", i, " ", c.name)
							c.checkStep(t, key, last[key], now[j])
							last[key] = now[j]
						}
					}
				}
				r.pass(17 * time.Second)
			}
		})
	}
}

// checkStep checks two values of a counter, one after the other.
func (c *counter) checkStep(t *testing.T, name string, before, after uint64) {
	t.Helper()
	if c.bits < 64 && after >= 1<<c.bits {
		t.Errorf("%s is %d, in %d bits", name, after, c.bits)
	}
	isAnew := c.bits < 64 && !c.saturates && before > 1<<(c.bits-1) && after < 1<<(c.bits-1)
	if after < before && !isAnew && !isLevel(c.name) {
		t.Errorf("%s fell from %d to %d", name, before, after)
	}
}

// isLevel tells whether a counter shows what is, not what was.
func isLevel(name string) bool {
	return name == "outbound_pci_stalled_rd" || name == "outbound_pci_stalled_wr" || strings.HasPrefix(name, "active_")
}

// TestCountersAgree checks what must be the same or near each other whoever
// counts it.
func TestCountersAgree(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/healthy.yaml")
	r.pass(10 * time.Minute)
	var rx, tx, rxPackets uint64
	for _, id := range []string{"mlx5_0", "mlx5_0/0", "mlx5_0/1"} {
		netdev, port, requests := r.driverStatistics(id), r.fileCounters(id), r.statistics(id)
		if 4*port["port_xmit_data"] != netdev["tx_vport_rdma_unicast_bytes"] || 4*port["port_rcv_data"] != netdev["rx_vport_rdma_unicast_bytes"] {
			t.Errorf("%s: words of the port are not the bytes of the function: %v, %v", id, port, netdev)
		}
		if netdev["rx_vport_rdma_unicast_bytes"] == 0 || requests["rx_write_requests"] == 0 {
			t.Errorf("%s: nothing came", id)
		}
		size := netdev["rx_vport_rdma_unicast_bytes"] / netdev["rx_vport_rdma_unicast_packets"]
		if size < 1000 || size > 4096 {
			t.Errorf("%s: packets of %d bytes on average", id, size)
		}
		rx += netdev["rx_vport_rdma_unicast_bytes"]
		tx += netdev["tx_vport_rdma_unicast_bytes"]
		rxPackets += netdev["rx_vport_rdma_unicast_packets"]
	}
	port := r.driverStatistics("mlx5_0")
	if got, want := port["rx_prio3_bytes"], rx+headers*rxPackets; got != want {
		t.Errorf("rx_prio3_bytes is %d, and all functions make %d", got, want)
	}
	if port["rx_prio3_packets"] != rxPackets {
		t.Errorf("rx_prio3_packets is %d, and all functions make %d", port["rx_prio3_packets"], rxPackets)
	}
	if got, want := port["rx_bytes_phy"], port["rx_prio0_bytes"]+port["rx_prio3_bytes"]; got != want {
		t.Errorf("rx_bytes_phy is %d, and all priorities make %d", got, want)
	}
	if port["tx_bytes_phy"] < tx {
		t.Errorf("tx_bytes_phy is %d, less than %d of all functions", port["tx_bytes_phy"], tx)
	}
}

// TestCountersOfVF checks that a VF does not see the port.
func TestCountersOfVF(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/healthy.yaml")
	for _, values := range []map[string]uint64{r.statistics("mlx5_0/0"), r.driverStatistics("mlx5_0/0")} {
		for _, name := range []string{"np_cnp_sent", "rx_prio3_bytes", "rx_bytes_phy"} {
			if _, ok := values[name]; ok {
				t.Errorf("a VF has %s", name)
			}
		}
	}
}

// TestCounterBeginsAnew checks a counter of 32 bits at its end.
func TestCounterBeginsAnew(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/sick-rail.yaml")
	before := r.statistics("mlx5_5/0")["rx_write_requests"]
	r.pass(30 * time.Second)
	if after := r.statistics("mlx5_5/0")["rx_write_requests"]; before < 4294900000 || after >= before {
		t.Errorf("rx_write_requests was %d and is %d, want it to have begun anew", before, after)
	}
}

// TestCounterFull checks counters that stay at their end.
func TestCounterFull(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/infiniband.yaml")
	r.pass(10 * time.Minute)
	if got := r.fileCounters("mlx5_2")["symbol_error"]; got != 65535 {
		t.Errorf("symbol_error is %d, want 65535", got)
	}
	storm := beginFile(t, "../../scenarios/storm.yaml")
	storm.pass(time.Minute)
	if got := storm.fileCounters("mlx5_2")["port_xmit_wait"]; got != 1<<32-1 {
		t.Errorf("port_xmit_wait is %d, want all ones", got)
	}
}

// TestPauseOccupancy checks that pause takes the share of the time that the
// scenario says.
func TestPauseOccupancy(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/storm.yaml")
	before := r.driverStatistics("mlx5_0")
	r.pass(100 * time.Second)
	after := r.driverStatistics("mlx5_0")
	if got := after["rx_prio3_pause_duration"] - before["rx_prio3_pause_duration"]; got != 38_000_000 {
		t.Errorf("paused for %d µs of 100 s, want 38 s", got)
	}
	pf := r.function("mlx5_0")
	links := pf.netPlace.kernel.Links()
	defer links.Close()
	pfc, err := links.PFC(pf.name)
	if err != nil {
		t.Fatal(err)
	}
	if pfc.Enabled != 1<<3 || pfc.Indications[3] != after["rx_prio3_pause"] {
		t.Errorf("PFC %+v, want priority 3 with %d frames", pfc, after["rx_prio3_pause"])
	}
}

// TestQPCounters checks that processes of pods are counted apart, and together
// make what the device counts.
func TestQPCounters(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/shared.yaml")
	r.pass(5 * time.Minute)
	f := r.function("mlx5_0")
	client := f.place.kernel.RDMA()
	defer client.Close()
	sets, err := client.QPCounters(f.index, 1)
	if err != nil {
		t.Fatal(err)
	}
	var writes uint64
	pids := map[int]bool{}
	for _, set := range sets {
		pids[set.PID] = true
		for _, c := range set.Counters {
			if c.Name == "rx_write_requests" {
				writes += c.Value
			}
		}
	}
	if len(sets) != 4 || len(pids) != 4 {
		t.Errorf("%d sets of processes %v, want one of each of 4", len(sets), slices.Sorted(maps.Keys(pids)))
	}
	if all := r.statistics("mlx5_0")["rx_write_requests"]; writes > all || writes < all-4 {
		t.Errorf("all processes received %d writes, and the device %d", writes, all)
	}
	mode, err := client.CounterMode(f.index, 1)
	if err != nil || mode.Mode != "auto" || !mode.ByPID {
		t.Errorf("mode %+v, %v, want auto by process", mode, err)
	}
}

// TestCountersOfPods checks what a pod adds to counters by being there.
func TestCountersOfPods(t *testing.T) {
	t.Parallel()
	r := beginText(t, strings.NewReplacer("mlx5_0", "bnxt_re0", "vfs: 2", "vfs: 2, driver: bnxt_re").Replace(churn))
	r.pass(10 * time.Second)
	values := r.statistics("bnxt_re0/0")
	if values["active_qps"] != 8 || values["active_mrs"] != 4 {
		t.Errorf("%d QPs and %d MRs, want 8 and 4", values["active_qps"], values["active_mrs"])
	}
	if got := r.fileCounters("bnxt_re0/0")["cm_tx_msgs/req"]; got != 1 {
		t.Errorf("%d requests to connect, want 1", got)
	}
	r.pass(25 * time.Second)
	if got := r.statistics("bnxt_re0/0")["active_qps"]; got != 0 {
		t.Errorf("%d QPs after the pod, want 0", got)
	}
}

// TestCard checks what else is asked of a card: its VFs, its health, its error
// correction.
func TestCard(t *testing.T) {
	t.Parallel()
	r := beginFile(t, "../../scenarios/sick-rail.yaml")
	r.pass(5 * time.Minute)
	own, pf := r.Node().Own(), r.function("mlx5_5")
	links, errLinks := own.Links()
	settings, errSettings := own.Ethtool()
	health, errHealth := own.Devlink()
	if err := errors.Join(errLinks, errSettings, errHealth); err != nil {
		t.Fatal(err)
	}
	defer links.Close()
	defer settings.Close()
	defer health.Close()

	vfs, err := links.VFs(pf.link)
	vf := r.driverStatistics("mlx5_5/0")
	if err != nil || len(vfs) != 2 || vfs[0].Stats == nil || vfs[0].Stats.RxBytes != vf["rx_vport_rdma_unicast_bytes"] {
		t.Errorf("VFs %+v, %v, want two, the first with the bytes that it has received", vfs, err)
	}
	fec, err := settings.FECStats(pf.link)
	if err != nil || fec.UncorrectableBlocks == nil || *fec.UncorrectableBlocks == 0 {
		t.Errorf("FEC %+v, %v, want blocks that could not be corrected", fec, err)
	}
	reporters, err := health.HealthReporters("pci", pf.pci)
	if err != nil || len(reporters) != 3 || reporters[0].State != "healthy" {
		t.Errorf("%d reporters, %v, want 3 of the PF, healthy", len(reporters), err)
	}
}
