package rdmanl

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
)

// sockaddr is a struct sockaddr_storage.
func sockaddr(t uint16, addr string) netlink.Attribute {
	b := make([]byte, 128)
	a := netip.MustParseAddrPort(addr)
	binary.BigEndian.PutUint16(b[2:], a.Port())
	if a.Addr().Is4() {
		binary.NativeEndian.PutUint16(b, 2)
		copy(b[4:], a.Addr().AsSlice())
		return netlink.Attribute{Type: t, Data: b}
	}
	binary.NativeEndian.PutUint16(b, 10)
	copy(b[8:], a.Addr().AsSlice())
	if a.Addr().Zone() != "" {
		b[24] = a.Addr().Zone()[0] - '0'
	}
	return netlink.Attribute{Type: t, Data: b}
}

// table is a message of a dump of resources: the device, and a table without
// the flag of nested attributes.
func table(t uint16, rows ...netlink.Attribute) []byte {
	return attrBytes(u32(1, 3), str(2, "mlx5_3"), nestNoFlag(t, rows...))
}

func TestResources(t *testing.T) {
	t.Parallel()
	count := func(name string, n uint64) netlink.Attribute { return nestNoFlag(16, str(17, name), u64(18, n)) }
	got, err := script(t, exchange{message(0x1409, 0, u32(1, 3)), reply(u32(1, 3), str(2, "mlx5_3"), nestNoFlag(15,
		count("pd", 4), count("cq", 5), count("qp", 0), count("frmr", 1<<40),
	))}).Resources(3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := equal([]ResourceCount{{"pd", 4}, {"cq", 5}, {"qp", 0}, {"frmr", 1 << 40}}, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestContexts(t *testing.T) {
	t.Parallel()
	got, err := script(t, exchange{message(0x1416, netlink.Dump, u32(1, 3)), dump(
		table(86, nestNoFlag(87, u32(64, 0), u32(28, 510)), nestNoFlag(87), nestNoFlag(87, u32(64, 7), u8(300, 1))),
		table(86, nestNoFlag(87, u32(64, 9), u32(28, 511))),
	)}).Contexts(3)
	if err != nil {
		t.Fatal(err)
	}
	want := []Context{{Number: 0, Owner: Owner{PID: 510}}, {Number: 7}, {Number: 9, Owner: Owner{PID: 511}}}
	if diff := equal(want, got); diff != "" {
		t.Errorf("contexts (-want +got):\n%s", diff)
	}
}

func TestPDs(t *testing.T) {
	t.Parallel()
	got, err := script(t, exchange{message(0x140e, netlink.Dump, u32(1, 3)), dump(table(46,
		nestNoFlag(47, u32(48, 0), u32(49, 0x1234), u64(38, 8), u32(60, 0), str(29, "ib_core")),
		nestNoFlag(47, u64(38, 2), u32(60, 1), u32(64, 0), u32(28, 510)),
	))}).PDs(3)
	if err != nil {
		t.Fatal(err)
	}
	want := []PD{
		{Users: 8, LocalDMALKey: new(uint32(0)), UnsafeGlobalRKey: new(uint32(0x1234)), Owner: Owner{KernelName: "ib_core"}},
		{Number: 1, Context: new(uint32(0)), Users: 2, Owner: Owner{PID: 510}},
	}
	if diff := equal(want, got); diff != "" {
		t.Errorf("PDs (-want +got):\n%s", diff)
	}
}

func TestMRs(t *testing.T) {
	t.Parallel()
	got, err := script(t, exchange{message(0x140d, netlink.Dump, u32(1, 3)), dump(table(40,
		nestNoFlag(41, u32(42, 0x1111), u32(43, 0x2222), u64(44, 0x7f00), u64(45, 1<<34), u32(62, 5), u32(60, 1), u32(28, 510)),
		nestNoFlag(41, u64(45, 4096), u32(62, 6), str(29, "nvme_rdma")),
	))}).MRs(3)
	if err != nil {
		t.Fatal(err)
	}
	want := []MR{
		{
			Number: 5, PD: new(uint32(1)), Length: 1 << 34, LKey: new(uint32(0x2222)), RKey: new(uint32(0x1111)),
			IOVA: new(uint64(0x7f00)), Owner: Owner{PID: 510},
		},
		{Number: 6, Length: 4096, Owner: Owner{KernelName: "nvme_rdma"}},
	}
	if diff := equal(want, got); diff != "" {
		t.Errorf("MRs (-want +got):\n%s", diff)
	}
}

func TestCQs(t *testing.T) {
	t.Parallel()
	got, err := script(t, exchange{message(0x140c, netlink.Dump, u32(1, 3)), dump(table(35,
		nestNoFlag(36, u32(37, 8191), u64(38, 2), u8(39, 3), u8(84, 0), u32(61, 0), str(29, "ib_mad")),
		nestNoFlag(36, u32(37, 255), u64(38, 1), u8(84, 1), u32(61, 4), u32(64, 2), u32(28, 510)),
		nestNoFlag(36, u8(39, 9), u32(61, 5)),
	))}).CQs(3)
	if err != nil {
		t.Fatal(err)
	}
	want := []CQ{
		{Entries: 8191, Users: 2, PollContext: "UNBOUND_WORKQUEUE", AdaptiveModeration: new(false), Owner: Owner{KernelName: "ib_mad"}},
		{Number: 4, Context: new(uint32(2)), Entries: 255, Users: 1, AdaptiveModeration: new(true), Owner: Owner{PID: 510}},
		{Number: 5, PollContext: "9"},
	}
	if diff := equal(want, got); diff != "" {
		t.Errorf("CQs (-want +got):\n%s", diff)
	}
}

func TestCMIDs(t *testing.T) {
	t.Parallel()
	ib := netlink.Attribute{Type: 33, Data: make([]byte, 128)}
	ib.Data[0] = 27 // AF_IB
	got, err := script(t, exchange{message(0x140b, netlink.Dump, u32(1, 3)), dump(table(30,
		nestNoFlag(31, u32(3, 1), u32(21, 178), u8(26, 2), u32(32, 0x0106), u8(27, 5),
			sockaddr(33, "10.0.0.1:7471"), sockaddr(34, "10.0.0.2:39000"), u32(63, 0), u32(28, 510)),
		nestNoFlag(31, u32(32, 0x0111), u8(27, 8), sockaddr(33, "[fe80::1%2]:18515"), u32(63, 1), u32(28, 511)),
		nestNoFlag(31, u32(32, 0x7777), u8(27, 99), ib, u32(63, 2), str(29, "ib_ipoib")),
	))}).CMIDs(3)
	if err != nil {
		t.Fatal(err)
	}
	want := []CMID{
		{
			Port: 1, QPN: new(uint32(178)), QPType: "RC", PortSpace: "TCP", State: "CONNECT",
			Source: netip.MustParseAddrPort("10.0.0.1:7471"), Destination: netip.MustParseAddrPort("10.0.0.2:39000"), Owner: Owner{PID: 510},
		},
		{Number: 1, PortSpace: "UDP", State: "LISTEN", Source: netip.MustParseAddrPort("[fe80::1%2]:18515"), Owner: Owner{PID: 511}},
		{Number: 2, PortSpace: "30583", State: "99", Owner: Owner{KernelName: "ib_ipoib"}},
	}
	if diff := equal(want, got); diff != "" {
		t.Errorf("CM identifiers (-want +got):\n%s", diff)
	}
}

func TestQPs(t *testing.T) {
	t.Parallel()
	got, err := script(t, exchange{message(0x140a, netlink.Dump, u32(1, 3)), dump(table(19,
		nestNoFlag(20, u32(3, 1), u32(21, 1), str(29, "ib_core"), u32(24, 0), u8(26, 1), u8(27, 3)),
		nestNoFlag(20, u32(3, 1), u32(21, 178), u32(60, 1), u32(28, 510), u32(22, 179), u32(23, 5), u32(24, 6), u8(25, 0), u8(26, 2), u8(27, 3)),
		nestNoFlag(20, u32(21, 200), u32(60, 1), u32(24, 0), u8(26, 255), u8(27, 77), str(98, "DCT")),
	))}).QPs(3)
	if err != nil {
		t.Fatal(err)
	}
	want := []QP{
		{Number: 1, Port: 1, SendPSN: new(uint32(0)), Type: "GSI", State: "RTS", Owner: Owner{KernelName: "ib_core"}},
		{
			Number: 178, Port: 1, PD: new(uint32(1)), RemoteQPN: new(uint32(179)), ReceivePSN: new(uint32(5)), SendPSN: new(uint32(6)),
			Type: "RC", State: "RTS", PathMigration: "MIGRATED", Owner: Owner{PID: 510},
		},
		{Number: 200, PD: new(uint32(1)), SendPSN: new(uint32(0)), Type: "DRIVER", Subtype: "DCT", State: "77"},
	}
	if diff := equal(want, got); diff != "" {
		t.Errorf("QPs (-want +got):\n%s", diff)
	}
}

func TestSRQs(t *testing.T) {
	t.Parallel()
	got, err := script(t, exchange{message(0x1417, netlink.Dump, u32(1, 3)), dump(table(88,
		nestNoFlag(89, u32(90, 1), u8(26, 1), u32(60, 3), u32(61, 4),
			nest(19, nest(20, u32(21, 7)), nest(20, u32(91, 9), u32(92, 12))), u32(28, 510)),
	))}).SRQs(3)
	if err != nil {
		t.Fatal(err)
	}
	want := []SRQ{{
		Number: 1, PD: new(uint32(3)), CQ: new(uint32(4)), Type: "XRC", QPNs: []QPNRange{{7, 7}, {9, 12}}, Owner: Owner{PID: 510},
	}}
	if diff := equal(want, got); diff != "" {
		t.Errorf("SRQs (-want +got):\n%s", diff)
	}
}

// TestEntriesKeepWhatTheyRead has a message that is cut, and an error at the
// end of the dump.
func TestEntriesKeepWhatTheyRead(t *testing.T) {
	t.Parallel()
	row := func(n uint32) netlink.Attribute { return nestNoFlag(47, u32(60, n)) }
	bad := nestNoFlag(47, u32(60, 99), u8(38, 1))
	got, err := script(t, exchange{message(0x140e, netlink.Dump, u32(1, 3)), failingDump(
		syscall.ENOMEM, table(46, row(1), bad, row(2)), table(46, row(3)), table(46, row(4))[:22],
	)}).PDs(3)
	checkError(t, err, "rdma netlink RES_PD_GET device 3: cannot allocate memory")
	checkError(t, err, "rdma netlink RES_PD_GET device 3: netlink: attribute 38 is not a uint64")
	checkError(t, err, "rdma netlink RES_PD_GET device 3: invalid attribute")
	if diff := equal([]PD{{Number: 1}, {Number: 3}}, got); diff != "" {
		t.Errorf("PDs (-want +got):\n%s", diff)
	}
}

func TestDecodeSockaddr(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   []byte
		want netip.AddrPort
		err  string
	}{
		{name: "IPv4", in: sockaddr(0, "10.0.0.1:1").Data, want: netip.MustParseAddrPort("10.0.0.1:1")},
		{name: "IPv6", in: sockaddr(0, "[2001:db8::1]:65535").Data, want: netip.MustParseAddrPort("[2001:db8::1]:65535")},
		{name: "unspecified", in: sockaddr(0, "0.0.0.0:0").Data, want: netip.MustParseAddrPort("0.0.0.0:0")},
		{name: "other family", in: make([]byte, 128)},
		{name: "cut", in: make([]byte, 27), err: errShortAddr.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeSockaddr(tt.in)
			checkError(t, err, tt.err)
			if got != tt.want {
				t.Errorf("address %v, want %v", got, tt.want)
			}
		})
	}
}

func FuzzDecodeSockaddr(f *testing.F) {
	f.Add(sockaddr(0, "10.0.0.1:1").Data)
	f.Add(sockaddr(0, "[fe80::1%2]:18515").Data)
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, err := decodeSockaddr(b)
		if err != nil && addr.IsValid() || err == nil && len(b) < 28 {
			t.Errorf("error %v, value %v", err, addr)
		}
	})
}

// FuzzDecodeTable decodes the same bytes as each kind of table. No table has
// more rows than its bytes can hold, and a cut of an error keeps rows that were
// good.
func FuzzDecodeTable(f *testing.F) {
	f.Add(table(46, nestNoFlag(47, u64(38, 2), u32(60, 1), u32(64, 0), u32(28, 510))))
	f.Add(table(19, nestNoFlag(20, u32(3, 1), u32(21, 178), u32(60, 1), u32(28, 510), u8(25, 0), u8(26, 2), u8(27, 3))))
	f.Add(table(30, nestNoFlag(31, u32(32, 0x0106), u8(27, 5), sockaddr(33, "10.0.0.1:7471"))))
	f.Add(table(88, nestNoFlag(89, u32(90, 1), u8(26, 1), nest(19, nest(20, u32(91, 9), u32(92, 12))))))
	f.Add(table(77, boundCounter(4, u32(74, 1), nest(19, nest(20, u32(21, 178))), nest(80, hwCounter("x", 5)))))
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzTable(t, b, AttrResSummary, AttrResSummaryEntry, (*ResourceCount).decode)
		fuzzTable(t, b, AttrResCtx, AttrResCtxEntry, (*Context).decode)
		fuzzTable(t, b, AttrResPD, AttrResPDEntry, (*PD).decode)
		fuzzTable(t, b, AttrResMR, AttrResMREntry, (*MR).decode)
		fuzzTable(t, b, AttrResCQ, AttrResCQEntry, (*CQ).decode)
		fuzzTable(t, b, AttrResCMID, AttrResCMIDEntry, (*CMID).decode)
		fuzzTable(t, b, AttrResQP, AttrResQPEntry, (*QP).decode)
		fuzzTable(t, b, AttrResSRQ, AttrResSRQEntry, (*SRQ).decode)
		fuzzTable(t, b, AttrStatCounter, AttrStatCounterEntry, (*QPCounter).decode)
	})
}

func fuzzTable[T any](t *testing.T, b []byte, table, entry uint16, decode func(*T, *netlink.AttributeDecoder)) {
	t.Helper()
	rows, err := decodeTable(b, table, entry, decode)
	if 8*len(rows) > len(b) { // a row is an attribute with an attribute in it
		t.Errorf("%d rows of %d bytes", len(rows), len(b))
	}
	if err != nil {
		return
	}
	twice, err := decodeTable(append(b[:len(b):len(b)], b...), table, entry, decode)
	if len(b)%4 == 0 && (err != nil || len(twice) != 2*len(rows)) {
		t.Errorf("%d rows, and %d of the same bytes twice: %v", len(rows), len(twice), err)
	}
}
