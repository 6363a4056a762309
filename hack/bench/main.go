// Command bench runs the benchmarks that have a budget and prints a line for
// each: what ours takes, what the floor or the peer takes that was measured in
// the same run, how many times that is, the budget, and whether it is met.
//
//	go run ./hack/bench                          # ten minutes on two cores
//	go run ./hack/bench -only scrape -count 10
//	go run ./hack/bench -strict                  # fails where a budget is not met
//
// Some need root, for network namespaces, and some a real API server, which
// RAILHEAD_API=1 allows. What cannot be measured here is said behind the table, and
// is a budget that is not met. The first time, Multus is built, and with
// RAILHEAD_API=1 Kubernetes, which takes a quarter of an hour.
//
// Times are of the CPU, so that others on the machine count for little, but not
// for nothing. Each figure is the middle one of -count runs; what takes minutes is
// measured once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// own is this package, whose benchmarks are of agents as processes.
const own = "hack/bench"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are what the command line asks for.
type settings struct {
	only   *regexp.Regexp
	count  int
	time   time.Duration
	strict bool
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "", "regular expression: the budgets to measure, by what they are for")
	flags.IntVar(&s.count, "count", 5, "how often to measure")
	flags.DurationVar(&s.time, "time", time.Second, "how long to measure each time")
	flags.BoolVar(&s.strict, "strict", false, "fail where a budget is not met")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.count < 1 || s.time <= 0 {
		return s, fmt.Errorf("-count %d and -time %v: nothing would be measured", s.count, s.time)
	}
	var err error
	s.only, err = regexp.Compile(*only)
	return s, err
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Clone(budgets), func(b budget) bool { return !s.only.MatchString(b.what) })
	if len(list) == 0 {
		return fmt.Errorf("-only %s: no budget is for such a thing", s.only)
	}
	found := &results{}
	err = measure(ctx, s, benchmarks(list), found)
	missed, printErr := printTable(out, list, found)
	if err = errors.Join(err, printErr); err == nil && s.strict && missed > 0 {
		err = fmt.Errorf("%d of %d budgets are not met", missed, len(list))
	}
	return err
}

// measure runs benchmarks, of one package after the other. Those of our own are
// idle agents, which settle meanwhile. A package that fails does not keep the
// others from being measured.
func measure(ctx context.Context, s settings, benchmarks []string, found *results) error {
	var group errgroup.Group
	pkgs := packages(benchmarks)
	if i := slices.Index(pkgs, own); i >= 0 {
		pkgs = slices.Delete(pkgs, i, i+1)
		group.Go(func() error { return measurePackage(ctx, s, own, benchmarks, found) })
	}
	var errs []error
	for _, pkg := range pkgs {
		errs = append(errs, measurePackage(ctx, s, pkg, benchmarks, found))
	}
	return errors.Join(append(errs, group.Wait())...)
}

func measurePackage(ctx context.Context, s settings, pkg string, benchmarks []string, found *results) error {
	var errs []error
	for _, pattern := range patterns(benchmarks, pkg) {
		errs = append(errs, runBenchmarks(ctx, s, pkg, pattern, found))
	}
	return errors.Join(errs...)
}
