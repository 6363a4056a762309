// Command metricsbench starts an exporter, scrapes it as Prometheus would, and
// prints what the exporter cost: its CPU time, its memory, and how long scrapes
// took. It measures any exporter, so that two can be compared on one machine:
//
//	go run ./hack/metricsbench -url http://127.0.0.1:9879/metrics -- bin/railhead agent …
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "metricsbench:", err)
		os.Exit(1)
	}
}

// settings are what the command line asks for.
type settings struct {
	url      string
	every    time.Duration
	duration time.Duration
	command  []string
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("metricsbench", flag.ContinueOnError)
	flags.StringVar(&s.url, "url", "http://127.0.0.1:9879/metrics", "what to scrape")
	flags.DurationVar(&s.every, "every", 5*time.Second, "how often to scrape")
	flags.DurationVar(&s.duration, "duration", time.Minute, "how long to measure, after the first scrape")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.command = flags.Args(); len(s.command) == 0 {
		return s, errors.New("no command: give that of an exporter behind --")
	}
	if s.every <= 0 || s.duration < s.every {
		return s, fmt.Errorf("-every %v and -duration %v: at least one scrape must fit", s.every, s.duration)
	}
	return s, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	exporter := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	exporter.Stdout, exporter.Stderr = os.Stderr, os.Stderr
	exporter.Cancel = func() error { return exporter.Process.Signal(syscall.SIGTERM) }
	exporter.WaitDelay = 10 * time.Second
	if err := exporter.Start(); err != nil {
		return err
	}
	defer func() {
		_ = exporter.Process.Signal(syscall.SIGTERM)
		_ = exporter.Wait() // that it was told to end is no failure
	}()
	if err := await(ctx, s.url); err != nil {
		return err
	}
	result, err := measure(ctx, s, exporter.Process.Pid)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, result.String())
	return err
}

// await waits for the exporter to answer.
func await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, _, err := scrape(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer in a minute: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// measure scrapes for a time.
func measure(ctx context.Context, s settings, pid int) (result, error) {
	before, err := usageOf(pid)
	if err != nil {
		return result{}, err
	}
	var r result
	start := time.Now()
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for time.Since(start) < s.duration {
		select {
		case <-ctx.Done():
			return result{}, ctx.Err()
		case <-tick.C:
		}
		took, bytes, err := scrape(ctx, s.url)
		if err != nil {
			return result{}, err
		}
		r.scrapes, r.bytes = append(r.scrapes, took), bytes
	}
	after, err := usageOf(pid)
	if err != nil {
		return result{}, err
	}
	r.cpu, r.wall, r.rss, r.peak = after.cpu-before.cpu, time.Since(start), after.rss, after.peak
	slices.Sort(r.scrapes)
	return r, nil
}

// scrape returns how long a scrape took, and how large the answer is.
func scrape(ctx context.Context, url string) (time.Duration, int64, error) {
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, 0, err
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	bytes, err := io.Copy(io.Discard, response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return time.Since(start), bytes, err
}

// result is what was measured.
type result struct {
	scrapes   []time.Duration // shortest first
	bytes     int64           // of the last answer
	cpu, wall time.Duration
	rss, peak uint64 // bytes
}

func (r result) String() string {
	const mebi = 1 << 20
	return fmt.Sprintf("CPU       %v in %v: %.2f %% of a core\nmemory    %.1f MiB resident, %.1f MiB at most\nscrapes   %d of %d bytes: %v in the middle, %v at most\n",
		r.cpu.Round(time.Millisecond), r.wall.Round(time.Second), 100*r.cpu.Seconds()/r.wall.Seconds(),
		float64(r.rss)/mebi, float64(r.peak)/mebi,
		len(r.scrapes), r.bytes, r.scrapes[len(r.scrapes)/2].Round(time.Microsecond), r.scrapes[len(r.scrapes)-1].Round(time.Microsecond))
}
