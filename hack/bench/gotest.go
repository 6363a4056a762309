package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/perf/benchfmt"
)

// benchmarks are those that a list of budgets is of.
func benchmarks(list []budget) []string {
	var all []string
	for _, b := range list {
		all = append(all, b.benchmark)
		if b.plusKept != "" {
			all = append(all, b.plusKept)
		}
	}
	return all
}

// packages are the packages of benchmarks.
func packages(benchmarks []string) []string {
	var pkgs []string
	for _, b := range benchmarks {
		pkg, _, _ := strings.Cut(b, ".")
		pkgs = append(pkgs, pkg)
	}
	slices.Sort(pkgs)
	return slices.Compact(pkgs)
}

// patterns select the benchmarks of a package, as -bench takes them: a regular
// expression for each part of their names. One with two parts does not select
// benchmarks whose names have one, so that these are selected apart.
func patterns(benchmarks []string, pkg string) []string {
	var whole, first, second []string
	for _, b := range benchmarks {
		of, name, _ := strings.Cut(b, ".")
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
func runBenchmarks(ctx context.Context, s settings, pkg, pattern string, found *results) error {
	fmt.Fprintf(os.Stderr, "%s %s\n", pkg, pattern)
	count, long := strconv.Itoa(s.count), s.time.String()
	if slices.Contains(once, pkg) {
		count, long = "1", "1x"
	}
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "test", "-v", "-run", "^$", "-bench", pattern,
		"-benchtime", long, "-count", count, "-timeout", "30m", "./"+pkg)
	cmd.Env = append(os.Environ(), "RAILHEAD_NIGHTLY=1") // sizes that budgets are of
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	runErr := cmd.Run()
	err := found.read(pkg, stdout.Bytes())
	if runErr != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w:\n%s", strings.Join(cmd.Args, " "), runErr, stdout.Bytes()))
	}
	return err
}

// results are values by benchmark and unit, and why others were not measured.
// Units are those of benchfmt: seconds where a benchmark reports nanoseconds.
type results struct {
	mu      sync.Mutex
	values  map[string]map[string][]float64
	skipped []string
}

func (r *results) add(benchmark, unit string, value float64) {
	if r.values == nil {
		r.values = map[string]map[string][]float64{}
	}
	if r.values[benchmark] == nil {
		r.values[benchmark] = map[string][]float64{}
	}
	r.values[benchmark][unit] = append(r.values[benchmark][unit], value)
}

// read adds what the benchmarks of a package report, and those that were skipped.
func (r *results) read(pkg string, output []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readSkipped(pkg, string(output))
	reader := benchfmt.NewReader(bytes.NewReader(output), pkg)
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

// readSkipped adds the reason that a benchmark gave, which stands before the line
// that says that it was skipped.
func (r *results) readSkipped(pkg, output string) {
	reason := ""
	for line := range strings.Lines(output) {
		name, isSkipped := strings.CutPrefix(strings.TrimSpace(line), "--- SKIP: Benchmark")
		if !isSkipped {
			_, reason, _ = strings.Cut(strings.TrimSpace(line), ": ") // behind the line in the source
			continue
		}
		if said := pkg + "." + name + ": " + reason; !slices.Contains(r.skipped, said) {
			r.skipped = append(r.skipped, said)
		}
	}
}

// median is the middle one of the values of a benchmark.
func (r *results) median(benchmark, unit string) (value float64, ok bool) {
	pkg, name, _ := strings.Cut(benchmark, ".")
	values := slices.Sorted(slices.Values(r.values[pkg+"."+testName(name)][unit]))
	if len(values) == 0 {
		return 0, false
	}
	return values[len(values)/2], true
}
