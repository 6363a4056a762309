package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// packages are the packages with the benchmarks of budgets.
func packages(list []budget) []string {
	var pkgs []string
	for _, b := range list {
		pkg, _, _ := strings.Cut(b.benchmark, ".")
		pkgs = append(pkgs, pkg)
	}
	slices.Sort(pkgs)
	return slices.Compact(pkgs)
}

// patterns select the benchmarks of a package, as -bench takes them: a regular
// expression for each part of their names. One with two parts does not select
// benchmarks whose names have one, so that these are selected apart.
func patterns(list []budget, pkg string) []string {
	var whole, first, second []string
	for _, b := range list {
		of, name, _ := strings.Cut(b.benchmark, ".")
		if of != pkg {
			continue
		}
		name, sub, ok := strings.Cut("Benchmark"+testName(name), "/")
		if !ok {
			whole = append(whole, regexp.QuoteMeta(name))
			continue
		}
		first, second = append(first, regexp.QuoteMeta(name)), append(second, regexp.QuoteMeta(sub))
	}
	var all []string
	if len(whole) > 0 {
		all = append(all, anyOf(whole))
	}
	if len(first) > 0 {
		all = append(all, anyOf(first)+"/"+anyOf(second))
	}
	return all
}

func anyOf(names []string) string {
	slices.Sort(names)
	return "^(" + strings.Join(slices.Compact(names), "|") + ")$"
}

// testName is a name as go test prints it.
func testName(name string) string { return strings.ReplaceAll(name, " ", "_") }

// runBenchmarks runs benchmarks of a package, and adds what they report.
func runBenchmarks(ctx context.Context, s settings, pkg, pattern string, found results) error {
	fmt.Fprintf(os.Stderr, "%s %s\n", pkg, pattern)
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern,
		"-benchtime", s.time.String(), "-count", strconv.Itoa(s.count), "./"+pkg)
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w:\n%s", strings.Join(cmd.Args, " "), err, stdout.Bytes())
	}
	return found.read(pkg, &stdout)
}

// results are values by benchmark and unit. Units are those of benchfmt: seconds
// where a benchmark reports nanoseconds.
type results map[string]map[string][]float64

func (r results) add(benchmark, unit string, value float64) {
	if r[benchmark] == nil {
		r[benchmark] = map[string][]float64{}
	}
	r[benchmark][unit] = append(r[benchmark][unit], value)
}

// read adds what the benchmarks of a package report.
func (r results) read(pkg string, output io.Reader) error {
	reader := benchfmt.NewReader(output, pkg)
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // a unit, or a line that is no result
		}
		name := result.Name.String()
		if _, parts := result.Name.Parts(); len(parts) > 0 && parts[len(parts)-1][0] == '-' { // GOMAXPROCS
			name = strings.TrimSuffix(name, string(parts[len(parts)-1]))
		}
		for _, v := range result.Values {
			r.add(pkg+"."+name, v.Unit, v.Value)
		}
	}
	return reader.Err()
}

// median is the middle one of the values of a benchmark.
func (r results) median(benchmark, unit string) (value float64, ok bool) {
	pkg, name, _ := strings.Cut(benchmark, ".")
	values := slices.Sorted(slices.Values(r[pkg+"."+testName(name)][unit]))
	if len(values) == 0 {
		return 0, false
	}
	return values[len(values)/2], true
}
