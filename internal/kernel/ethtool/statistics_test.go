package ethtool

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// A fakeDriver answers for the statistics of one netdev.
type fakeDriver struct {
	names    []string
	values   []uint64
	strict   bool   // as newer kernels: another number than asked for is answered with 0
	onNames  func() // called after each answer to GSTRINGS
	commands []string
}

func (d *fakeDriver) ioctl(_ string, data []byte) error {
	switch cmd := binary.NativeEndian.Uint32(data); cmd {
	case unix.ETHTOOL_GSTRINGS:
		d.commands = append(d.commands, "names")
		if set, n := binary.NativeEndian.Uint32(data[4:]), binary.NativeEndian.Uint32(data[8:]); set != 1 || n != 0 {
			return unix.EINVAL
		}
		copy(data, gstrings(d.names...))
		if d.onNames != nil {
			d.onNames()
		}
	case unix.ETHTOOL_GSTATS:
		d.commands = append(d.commands, "values")
		if n := int(binary.NativeEndian.Uint32(data[4:])); d.strict && n != len(d.values) {
			binary.NativeEndian.PutUint32(data[4:], 0)
			return nil
		}
		copy(data, gstats(d.values...))
	default:
		return unix.EOPNOTSUPP
	}
	return nil
}

func gstrings(names ...string) []byte {
	b := make([]byte, stringsHeader+stringSize*len(names))
	binary.NativeEndian.PutUint32(b, unix.ETHTOOL_GSTRINGS)
	binary.NativeEndian.PutUint32(b[4:], 1)
	binary.NativeEndian.PutUint32(b[8:], uint32(len(names)))
	for i, name := range names {
		copy(b[stringsHeader+stringSize*i:][:stringSize], name)
	}
	return b
}

func gstats(values ...uint64) []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.ETHTOOL_GSTATS)
	b = binary.NativeEndian.AppendUint32(b, uint32(len(values)))
	for _, v := range values {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	d := &fakeDriver{names: []string{"rx_packets", "tx_packets"}, values: []uint64{1, 1 << 63}}
	c := fakeIoctl(t, d.ioctl)
	fillArena(c)
	var fresh [][]string
	s := NewStatistics("eth0", func(names []string) { fresh = append(fresh, names) })
	var first []string
	for i := range 3 {
		d.values[0] += uint64(i)
		names, values, err := s.Read(c)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d.names, names); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(d.values, values); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
		if first == nil {
			first = names
		}
		if unsafe.SliceData(first) != unsafe.SliceData(names) {
			t.Error("another slice of the same names")
		}
	}
	if diff := cmp.Diff([][]string{d.names}, fresh); diff != "" {
		t.Errorf("names that were read (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"names", "values", "values", "values"}, d.commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestStatisticsNone(t *testing.T) {
	t.Parallel()
	d := &fakeDriver{}
	c, s := fakeIoctl(t, d.ioctl), NewStatistics("eth0", nil)
	for range 2 {
		names, values, err := s.Read(c)
		if len(names) != 0 || len(values) != 0 || err != nil {
			t.Errorf("got %v, %v, %v, want nothing", names, values, err)
		}
	}
	if diff := cmp.Diff([]string{"names", "values", "values"}, d.commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// The number of statistics changes between two reads, and once more between
// the names and the values.
func TestStatisticsChange(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		name := "older kernel"
		if strict {
			name = "newer kernel"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &fakeDriver{names: []string{"a"}, values: []uint64{1}, strict: strict}
			c, s := fakeIoctl(t, d.ioctl), NewStatistics("eth0", nil)
			if _, _, err := s.Read(c); err != nil {
				t.Fatal(err)
			}
			d.names, d.values, d.commands = []string{"a", "b"}, []uint64{1, 2}, nil
			d.onNames = func() {
				d.names, d.values, d.onNames = []string{"c", "d", "e"}, []uint64{3, 4, 5}, nil
			}
			names, values, err := s.Read(c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"c", "d", "e"}, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]uint64{3, 4, 5}, values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"values", "names", "values", "names", "values"}, d.commands); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatisticsNeverStill(t *testing.T) {
	t.Parallel()
	d := &fakeDriver{names: []string{"a"}, values: []uint64{1}}
	d.onNames = func() { d.names, d.values = append(d.names, "b"), append(d.values, 2) }
	_, _, err := NewStatistics("eth0", nil).Read(fakeIoctl(t, d.ioctl))
	if !errors.Is(err, ErrStatsChanged) || !strings.Contains(err.Error(), "eth0") {
		t.Errorf("error %v, want ErrStatsChanged of eth0", err)
	}
	if len(d.commands) != 2*readAttempts {
		t.Errorf("%d commands, want %d", len(d.commands), 2*readAttempts)
	}
}

// Names survive a read that fails.
func TestStatisticsError(t *testing.T) {
	t.Parallel()
	d := &fakeDriver{names: []string{"a"}, values: []uint64{1}}
	c := fakeIoctl(t, d.ioctl)
	s := NewStatistics("eth0", nil)
	if _, _, err := s.Read(c); err != nil {
		t.Fatal(err)
	}
	c.ioctl = func(string, []byte) error { return unix.EIO }
	if names, values, err := s.Read(c); !errors.Is(err, unix.EIO) || names != nil || values != nil {
		t.Errorf("got %v, %v, %v, want nothing but EIO", names, values, err)
	}
	c.ioctl, d.commands = d.ioctl, nil
	if _, _, err := s.Read(c); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"values"}, d.commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestStatsChanged(t *testing.T) {
	t.Parallel()
	d := &fakeDriver{values: []uint64{1, 2}}
	c := fakeIoctl(t, d.ioctl)
	dst := []uint64{7, 7, 7}
	if err := c.Stats("eth0", dst); !errors.Is(err, ErrStatsChanged) {
		t.Errorf("error %v, want ErrStatsChanged", err)
	}
	if diff := cmp.Diff([]uint64{7, 7, 7}, dst); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseStrings(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", stringSize)
	tests := []struct {
		name string
		data []byte
		want []string
		err  bool
	}{
		{name: "none", data: gstrings(), want: []string{}},
		{name: "the driver's own", data: gstrings("rx_packets", "[0]: rx bytes", "", "  x"), want: []string{"rx_packets", "[0]: rx bytes", "", "  x"}},
		{name: "not terminated", data: gstrings(long, "b"), want: []string{long, "b"}},
		{name: "after the end", data: gstrings("a\x00junk"), want: []string{"a"}},
		{name: "not UTF-8", data: gstrings("a\xff\xfeb", "µ"), want: []string{"a\uFFFDb", "µ"}},
		{name: "more room than strings", data: append(gstrings("a"), make([]byte, 100)...), want: []string{"a"}},
		{name: "fewer strings than said", data: gstrings("a", "b")[:stringsHeader+stringSize], err: true},
		{name: "no header", data: make([]byte, stringsHeader-1), err: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseStrings(tt.data)
			if (err != nil) != tt.err {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Either an error or as many names as the header says, each the text of its
// field, which comes back if it was text.
func FuzzParseStrings(f *testing.F) {
	f.Add(gstrings("rx_packets", strings.Repeat("n", 32), "\xff"))
	f.Add(gstrings("a")[:20])
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		names, err := parseStrings(data)
		if (err == nil) == (names == nil) {
			t.Fatalf("names %v and error %v", names, err)
		}
		if err != nil {
			return
		}
		if n := binary.NativeEndian.Uint32(data[8:]); int(n) != len(names) {
			t.Errorf("%d names, want %d", len(names), n)
		}
		for i, name := range names {
			field := data[stringsHeader+i*stringSize:][:stringSize]
			if !utf8.ValidString(name) || strings.Contains(name, "\x00") {
				t.Errorf("%q is no text", name)
			}
			if utf8.Valid(field) && !strings.HasPrefix(string(field)+"\x00", name+"\x00") {
				t.Errorf("%q of %q", name, field)
			}
		}
	})
}

// Either an error and nothing written, or the values.
func FuzzParseStats(f *testing.F) {
	f.Add(gstats(1, 2, 1<<63), uint8(3))
	f.Add(gstats(1, 2)[:12], uint8(2))
	f.Add([]byte(nil), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		dst := slices.Repeat([]uint64{0xa5}, int(n))
		if err := parseStats(data, dst); err != nil {
			if slices.ContainsFunc(dst, func(v uint64) bool { return v != 0xa5 }) {
				t.Errorf("error %v, and %v written", err, dst)
			}
			return
		}
		if want := gstats(dst...); string(want[4:]) != string(data[4:len(want)]) {
			t.Errorf("%v of %x", dst, data)
		}
	})
}

func TestStatsTooLong(t *testing.T) {
	t.Parallel()
	c := fakeIoctl(t, func(string, []byte) error { return unix.EFAULT })
	_, names := c.StatNames("eth0")
	for _, err := range []error{names, c.Stats("eth0", nil)} {
		if !errors.Is(err, unix.EFAULT) || !strings.Contains(err.Error(), "more than 4096 bytes") {
			t.Errorf("error %v, want one that says how much there is room for", err)
		}
	}
}

// BenchmarkStatistics reads as many statistics as a big NIC has, without the
// kernel's part.
func BenchmarkStatistics(b *testing.B) {
	d := &fakeDriver{names: make([]string, 2000)}
	answer := gstats(make([]uint64, 2000)...)
	c := &Client{arena: make([]byte, 1<<20)}
	c.ioctl = func(netdev string, data []byte) error {
		if binary.NativeEndian.Uint32(data) == unix.ETHTOOL_GSTATS {
			copy(data, answer)
			return nil
		}
		return d.ioctl(netdev, data)
	}
	s := NewStatistics("eth0", nil)
	if allocs := testing.AllocsPerRun(10, func() { _, _, _ = s.Read(c) }); allocs != 0 {
		b.Errorf("%v allocations a read, want none", allocs)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Read(c); err != nil {
			b.Fatal(err)
		}
	}
}
