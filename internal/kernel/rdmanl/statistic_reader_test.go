package rdmanl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
)

// FuzzPortStatistics holds the reader that keeps names against the decoder that
// does not: whatever was read before, both find the same counters.
func FuzzPortStatistics(f *testing.F) {
	first := encodeStatistics(f, Counter{"rx_write_requests", 1}, Counter{"out_of_buffer", 2})
	f.Add(first, encodeStatistics(f, Counter{"rx_write_requests", 3}))
	f.Add(first, encodeStatistics(f, Counter{"rx_write_requests", 3}, Counter{"np_cnp_sent", 4}, Counter{"out_of_buffer", 5}))
	f.Add(first, []byte{4, 0})
	f.Fuzz(func(t *testing.T, before, now []byte) {
		var s PortStatistics
		_ = s.decode(before)
		want, errWant := decodeStatistics(now)
		err := s.decode(now)
		if err != nil {
			return // it may be stricter, as with a value of four bytes behind an error
		}
		if errWant != nil {
			t.Fatalf("no error, decodeStatistics says %v", errWant)
		}
		var got []Counter
		for i, name := range s.names {
			got = append(got, Counter{name, s.values[i]})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPortStatisticsKeepsNames(t *testing.T) {
	t.Parallel()
	var s PortStatistics
	read := func(counters ...Counter) []string {
		t.Helper()
		if err := s.decode(encodeStatistics(t, counters...)); err != nil {
			t.Fatal(err)
		}
		return s.names
	}
	first := read(Counter{"a", 1}, Counter{"b", 2})
	if again := read(Counter{"a", 3}, Counter{"b", 4}); &again[0] != &first[0] || len(again) != len(first) {
		t.Error("the same names are another slice")
	}
	for _, changed := range [][]Counter{{{"a", 1}}, {{"a", 1}, {"c", 2}}, {{"a", 1}, {"b", 2}, {"c", 3}}} {
		read(Counter{"a", 1}, Counter{"b", 2})
		before := s.names
		if now := read(changed...); len(now) == len(before) && &now[0] == &before[0] {
			t.Errorf("%v: other names in the same slice", changed)
		}
		if diff := cmp.Diff([]string{"a", "b"}, before); diff != "" {
			t.Errorf("names that were returned changed: %s", diff)
		}
	}
}

func TestPortStatisticsAllocatesNothing(t *testing.T) {
	var s PortStatistics
	b := encodeStatistics(t, Counter{"rx_write_requests", 1}, Counter{"out_of_buffer", 2}, Counter{"np_cnp_sent", 3})
	allocs := testing.AllocsPerRun(100, func() {
		if err := s.decode(b); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func encodeStatistics(tb testing.TB, counters ...Counter) []byte {
	tb.Helper()
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(AttrDevIndex, 1)
	ae.Nested(AttrStatHWCounters, func(ae *netlink.AttributeEncoder) error {
		for _, c := range counters {
			ae.Nested(AttrStatHWCounterEntry, func(ae *netlink.AttributeEncoder) error {
				ae.String(AttrStatHWCounterEntryName, c.Name)
				ae.Uint64(AttrStatHWCounterEntryValue, c.Value)
				return nil
			})
		}
		return nil
	})
	b, err := ae.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
