package counters

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/inventory"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
)

// valueOf is what a series of a family is in samples; nil where it is not there.
func valueOf(samples []Sample, family string, labels ...string) *uint64 {
	for i := range samples {
		s := samples[i].Series
		own := s.Labels[len(s.Labels)-min(len(labels), len(s.Labels)):]
		if name(s.Family) == family && slices.EqualFunc(own, labels, func(l Label, v string) bool { return l.Value == v }) {
			return &samples[i].Value
		}
	}
	return nil
}

func expectValue(t *testing.T, samples []Sample, want uint64, family string, labels ...string) {
	t.Helper()
	got := valueOf(samples, family, labels...)
	if got == nil || *got != want {
		t.Errorf("%s %q: %v, want %d", family, labels, got, want)
	}
}

// TestTiers counts what is asked in each tier, which is what reading costs.
func TestTiers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, module string
		kind         inventory.Kind
		want         [Tiers]map[fakekernel.Request]int
	}{
		{"PF of mlx5", "mlx5_core", inventory.PF, [Tiers]map[fakekernel.Request]int{
			Traffic: {}, // four files
			Errors:  {fakekernel.GetStatistics: 1, fakekernel.GetStats: 1, fakekernel.GetStatNames: 1, fakekernel.GetPort: 1},
			Slow: {
				fakekernel.GetStandardStats: 1, fakekernel.GetPauseStats: 1, fakekernel.GetFECStats: 1, fakekernel.GetPFC: 1,
				fakekernel.DiagnoseHealth: 1, fakekernel.GetHealthReporters: 1, fakekernel.GetResources: 1,
			},
		}},
		{"VF of mlx5", "mlx5_core", inventory.VF, [Tiers]map[fakekernel.Request]int{
			Traffic: {fakekernel.GetStats: 1, fakekernel.GetStatNames: 1},
			Errors:  {fakekernel.GetStatistics: 1, fakekernel.GetPort: 1},
			Slow:    {fakekernel.DiagnoseHealth: 1, fakekernel.GetResources: 1},
		}},
		{"efa", "efa", inventory.VF, [Tiers]map[fakekernel.Request]int{
			Traffic: {fakekernel.GetStatistics: 1},
			Errors:  {fakekernel.GetStatistics: 1, fakekernel.GetPort: 1},
			Slow:    {fakekernel.GetResources: 1},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, test.module, test.kind, inventory.Ethernet)
			r.equip()
			reader, a := NewReader(&r.device), r.access()
			requests := slices.Collect(maps.Keys(allRequests(test.want)))
			for tier := range Tiers {
				before := asked(r.kernel, requests)
				if _, err := reader.Read(tier, a, nil); err != nil {
					t.Fatal(err)
				}
				got := asked(r.kernel, requests)
				for request, n := range before {
					if got[request] -= n; got[request] == 0 {
						delete(got, request)
					}
				}
				if diff := cmp.Diff(test.want[tier], got); diff != "" {
					t.Errorf("tier %d: %s", tier, diff)
				}
			}
		})
	}
}

func allRequests(tiers [Tiers]map[fakekernel.Request]int) map[fakekernel.Request]int {
	all := map[fakekernel.Request]int{}
	for _, requests := range tiers {
		maps.Copy(all, requests)
	}
	return all
}

func asked(k *fakekernel.Kernel, requests []fakekernel.Request) map[fakekernel.Request]int {
	n := map[fakekernel.Request]int{}
	for _, r := range requests {
		n[r] = k.Asked(r)
	}
	return n
}

// TestFewFiles wants a PF of mlx5 to open the four files of traffic and no other
// of those that cost a firmware command each.
func TestFewFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.equip()
	dear := filepath.Join(r.root, "sys/class/infiniband/dev0/ports/1/counters")
	files, err := os.ReadDir(dear)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains([]string{"port_rcv_data", "port_xmit_data", "port_rcv_packets", "port_xmit_packets"}, f.Name()) {
			r.write("class/infiniband/dev0/ports/1/counters/"+f.Name(), "this is read by nobody")
		}
	}
	r.read(NewReader(&r.device), r.access())
}

// TestSeriesStay wants the same pointers for the same series in each reading.
func TestSeriesStay(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.equip()
	reader, a := NewReader(&r.device), r.access()
	first := r.read(reader, a)
	for i, s := range r.read(reader, a) {
		if s.Series != first[i].Series {
			t.Errorf("%s has another pointer", line(s))
		}
	}
}

// TestBadSource refuses one source after the other: what the others have comes
// all the same, and the error says whose it is.
func TestBadSource(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		spoil   func(r *rig)
		source  string
		lost    string // a family
		errno   error
		isFaint bool // no error: the driver does not have it
	}{
		{"statistics refused", refuse(fakekernel.GetStatistics, unix.EIO), "rdma", "rdma_out_of_buffer_total", unix.EIO, false},
		{"statistics not there", refuse(fakekernel.GetStatistics, unix.EOPNOTSUPP), "rdma", "rdma_out_of_buffer_total", nil, true},
		{"states refused", refuse(fakekernel.GetPort, unix.ENOMEM), "rdma", "rdma_port_state", unix.ENOMEM, false},
		{"resources refused", refuse(fakekernel.GetResources, unix.EPERM), "rdma", "rdma_device_resources", fs.ErrPermission, false},
		{"driver statistics refused", refuse(fakekernel.GetStats, unix.EREMOTEIO), "ethtool", "rdma_port_receive_discards_total", unix.EREMOTEIO, false},
		{"flow control refused", refuse(fakekernel.GetPFC, unix.EIO), "link", "rdma_port_pfc_enabled", unix.EIO, false},
		{"no flow control", refuse(fakekernel.GetPFC, unix.EOPNOTSUPP), "link", "rdma_port_pfc_enabled", nil, true},
		{"diagnosis refused", refuse(fakekernel.DiagnoseHealth, unix.EPERM), "devlink", "rdma_vnic_cq_overrun_total", fs.ErrPermission, false},
		{"a file with nonsense", func(r *rig) {
			r.write("class/infiniband/dev0/ports/1/counters/port_rcv_data", "nonsense")
		}, "sysfs", "rdma_port_rcv_data_bytes_total", nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
			r.equip()
			want := familiesOf(r.read(NewReader(&r.device), r.access()))
			test.spoil(r)
			var samples []Sample
			var errs []error
			reader, a := NewReader(&r.device), r.access()
			for tier := range Tiers {
				var err error
				samples, err = reader.Read(tier, a, samples)
				errs = append(errs, err)
			}
			expectReadError(t, errors.Join(errs...), test.source, test.errno, test.isFaint)
			got := familiesOf(samples)
			if got[test.lost] {
				t.Errorf("%s is there", test.lost)
			}
			if len(got) < len(want)/4 || !got["rdma_port_transmit_bytes_total"] {
				t.Errorf("of %d families only %d are left", len(want), len(got))
			}
		})
	}
}

func refuse(request fakekernel.Request, errno unix.Errno) func(*rig) {
	return func(r *rig) { r.kernel.Refuse(request, errno) }
}

func expectReadError(t *testing.T, err error, source string, is error, isFaint bool) {
	t.Helper()
	if isFaint {
		if err != nil {
			t.Errorf("what is not there is an error: %v", err)
		}
		return
	}
	e, ok := errors.AsType[*ReadError](err)
	if !ok || e.Source != source || is != nil && !errors.Is(err, is) {
		t.Errorf("%v, want an error of %s that is %v", err, source, is)
	}
}

func familiesOf(samples []Sample) map[string]bool {
	names := map[string]bool{}
	for _, s := range samples {
		names[name(s.Series.Family)] = true
	}
	return names
}

// TestNothingToAsk reads without any client: what is in files comes all the
// same.
func TestNothingToAsk(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.equip()
	got := slices.Sorted(maps.Keys(familiesOf(r.read(NewReader(&r.device), Access{FS: r.access().FS}))))
	want := []string{
		"rdma_port_cm_duplicates_total", "rdma_port_cm_messages_total", "rdma_port_cm_retries_total",
		"rdma_port_ecn_enabled", "rdma_port_rcv_data_bytes_total", "rdma_port_rcv_packets_total",
		"rdma_port_receive_bytes_total", "rdma_port_receive_packets_total", "rdma_port_traffic_class",
		"rdma_port_transmit_bytes_total", "rdma_port_transmit_packets_total", "rdma_port_trust_mode",
		"rdma_port_xmit_data_bytes_total", "rdma_port_xmit_packets_total",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUnknown has counters that the tables do not know.
func TestUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.statistics([]string{"out_of_buffer", "newCounter", "rx_pkts", "rx_pause", "newCounter", "new counter"}, counting)
	r.driverStats([]string{"rx_packets", "ch0_events", "tx_vport_new"}, counting)
	r.kernel = fakekernel.New(r.facts)
	r.equip()
	reader := NewReader(&r.device)
	samples := r.read(reader, r.access())
	want := []string{"newCounter", "new counter", "rx_pkts", "rx_pause", "tx_vport_new"}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(reader.Unknown()))); diff != "" {
		t.Error(diff)
	}
	expectValue(t, samples, 2, "rdma_new_counter", "eth0")
	expectDistinct(t, lines(samples))
	expectValue(t, samples, 3, "rdma_rx_pkts_total", "eth0") // another driver has it
	expectValue(t, samples, 3, "rdma_tx_vport_new", "eth0")
	if f := familiesOf(samples); f["rdma_rx_packets"] || f["rdma_ch0_events"] {
		t.Error("statistics of the netdev that have nothing to do with RDMA are exported")
	}
}

// TestNamesChange has a driver whose counters change between two readings.
func TestNamesChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	value := uint64(math.MaxUint32)
	set := func(dst []uint64) {
		for i := range dst {
			dst[i] = value & math.MaxUint32
		}
	}
	r.statistics([]string{"out_of_buffer", "rx_read_requests"}, set)
	r.driverStats([]string{"rx_prio0_pause"}, set)
	r.kernel = fakekernel.New(r.facts)
	r.equip()
	reader, a := NewReader(&r.device), r.access()
	r.read(reader, a)
	value += 5
	r.kernel.Change(func(f *fakekernel.Facts) {
		f.HCAs[rigDevice].Ports[1] = &fakekernel.HCAPort{Values: set, Counters: []rdmanl.CounterStatus{
			{Name: "rx_write_requests", Enabled: true}, {Index: 1, Name: "out_of_buffer", Enabled: true},
		}}
		nic := *f.NICs[rigLink]
		nic.StatNames = []string{"tx_prio0_pause", "rx_prio0_pause"}
		f.NICs[rigLink] = &nic
	})
	samples := r.read(reader, a)
	expectValue(t, samples, math.MaxUint32+5, "rdma_out_of_buffer_total", "eth0")
	expectValue(t, samples, 4, "rdma_rx_write_requests_total", "eth0")
	expectValue(t, samples, 4, "rdma_tx_pause_total", "0")
	if v := valueOf(samples, "rdma_rx_read_requests_total", "eth0"); v != nil {
		t.Errorf("a counter that is gone is %d", *v)
	}
}

// TestMissing has ionic say that its firmware lacks a counter: it and what it is
// a part of are absent, and not zero.
func TestMissing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ionic", inventory.PF, inventory.Ethernet)
	r.statistics([]string{"rx_rdma_ucast_bytes", "rx_rdma_mcast_bytes", "tx_rdma_ucast_bytes"}, func(dst []uint64) {
		counting(dst)
		dst[1] = math.MaxUint64
	})
	r.kernel = fakekernel.New(r.facts)
	samples := r.read(NewReader(&r.device), r.access())
	expectValue(t, samples, 1, "rdma_rx_rdma_ucast_bytes_total", "eth0")
	expectValue(t, samples, 3, "rdma_port_transmit_bytes_total", "eth0")
	for _, lost := range []string{"rdma_rx_rdma_mcast_bytes_total", "rdma_port_receive_bytes_total"} {
		if v := valueOf(samples, lost, "eth0"); v != nil {
			t.Errorf("%s is %d", lost, *v)
		}
	}
}

// TestSaturated has a counter of an InfiniBand port stand at its largest value.
func TestSaturated(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.InfiniBand)
	r.write("class/infiniband/dev0/ports/1/counters/link_downed", "255")
	r.write("class/infiniband/dev0/ports/1/counters/symbol_error", "65534")
	r.equip()
	reader, a := NewReader(&r.device), r.access()
	samples := r.read(reader, a)
	expectValue(t, samples, 255, "rdma_link_downed_total", "eth0")
	expectValue(t, samples, 1, "rdma_port_saturated", "link_downed")
	expectValue(t, samples, 0, "rdma_port_saturated", "symbol_error")
	r.write("class/infiniband/dev0/ports/1/counters/link_downed", "2") // somebody reset it
	samples = r.read(reader, a)
	expectValue(t, samples, 2, "rdma_link_downed_total", "eth0")
	expectValue(t, samples, 0, "rdma_port_saturated", "link_downed")
}

// TestDiscardsWithoutPriority has mlx5's one counter of discards on transmission
// stand for the name that others have by priority.
func TestDiscardsWithoutPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.driverStats([]string{"tx_discards_phy", "rx_prio3_discards"}, counting)
	r.kernel = fakekernel.New(r.facts)
	r.equip()
	samples := r.read(NewReader(&r.device), r.access())
	expectValue(t, samples, 1, "rdma_tx_discards_total", "eth0")
	expectValue(t, samples, 1, "rdma_port_transmit_discards_total", "eth0")
	expectValue(t, samples, 2, "rdma_rx_discards_total", "3")
}

// TestBond reads a device that stands for two ports: traffic once, what the
// ports count for each.
func TestBond(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.device.Bond = &inventory.Bond{Name: "bond0", Members: []string{"eth0", "eth1"}}
	r.device.RDMA.Ports[0].Netdev = "bond0"
	r.device.Netdevs = append(r.device.Netdevs, inventory.Netdev{Name: "bond0", Index: 9})
	r.kernel.Change(func(f *fakekernel.Facts) {
		f.Links = append(f.Links, f.Links[0])
		f.Links[1].Index, f.Links[1].Name = 4, "eth1"
		f.NICs[4] = f.NICs[rigLink]
	})
	r.equip()
	samples := r.read(NewReader(&r.device), r.access())
	expectValue(t, samples, 4, "rdma_port_receive_bytes_total", "bond0")
	for _, member := range []string{"eth0", "eth1"} {
		if valueOf(samples, "rdma_port_receive_bytes_total", member) != nil {
			t.Errorf("traffic of %s is counted beside that of the bond", member)
		}
		if valueOf(samples, "rdma_port_receive_discards_total", member) == nil {
			t.Errorf("discards of %s are missing", member)
		}
	}
	expectDistinct(t, lines(samples))
}

// TestRepresentors reads an eswitch, whose ports stand for other functions.
func TestRepresentors(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.device.RDMA.Ports = append(r.device.RDMA.Ports, inventory.Port{Number: 2, LinkLayer: inventory.Ethernet, Netdev: "eth0_0", Representor: true})
	uplink := []string{"vport_out_of_buffer"}
	r.statistics(uplink, counting)
	r.files(keysOf(statistics, "mlx5"), "hw_counters")
	ports := r.facts.HCAs[rigDevice].Ports
	ports[2] = &fakekernel.HCAPort{Values: counting, Counters: []rdmanl.CounterStatus{
		{Name: "out_of_buffer", Enabled: true}, {Index: 1, Name: "vport_out_of_buffer", Enabled: true},
	}}
	r.facts.RDMA[0].PortCount = 2
	second := r.facts.RDMA[0].Ports[0]
	second.Number = 2
	r.facts.RDMA[0].Ports = append(r.facts.RDMA[0].Ports, second)
	r.kernel = fakekernel.New(r.facts)
	r.equip()
	samples := r.read(NewReader(&r.device), r.access())
	expectValue(t, samples, 2, "rdma_vport_out_of_buffer_total", "2", "eth0_0")
	expectValue(t, samples, 5, "rdma_out_of_buffer_total", "1", "eth0") // of the device's own files
	for _, wrong := range [][]string{{"rdma_vport_out_of_buffer_total", "eth0"}, {"rdma_out_of_buffer_total", "eth0_0"}} {
		if v := valueOf(samples, wrong[0], wrong[1]); v != nil {
			t.Errorf("%q is %d", wrong, *v)
		}
	}
}

// TestLinkPause has an mlx5 port without flow control by priority.
func TestLinkPause(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.driverStats([]string{"rx_pause_ctrl_phy", "tx_pause_ctrl_phy"}, counting)
	r.kernel = fakekernel.New(r.facts)
	r.equip()
	samples := r.read(NewReader(&r.device), r.access())
	expectValue(t, samples, 1, "rdma_port_global_pause_frames_total", "rx")
	expectValue(t, samples, 2, "rdma_port_global_pause_frames_total", "tx")
}

// TestSecondChoice has a driver count one thing under two names.
func TestSecondChoice(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		names []string
		want  uint64
	}{
		{[]string{"out_of_sequence", "oos_drop_count"}, 2},
		{[]string{"out_of_sequence", "res_oos_drop_count"}, 1},
		{[]string{"rx_bytes", "out_of_sequence"}, 2},
	} {
		r := newRig(t, "bnxt_en", inventory.PF, inventory.Ethernet)
		r.statistics(test.names, counting)
		r.kernel = fakekernel.New(r.facts)
		samples := r.read(NewReader(&r.device), r.access())
		expectValue(t, samples, test.want, "rdma_port_out_of_sequence_total", "eth0")
	}
}

// TestLackingIsAskedRarely has a driver that says it has no statistics, and has
// them later.
func TestLackingIsAskedRarely(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.kernel.Refuse(fakekernel.GetStatistics, unix.EOPNOTSUPP)
	reader, a := NewReader(&r.device), r.access()
	read := func() bool {
		t.Helper()
		samples, err := reader.Read(Errors, a, nil)
		if err != nil {
			t.Fatal(err)
		}
		return valueOf(samples, "rdma_out_of_buffer_total", "eth0") != nil
	}
	for range restFor {
		read()
	}
	if n := r.kernel.Asked(fakekernel.GetStatistics); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	r.kernel.Refuse(fakekernel.GetStatistics, 0)
	read()
	if !read() {
		t.Error("the statistics are never asked for again")
	}
}

// TestSubfunction wants the diagnosis of an SF to be its own, and not that of the
// PF whose PCI function it shares.
func TestSubfunction(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.SF, inventory.Ethernet)
	r.device.ID, r.device.Parent = "mlx5_core.sf.4", rigPCI
	own := vnicReporter()
	own.Bus, own.Device = "auxiliary", "mlx5_core.sf.4"
	own.Values = func(dst []uint64) { counting(dst); dst[2] = 77 }
	r.kernel.Change(func(f *fakekernel.Facts) { f.Devlink = []fakekernel.Reporter{vnicReporter(), own} })
	expectValue(t, r.read(NewReader(&r.device), r.access()), 77, "rdma_vnic_cq_overrun_total", "dev0")
}

// TestTrafficWithoutFiles has a PF whose port has no files of counters: its
// traffic comes with the statistics of its netdev.
func TestTrafficWithoutFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.equip()
	if err := os.RemoveAll(filepath.Join(r.root, "sys/class/infiniband/dev0/ports/1/counters")); err != nil {
		t.Fatal(err)
	}
	expectValue(t, r.read(NewReader(&r.device), r.access()), 3, "rdma_port_receive_bytes_total", "eth0")
}

// TestTrafficWithoutFile has no file of received words: what stands in for it
// counts bytes.
func TestTrafficWithoutFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.equip()
	r.write("class/infiniband/dev0/ports/1/counters/port_rcv_data", "none")
	reader, a := NewReader(&r.device), r.access()
	var samples []Sample
	for tier := range Tiers {
		samples, _ = reader.Read(tier, a, samples) // one file is not read
	}
	expectValue(t, samples, 3, "rdma_port_receive_bytes_total", "eth0")
}

// TestVFOfInfiniBand wants a VF to read the files of its own traffic, and none of
// the physical port.
func TestVFOfInfiniBand(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.VF, inventory.InfiniBand)
	r.equip()
	samples := r.read(NewReader(&r.device), r.access())
	expectValue(t, samples, 4, "rdma_port_receive_bytes_total", "eth0")
	if v := valueOf(samples, "rdma_symbol_error_total", "eth0"); v != nil {
		t.Errorf("symbol errors of the port are read for a VF: %d", *v)
	}
}

// TestUnknownBesideKnown has an unknown counter whose name becomes that of one
// that is known: the two are not added.
func TestUnknownBesideKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t, "efa", inventory.PF, "Unknown")
	r.statistics([]string{"rx bytes", "rx_bytes"}, counting)
	r.kernel = fakekernel.New(r.facts)
	expectValue(t, r.read(NewReader(&r.device), r.access()), 2, "rdma_rx_bytes_total", "eth0")
}

// TestConnectionsOfVF wants the series of the connection manager of a VF from
// its first message on, and of a PF always.
func TestConnectionsOfVF(t *testing.T) {
	t.Parallel()
	const family = "rdma_port_cm_messages_total"
	for kind, before := range map[inventory.Kind]bool{inventory.PF: true, inventory.VF: false} {
		r := newRig(t, "mlx5_core", kind, inventory.Ethernet)
		r.equip()
		for _, dir := range cmDirs {
			for _, message := range []string{"req", "rej"} {
				r.write("class/infiniband/dev0/ports/1/"+dir.name+"/"+message, "0")
			}
		}
		reader, a := NewReader(&r.device), r.access()
		if got := familiesOf(r.read(reader, a))[family]; got != before {
			t.Errorf("%s before its first message: series %v, want %v", kind, got, before)
		}
		r.write("class/infiniband/dev0/ports/1/cm_tx_msgs/req", "1")
		if !familiesOf(r.read(reader, a))[family] {
			t.Errorf("%s after its first message: no series", kind)
		}
	}
}
