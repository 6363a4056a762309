package fakekernel_test

import (
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
)

// closeAtEnd closes clients at the end of a test.
func closeAtEnd(t *testing.T, clients ...io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		for _, c := range clients {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// check compares what a client got to hear with the facts.
func check[T any](t *testing.T, what string, want, got T, err error) {
	t.Helper()
	options := cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })}
	if diff := cmp.Diff(want, got, options); err != nil || diff != "" {
		t.Errorf("%s: error %v (-want +got):\n%s", what, err, diff)
	}
}

// ramp sets values that tell their places apart, which fill 64 bits.
func ramp(from uint64) func([]uint64) {
	return func(dst []uint64) {
		for i := range dst {
			dst[i] = from + uint64(i)<<56
		}
	}
}

func hca() *fakekernel.HCA {
	process, kernel := rdmanl.Owner{PID: 4711}, rdmanl.Owner{KernelName: "ib_core"}
	h := &fakekernel.HCA{
		Uverbs:   &rdmanl.CharDevice{Name: "uverbs300", Major: 231, Minor: 0x12345, ABI: 1, DriverID: new(uint32(1))},
		Contexts: []rdmanl.Context{{Number: 1, Owner: process}, {Number: 2}},
		PDs: []rdmanl.PD{
			{Number: 1, Users: 3, LocalDMALKey: new(uint32(7)), UnsafeGlobalRKey: new(uint32(8)), Owner: kernel},
			{Number: 2, Context: new(uint32(1)), Users: 1, Owner: process},
		},
		CQs: []rdmanl.CQ{
			{Number: 1, Entries: 128, Users: 2, PollContext: "UNBOUND_WORKQUEUE", AdaptiveModeration: new(true), Owner: kernel},
			{Number: 2, Context: new(uint32(1)), Entries: 4096, AdaptiveModeration: new(false), Owner: process},
		},
		MRs: []rdmanl.MR{
			{Number: 3, PD: new(uint32(2)), Length: 1 << 40, LKey: new(uint32(9)), RKey: new(uint32(10)), IOVA: new(uint64(1) << 63), Owner: process},
			{Number: 4, Owner: kernel},
		},
		CMIDs: []rdmanl.CMID{
			{
				Number: 1, Port: 1, QPN: new(uint32(20)), QPType: "RC", PortSpace: "TCP", State: "CONNECT",
				Source: netip.MustParseAddrPort("172.16.0.1:18515"), Destination: netip.MustParseAddrPort("[fe80::1%4]:4791"), Owner: process,
			},
			{Number: 2, PortSpace: "IB", State: "LISTEN", Source: netip.MustParseAddrPort("[2001:db8::1]:0"), Owner: kernel},
		},
		SRQs: []rdmanl.SRQ{
			{Number: 1, PD: new(uint32(2)), CQ: new(uint32(2)), Type: "XRC", QPNs: []rdmanl.QPNRange{{First: 20, Last: 20}, {First: 30, Last: 39}}, Owner: process},
			{Number: 2, Type: "BASIC", Owner: kernel},
		},
	}
	for i := range uint32(120) { // which take three messages
		h.QPs = append(h.QPs, rdmanl.QP{
			Number: 20 + i, Port: 1, PD: new(uint32(2)), RemoteQPN: new(i), ReceivePSN: new(uint32(1)), SendPSN: new(uint32(2)),
			Type: "RC", State: "RTS", PathMigration: "MIGRATED", Owner: rdmanl.Owner{PID: 4711 + int(i%3)},
		})
	}
	h.QPs = append(h.QPs, rdmanl.QP{Number: 1, Type: "GSI", State: "RTS", Owner: kernel}, rdmanl.QP{Number: 9, Type: "DRIVER", Subtype: "DCI", State: "RESET"})
	h.Ports = map[int]*fakekernel.HCAPort{1: {
		Umad: &rdmanl.CharDevice{Name: "umad1", Major: 231, Minor: 1, ABI: 5},
		Issm: &rdmanl.CharDevice{Name: "issm1", Major: 231, Minor: 65, ABI: 5},
		Counters: []rdmanl.CounterStatus{
			{Index: 0, Name: "rx_write_requests", Enabled: true},
			{Index: 1, Name: "cc_rx_ce_pkts", Optional: true},
			{Index: 2, Name: "rdma_tx_bytes", Optional: true, Enabled: true},
			{Index: 3, Name: "out_of_buffer", Enabled: true},
		},
		Values:   ramp(5),
		QPNames:  []string{"rx_write_requests", "out_of_buffer"},
		QPValues: func(c rdmanl.QPCounter, dst []uint64) { ramp(uint64(c.QPNs[0]))(dst) },
	}}
	return h
}

// rdmaKernel has two devices, of which the first has an HCA.
func rdmaKernel() *fakekernel.Kernel {
	f := facts()
	f.HCAs = map[uint32]*fakekernel.HCA{0: hca()}
	f.RDMACM = &rdmanl.CharDevice{Name: "rdma_cm", Major: 10, Minor: 122, ABI: 4}
	return fakekernel.New(f)
}

func TestResources(t *testing.T) {
	t.Parallel()
	k, want := rdmaKernel(), hca()
	c := k.RDMA()
	closeAtEnd(t, c)
	contexts, err := c.Contexts(0)
	check(t, "contexts", want.Contexts, contexts, err)
	pds, err := c.PDs(0)
	check(t, "PDs", want.PDs, pds, err)
	cqs, err := c.CQs(0)
	check(t, "CQs", want.CQs, cqs, err)
	qps, err := c.QPs(0)
	check(t, "QPs", want.QPs, qps, err)
	cmids, err := c.CMIDs(0)
	check(t, "CM IDs", want.CMIDs, cmids, err)
	mrs, err := c.MRs(0)
	check(t, "MRs", want.MRs, mrs, err)
	srqs, err := c.SRQs(0)
	check(t, "SRQs", want.SRQs, srqs, err)
	counts, err := c.Resources(0)
	check(t, "resources", []rdmanl.ResourceCount{
		{Name: "pd", Count: 2},
		{Name: "cq", Count: 2},
		{Name: "qp", Count: 122},
		{Name: "cm_id", Count: 2},
		{Name: "mr", Count: 2},
		{Name: "ctx", Count: 2},
		{Name: "srq", Count: 2},
	}, counts, err)
	none, err := c.QPs(4)
	check(t, "QPs of a device without an HCA", nil, none, err)
	if _, err := c.QPs(3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("QPs of no device: %v, want %v", err, fs.ErrNotExist)
	}
	if got := k.Asked(fakekernel.GetQPs); got != 3 {
		t.Errorf("asked for QPs %d times, want 3", got)
	}
}

func TestCharDevices(t *testing.T) {
	t.Parallel()
	c, want := rdmaKernel().RDMA(), hca()
	closeAtEnd(t, c)
	for kind, want := range map[string]*rdmanl.CharDevice{"umad": want.Ports[1].Umad, "issm": want.Ports[1].Issm} {
		got, err := c.CharDevice(kind, 0, 1)
		check(t, kind, *want, got, err)
	}
	got, err := c.CharDevice("uverbs", 0, 0)
	check(t, "uverbs", *want.Uverbs, got, err)
	got, err = c.CharDevice("rdma_cm", 0, 0)
	check(t, "rdma_cm", rdmanl.CharDevice{Name: "rdma_cm", Major: 10, Minor: 122, ABI: 4}, got, err)
	for _, device := range []uint32{4, 3} {
		want := rdmanl.ErrNotSupported
		if device == 3 {
			want = fs.ErrNotExist
		}
		if _, err := c.CharDevice("uverbs", device, 0); !errors.Is(err, want) {
			t.Errorf("uverbs of device %d: %v, want %v", device, err, want)
		}
	}
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	k := rdmaKernel()
	c := k.RDMA()
	closeAtEnd(t, c)
	statuses, err := c.CounterStatuses(0, 1)
	check(t, "statuses", hca().Ports[1].Counters, statuses, err)
	want := []rdmanl.Counter{{Name: "rx_write_requests", Value: 5}, {Name: "rdma_tx_bytes", Value: 5 + 2<<56}, {Name: "out_of_buffer", Value: 5 + 3<<56}}
	for range 2 { // made, and kept
		got, err := c.Statistics(0, 1)
		check(t, "statistics", want, got, err)
	}
	port := rdmanl.PortStatistics{Device: 0, Port: 1}
	names, values, err := port.Read(c)
	check(t, "names", []string{"rx_write_requests", "rdma_tx_bytes", "out_of_buffer"}, names, err)
	check(t, "values", []uint64{5, 5 + 2<<56, 5 + 3<<56}, values, nil)
	k.ChangeHCA(0, func(h *fakekernel.HCA) { h.Ports[1].Values = nil })
	got, err := c.Statistics(0, 1)
	check(t, "statistics without values", []rdmanl.Counter{{Name: "rx_write_requests"}, {Name: "rdma_tx_bytes"}, {Name: "out_of_buffer"}}, got, err)
	if _, err := c.Statistics(4, 1); !errors.Is(err, rdmanl.ErrNotSupported) {
		t.Errorf("statistics of a port without: %v, want %v", err, rdmanl.ErrNotSupported)
	}
	if _, err := c.Statistics(0, 2); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("statistics of no port: %v, want %v", err, fs.ErrNotExist)
	}
	k.ChangeHCA(4, func(h *fakekernel.HCA) {
		h.Ports = map[int]*fakekernel.HCAPort{1: {Counters: []rdmanl.CounterStatus{{Name: "in_segs"}}}}
	})
	got, err = c.Statistics(4, 1)
	check(t, "statistics of a port that has them now", []rdmanl.Counter{{Name: "in_segs"}}, got, err)
}

func TestQPCounters(t *testing.T) {
	t.Parallel()
	k := rdmaKernel()
	c := k.RDMA()
	closeAtEnd(t, c)
	sets := []rdmanl.QPCounter{
		{ID: 1, Port: 1, Mode: "auto", QPType: "RC", QPNs: []uint32{20, 21}, Owner: rdmanl.Owner{PID: 4711}},
		{ID: 2, Port: 1, Mode: "auto", QPType: "UD", QPNs: []uint32{22}, Owner: rdmanl.Owner{PID: 4712}},
	}
	k.ChangeHCA(0, func(h *fakekernel.HCA) { h.Ports[1].QPCounters = append([]rdmanl.QPCounter(nil), sets...) })
	for i := range sets {
		first := uint64(sets[i].QPNs[0])
		sets[i].Counters = []rdmanl.Counter{{Name: "rx_write_requests", Value: first}, {Name: "out_of_buffer", Value: first + 1<<56}}
	}
	got, err := c.QPCounters(0, 1)
	check(t, "QP counters", sets, got, err)
	got, err = c.QPCounters(4, 1)
	check(t, "QP counters of a port without", nil, got, err)
}

// TestRefuseStatistics has one port refused among several requests.
func TestRefuseStatistics(t *testing.T) {
	t.Parallel()
	k := rdmaKernel()
	c := k.RDMA()
	closeAtEnd(t, c)
	k.ChangeHCA(4, func(h *fakekernel.HCA) { h.Ports = hca().Ports })
	k.Refuse(fakekernel.GetStatistics, unix.EIO, 0)
	if _, err := c.Statistics(0, 1); !errors.Is(err, unix.EIO) {
		t.Errorf("statistics of device 0: %v, want %v", err, unix.EIO)
	}
	if _, err := c.Statistics(4, 1); err != nil {
		t.Errorf("statistics of device 4: %v", err)
	}
	if _, err := c.CounterMode(0, 1); err != nil {
		t.Errorf("counter mode, which is another request: %v", err)
	}
	k.Refuse(fakekernel.GetStatistics, unix.EPERM, 4)
	if _, err := c.Statistics(0, 1); err != nil {
		t.Errorf("statistics that are not refused any more: %v", err)
	}
	if _, err := c.Statistics(4, 1); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("statistics of device 4: %v, want %v", err, fs.ErrPermission)
	}
}
