package rdmanl

import (
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
)

// hwCounter is an entry of the table of counters.
func hwCounter(name string, value uint64) netlink.Attribute {
	return nest(81, str(82, name), u64(83, value))
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	want := message(0x1411, 0, u32(1, 3), u32(3, 1))
	head := []netlink.Attribute{u32(1, 3), str(2, "mlx5_3"), u32(3, 1)}
	tests := []struct {
		name string
		in   []netlink.Attribute
		want []Counter
		err  string
	}{
		{
			name: "driver's order",
			in:   append(head, nest(80, hwCounter("out_of_sequence", 7), hwCounter("np_cnp_sent", 1<<63), hwCounter("lifespan", 0))),
			want: []Counter{{"out_of_sequence", 7}, {"np_cnp_sent", 1 << 63}, {"lifespan", 0}},
		},
		{
			name: "entries that say nothing, and newer ones",
			in:   append(head, nest(80, nest(81), nest(81, str(82, "x")), nest(81, u64(83, 1)), nest(300), hwCounter("y", 2)), u8(301, 1)),
			want: []Counter{{"y", 2}},
		},
		{name: "no counters", in: head},
		{name: "value of another size", in: append(head, nest(80, nest(81, str(82, "x"), u32(83, 1)))), err: "attribute 83 is not a uint64"},
		{
			name: "cut in the table", in: append(head, netlink.Attribute{Type: 80, Data: attrBytes(hwCounter("x", 1))[:11]}),
			err: "invalid attribute",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := script(t, exchange{want, reply(tt.in...)}).Statistics(3, 1)
			checkError(t, err, tt.err)
			if diff := equal(tt.want, got); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCounterStatuses(t *testing.T) {
	t.Parallel()
	got, err := script(t, exchange{
		message(0x1418, 0, u32(1, 3), u32(3, 1)),
		reply(u32(1, 3), str(2, "mlx5_3"), u32(3, 1), nest(80,
			nest(81, str(82, "out_of_sequence"), u32(94, 0)),
			nest(81, str(82, "cc_rx_ce_pkts"), u32(94, 1), u8(95, 0)),
			nest(81, str(82, "rdma_tx_bytes"), u32(94, 2), u8(95, 1)),
		)),
	}).CounterStatuses(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []CounterStatus{
		{Index: 0, Name: "out_of_sequence", Enabled: true},
		{Index: 1, Name: "cc_rx_ce_pkts", Optional: true},
		{Index: 2, Name: "rdma_tx_bytes", Optional: true, Enabled: true},
	}
	if diff := equal(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

func TestCounterMode(t *testing.T) {
	t.Parallel()
	head := []netlink.Attribute{u32(1, 3), str(2, "mlx5_3"), u32(3, 1)}
	tests := []struct {
		name string
		in   []netlink.Attribute
		want CounterMode
		err  string
	}{
		{name: "none", in: []netlink.Attribute{u32(74, 0)}, want: CounterMode{Mode: "none"}},
		{name: "manual", in: []netlink.Attribute{u32(74, 2)}, want: CounterMode{Mode: "manual"}},
		{
			name: "auto by type and process, Linux 6.15", in: []netlink.Attribute{u32(74, 1), u32(76, 3), u8(104, 1)},
			want: CounterMode{Mode: "auto", AutoMask: 3, ByType: true, ByPID: true, Optional: new(true)},
		},
		{
			name: "auto by process", in: []netlink.Attribute{u32(74, 1), u32(76, 2)},
			want: CounterMode{Mode: "auto", AutoMask: 2, ByPID: true},
		},
		{
			name: "newer than this package", in: []netlink.Attribute{u32(74, 9), u32(76, 4), u8(300, 0)},
			want: CounterMode{Mode: "9", AutoMask: 4},
		},
		{name: "no mode", err: errNoMode.Error()},
		{name: "mode of another size", in: []netlink.Attribute{u8(74, 1)}, err: "attribute 74 is not a uint32"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := script(t, exchange{
				message(0x1411, 0, u32(1, 3), u32(3, 1), u32(75, 19), u32(74, 0)), reply(append(head[:3:3], tt.in...)...),
			}).CounterMode(3, 1)
			checkError(t, err, tt.err)
			if diff := equal(tt.want, got); diff != "" {
				t.Errorf("mode (-want +got):\n%s", diff)
			}
		})
	}
}

// boundCounter is an entry of a dump of QP counters.
func boundCounter(id uint32, more ...netlink.Attribute) netlink.Attribute {
	return nestNoFlag(78, append([]netlink.Attribute{u32(3, 1), u32(79, id)}, more...)...)
}

func TestQPCounters(t *testing.T) {
	t.Parallel()
	qps := nest(19, nest(20, u32(21, 178)), nest(20, u32(21, 179)))
	head := []netlink.Attribute{u32(1, 3), str(2, "mlx5_3")}
	first := attrBytes(append(head[:2:2], nestNoFlag(77,
		boundCounter(4, u32(74, 1), u8(26, 2), u32(28, 30489), qps, nest(80, hwCounter("out_of_buffer", 5), hwCounter("duplicate_request", 0))),
	))...)
	second := attrBytes(append(head[:2:2], nestNoFlag(77,
		boundCounter(5, u32(74, 1), str(29, "ib_core")),
		boundCounter(6, u32(74, 2), qps),
	))...)
	want := message(0x1411, netlink.Dump, u32(1, 3), u32(3, 1), u32(75, 19))
	got, err := script(t, exchange{want, failingDump(syscall.ENOMEM, first, second)}).QPCounters(3, 1)
	checkError(t, err, "rdma netlink STAT_GET device 3 port 1: cannot allocate memory")
	counters := []QPCounter{
		{
			ID: 4, Port: 1, Mode: "auto", QPType: "RC", QPNs: []uint32{178, 179}, Owner: Owner{PID: 30489},
			Counters: []Counter{{"out_of_buffer", 5}, {"duplicate_request", 0}},
		},
		{ID: 5, Port: 1, Mode: "auto", Owner: Owner{KernelName: "ib_core"}},
		{ID: 6, Port: 1, Mode: "manual", QPNs: []uint32{178, 179}},
	}
	if diff := equal(counters, got); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func FuzzDecodeStatistics(f *testing.F) {
	f.Add(attrBytes(u32(1, 3), str(2, "mlx5_3"), nest(80, hwCounter("x", 1), hwCounter("y", 1<<63))))
	f.Add(attrBytes(nest(80, nest(81, str(82, "x")), nest(81, u64(83, 1)))))
	f.Fuzz(func(t *testing.T, b []byte) {
		counters, err := decodeStatistics(b)
		if err != nil && counters != nil {
			t.Fatalf("error %v and a value: %v", err, counters)
		}
		var entries []netlink.Attribute
		for _, c := range counters {
			if c.Name == "" {
				t.Errorf("counter without a name: %v", counters)
			}
			entries = append(entries, hwCounter(c.Name, c.Value))
		}
		again, err := decodeStatistics(attrBytes(nest(80, entries...)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := equal(counters, again); diff != "" {
			t.Errorf("after encoding (-want +got):\n%s", diff)
		}
	})
}

func FuzzDecodeCounterStatuses(f *testing.F) {
	f.Add(attrBytes(nest(80, nest(81, str(82, "x"), u32(94, 1), u8(95, 0)), nest(81, str(82, "y"), u32(94, 2)))))
	f.Fuzz(func(t *testing.T, b []byte) {
		statuses, err := decodeCounterStatuses(b)
		if err != nil && statuses != nil {
			t.Errorf("error %v and a value: %v", err, statuses)
		}
		for _, s := range statuses {
			if !s.Optional && !s.Enabled {
				t.Errorf("counter that is off but cannot be switched: %+v", s)
			}
		}
	})
}

func FuzzDecodeCounterMode(f *testing.F) {
	f.Add(attrBytes(u32(74, 1), u32(76, 3), u8(104, 1)))
	f.Add(attrBytes(u32(74, 9)))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeCounterMode(b)
		if (err != nil) != (m == CounterMode{}) {
			t.Errorf("error %v, value %+v", err, m)
		}
	})
}

// BenchmarkStatistics decodes the 40 counters of an mlx5 port.
func BenchmarkStatistics(b *testing.B) {
	var entries []netlink.Attribute
	for range 40 {
		entries = append(entries, hwCounter("rx_icrc_encapsulated", 1<<40))
	}
	in := attrBytes(u32(1, 3), str(2, "mlx5_3"), u32(3, 1), nest(80, entries...))
	b.ReportAllocs()
	for b.Loop() {
		if counters, err := decodeStatistics(in); err != nil || len(counters) != 40 {
			b.Fatal(len(counters), err)
		}
	}
}
