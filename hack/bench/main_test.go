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
=== RUN   BenchmarkRender
BenchmarkRender/text,_with_3_labels
BenchmarkRender/text,_with_3_labels-2 	 18	 0 ours-B	 983000 ours-ns	 25699444 peer-ns	 0.040 x-peer
BenchmarkRender/text,_with_3_labels-2 	 18	 0 ours-B	 500000 ours-ns	 25000000 peer-ns	 0.020 x-peer
BenchmarkRender/text,_with_3_labels-2 	 18	 0 ours-B	 490000 ours-ns	 25000000 peer-ns	 0.019 x-peer
BenchmarkSample/all_tiers 	 72	 6000000 floor-ns	 17000000 beside-floor-ns	 23000000 ours-ns	 3.833 x-floor
BenchmarkAttach-2 	 5	 9000000 del-ours-wall-ns	 3000000 del-peer-wall-ns	 3.0 del-x-wall	 120 pods/s	 1.7 x-cpu	 40 peer-pods/s
BenchmarkMinute-2 	 5	 235140752 ns/op	 0.5 %core	 10485760 kept-B
BenchmarkIdle/with 	 1	 31457280 resident-B
BenchmarkLost
    lost_test.go:7: needs a thing: have one
--- SKIP: BenchmarkLost
PASS
`

// TestTable judges what benchmarks reported, and what none did.
func TestTable(t *testing.T) {
	t.Parallel()
	found := &results{}
	if err := found.read("internal/exporter", []byte(output)); err != nil {
		t.Fatal(err)
	}
	const render, sample, attach = "internal/exporter.Render/text, with 3 labels", "internal/exporter.Sample/all tiers", "internal/exporter.Attach"
	const minute, with = "internal/exporter.Minute", "internal/exporter.Idle/with"
	list := []budget{
		{what: "render", benchmark: render, unit: "x-peer", against: "client_golang", atMost: 0.02},
		{what: "render, memory", benchmark: render, unit: "ours-B", atMost: 100},
		{what: "sample", benchmark: sample, unit: "x-floor", against: "questions", atMost: 3},
		{what: "sample, beside", benchmark: sample, unit: "beside-floor-sec", against: "questions", atMost: 17 * millisecond},
		{what: "sample, time", benchmark: sample, unit: "ours-sec", against: "questions", atMost: 22.9 * millisecond},
		{what: "detach", benchmark: attach, unit: "del-x-wall", against: "plugins", atMost: 3},
		{what: "pods", benchmark: attach, unit: "pods/s", against: "plugins", atLeast: 121},
		{what: "pods to look at", benchmark: attach, unit: "pods/s", against: "plugins"},
		{what: "dearest", benchmark: attach, unit: "x-cpu", atMost: 1.7},
		{what: "agent", benchmark: minute, unit: "%core", atMost: 0.5},
		{what: "agent, memory", benchmark: with, unit: "resident-B", plusKept: minute, atMost: 45 * mebibyte},
		{what: "lost", benchmark: "internal/exporter.Lost", unit: "x-floor", against: "questions", atMost: 1},
	}
	var out strings.Builder
	missed, err := printTable(&out, list, found)
	if err != nil || missed != 5 {
		t.Errorf("%d missed, want 5, error %v", missed, err)
	}
	want := `
WHAT             OURS                      FLOOR OR PEER  TAKES      RATIO   BUDGET              MET
render           500.0µs                   client_golang  25.00ms    0.02 x  ≤ 0.02 x            yes
render, memory   0.000B                                                      ≤ 100.0B            yes
sample           23.00ms                   questions      6.000ms    3.83 x  ≤ 3 x               NO
sample, beside   23.00ms (17.00ms beside)  questions      6.000ms    3.83 x  ≤ 17.00ms           yes
sample, time     23.00ms                   questions      6.000ms    3.83 x  ≤ 22.90ms           NO
detach           9.000ms                   plugins        3.000ms    3 x     ≤ 3 x               yes
pods             120 pods/s                plugins        40 pods/s  3 x     ≥ 121 pods/s        NO
pods to look at  120 pods/s                plugins        40 pods/s  3 x                         
dearest          1.7 x                                                       ≤ 1.7 x             yes
agent            0.50 % of a core                                            ≤ 0.50 % of a core  yes
agent, memory    46.00MiB                                                    ≤ 45.00MiB          NO
lost                                       questions                         ≤ 1 x               NOT MEASURED
NOT MEASURED: internal/exporter.Lost: needs a thing: have one
`
	if diff := cmp.Diff(want, "\n"+out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	list := benchmarks([]budget{
		{benchmark: "a.One/b c"}, {benchmark: "a.One/d.e"}, {benchmark: "a.Two/f", plusKept: "a.Three"}, {benchmark: "other.Four"},
	})
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
	for _, benchmark := range benchmarks(budgets) {
		pkg, name, _ := strings.Cut(benchmark, ".")
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
			t.Errorf("%s has no Benchmark%s", pkg, name)
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
