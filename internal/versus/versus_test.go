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
	one := map[string]func(*testing.B, func() error, func() error){"floor": versus.Floor, "peer": versus.Peer}
	steps := map[string]func(*testing.B, ...versus.Step){"floor": versus.FloorSteps, "peer": versus.PeerSteps}
	for name := range one {
		wantReport(t, "", name, testing.Benchmark(func(b *testing.B) {
			b.Helper()
			one[name](b, ours, theirs)
		}))
		result := testing.Benchmark(func(b *testing.B) {
			b.Helper()
			steps[name](b, versus.Step{Name: "add", Ours: ours, Theirs: theirs}, versus.Step{Name: "del", Ours: ours, Theirs: theirs})
		})
		wantReport(t, "add-", name, result)
		wantReport(t, "del-", name, result)
	}
}

// wantReport wants all that is reported of a step.
func wantReport(t *testing.T, step, other string, result testing.BenchmarkResult) {
	t.Helper()
	got := func(unit string) float64 { return result.Extra[step+unit] }
	for _, clock := range []string{"", "-wall"} {
		ratio := "x-" + other
		if clock != "" {
			ratio = "x-wall"
		}
		us, them := got("ours"+clock+"-ns"), got(other+clock+"-ns")
		if us <= 0 || them <= 0 || got(ratio) != us/them {
			t.Errorf("%s%s: %v ns, %v ns, %v times that", step, other+clock, us, them, got(ratio))
		}
	}
	if got := got("ours-B"); got < 1<<20 || got > 1.2*(1<<20) {
		t.Errorf("%s%s: %v bytes, want %d", step, other, got, 1<<20)
	}
}
