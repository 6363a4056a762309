// Command bench runs the benchmarks that have a budget and prints a line for
// each: what ours takes, what the floor or the peer takes that was measured in
// the same run, how many times that is, the budget, and whether it is met.
//
//	go run ./hack/bench                          # four minutes on two cores
//	go run ./hack/bench -only scrape -count 10
//	go run ./hack/bench -strict                  # fails where a budget is not met
//
// Times are of the CPU, so that others on the machine count for little, but not
// for nothing. Each figure is the middle one of -count runs.
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
)

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
	found, err := measure(ctx, s, list)
	if err != nil {
		return err
	}
	missed, err := printTable(out, list, found)
	if err == nil && s.strict && missed > 0 {
		err = fmt.Errorf("%d of %d budgets are not met", missed, len(list))
	}
	return err
}

// measure measures what a list of budgets is about. The idle agents settle
// while the benchmarks run.
func measure(ctx context.Context, s settings, list []budget) (results, error) {
	found := results{}
	var idle *idleAgents
	if slices.ContainsFunc(list, func(b budget) bool { return b.figure == resident || b.figure == residentAll }) {
		var err error
		if idle, err = startIdle(ctx); err != nil {
			return nil, err
		}
		defer idle.end()
	}
	for _, pkg := range packages(list) {
		for _, pattern := range patterns(list, pkg) {
			if err := runBenchmarks(ctx, s, pkg, pattern, found); err != nil {
				return nil, err
			}
		}
	}
	if idle == nil {
		return found, nil
	}
	return found, idle.add(ctx, found)
}
