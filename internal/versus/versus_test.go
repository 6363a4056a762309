package versus_test

import (
	"flag"
	"testing"

	"railhead/internal/versus"
)

// sink keeps the compiler from leaving out what is measured.
var sink []byte

// TestReports measures something that allocates beside something that does not.
func TestReports(t *testing.T) {
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		t.Fatal(err)
	}
	ours := func() error { sink = make([]byte, 1<<20); return nil }
	theirs := func() error {
		clear(sink)
		return nil
	}
	for name, compare := range map[string]func(*testing.B, func() error, func() error){"floor": versus.Floor, "peer": versus.Peer} {
		result := testing.Benchmark(func(b *testing.B) {
			b.Helper()
			compare(b, ours, theirs)
		})
		us, them := result.Extra["ours-ns"], result.Extra[name+"-ns"]
		if us <= 0 || them <= 0 || result.Extra["x-"+name] != us/them {
			t.Errorf("%s: %v ns, %v ns, %v times that", name, us, them, result.Extra["x-"+name])
		}
		if got := result.Extra["ours-B"]; got < 1<<20 || got > 1.2*(1<<20) {
			t.Errorf("%s: %v bytes, want %d", name, got, 1<<20)
		}
	}
}
