package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const output = `goos: linux
pkg: railhead/internal/exporter
BenchmarkRender/text,_with_3_labels-2 	 18	 0 ours-B	 983000 ours-ns	 25699444 peer-ns	 0.040 x-peer
BenchmarkRender/text,_with_3_labels-2 	 18	 0 ours-B	 500000 ours-ns	 25000000 peer-ns	 0.020 x-peer
BenchmarkRender/text,_with_3_labels-2 	 18	 0 ours-B	 490000 ours-ns	 25000000 peer-ns	 0.019 x-peer
BenchmarkSample/all_tiers 	 72	 6000000 floor-ns	 3400603 ours-B	 23000000 ours-ns	 3.833 x-floor
BenchmarkMinute-2 	 5	 235140752 ns/op	 0.5 %core	 10485760 kept-B
PASS
`

// TestTable judges what benchmarks reported, and what none did.
func TestTable(t *testing.T) {
	t.Parallel()
	found := results{}
	if err := found.read("internal/exporter", strings.NewReader(output)); err != nil {
		t.Fatal(err)
	}
	found.add(idleWithout, "resident-B", 30*mebibyte)
	found.add(idleWith, "resident-B", 29*mebibyte)
	list := []budget{
		{"render", "internal/exporter.Render/text, with 3 labels", peers, "client_golang", 0.02},
		{"render, memory", "internal/exporter.Render/text, with 3 labels", allocated, "", 100},
		{"sample", "internal/exporter.Sample/all tiers", floors, "questions", 3},
		{"sample, beside", "internal/exporter.Sample/all tiers", beside, "questions", 17 * millisecond},
		{"sample, time", "internal/exporter.Sample/all tiers", cpu, "questions", 22.9 * millisecond},
		{"agent", "internal/exporter.Minute", core, "", 0.5},
		{"agent, memory", "internal/exporter.Minute", resident, "", 42 * mebibyte},
		{"agent, all on", "internal/exporter.Minute", residentAll, "", 45.5 * mebibyte},
		{"lost", "internal/exporter.Lost", floors, "questions", 1},
	}
	var out strings.Builder
	missed, err := printTable(&out, list, found)
	if err != nil || missed != 4 {
		t.Errorf("%d missed, want 4, error %v", missed, err)
	}
	want := `WHAT            OURS                      FLOOR OR PEER  TAKES    RATIO   BUDGET              MET
render          500.0µs                   client_golang  25.00ms  0.02 x  ≤ 0.02 x            yes
render, memory  0.000B                                                    ≤ 100.0B            yes
sample          23.00ms                   questions      6.000ms  3.83 x  ≤ 3 x               NO
sample, beside  23.00ms (17.00ms beside)  questions      6.000ms  3.83 x  ≤ 17.00ms beside    yes
sample, time    23.00ms                   questions      6.000ms  3.83 x  ≤ 22.90ms           NO
agent           0.50 % of a core                                          ≤ 0.50 % of a core  yes
agent, memory   46.00MiB                                                  ≤ 42.00MiB          NO
agent, all on   45.00MiB                                                  ≤ 45.50MiB          yes
lost                                      questions                       ≤ 1 x               not measured
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	list := []budget{{benchmark: "a.One/b c"}, {benchmark: "a.One/d.e"}, {benchmark: "a.Two/f"}, {benchmark: "a.Three"}, {benchmark: "other.Four"}}
	want := []string{"^(BenchmarkThree)$", `^(BenchmarkOne|BenchmarkTwo)$/^(b_c|d\.e|f)$`}
	if diff := cmp.Diff(want, patterns(list, "a")); diff != "" {
		t.Errorf("patterns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "other"}, packages(list)); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}

// TestBudgets finds benchmarks of budgets that are gone, as far as their names
// stand in the source.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for _, b := range budgets {
		pkg, name, _ := strings.Cut(b.benchmark, ".")
		name, _, _ = strings.Cut(name, "/")
		files, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		isThere := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			isThere = isThere || strings.Contains(string(text), "func Benchmark"+name+"(")
		}
		if !isThere {
			t.Errorf("%s: %s has no Benchmark%s", b.what, pkg, name)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-count", "0"}, "nothing would be measured"},
		{[]string{"-time", "0s"}, "nothing would be measured"},
		{[]string{"-only", "("}, "missing closing )"},
		{[]string{"-only", "no such thing"}, "no budget is for such a thing"},
	} {
		if err := run(context.Background(), tt.args, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one with %q", tt.args, err, tt.want)
		}
	}
	if s, err := parse(nil); err != nil || s.strict || !s.only.MatchString("anything") {
		t.Errorf("without arguments: %+v, error %v", s, err)
	}
}

func TestResident(t *testing.T) {
	t.Parallel()
	if got, err := residentOf("Name:\tVmRSS: 7 kB\nVmHWM:\t    40 kB\nVmRSS:\t    36 kB\n"); err != nil || got != 36<<10 {
		t.Errorf("%v bytes, error %v, want %d", got, err, 36<<10)
	}
	for _, status := range []string{"", "Name:\tx\n", "VmRSS:\t36 MB\n"} {
		if got, err := residentOf(status); err == nil {
			t.Errorf("%q: %v bytes, want an error", status, got)
		}
	}
}
