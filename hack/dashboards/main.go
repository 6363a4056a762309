// Command dashboards makes the Grafana dashboards of the chart, and pictures of
// them.
//
//	go run ./hack/dashboards generate [-o DIR]
//	go run ./hack/dashboards picture [-o DIR] [-chromium FILE]
//
// The dashboards are defined in the package boards; what a metric means comes
// from the table of the package counters. Pictures are drawn from a simulated
// cluster by the package picture and Chromium, not by Grafana; they need
// Prometheus and promtool too.
package main

//go:generate go run . generate -o ../../charts/railhead/files/dashboards

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"railhead/hack/dashboards/boards"
	"railhead/internal/counters"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "dashboards: %v\n", err)
		os.Exit(1)
	}
}

// run executes one command line.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("dashboards "+verb, flag.ContinueOnError)
	flags.SetOutput(stderr)
	switch verb {
	case "generate":
		dir := flags.String("o", "charts/railhead/files/dashboards", "the `directory` to write to")
		if err := flags.Parse(args); err != nil {
			return err
		}
		return generate(*dir)
	case "picture":
		dir := flags.String("o", "docs/images", "the `directory` to write to")
		s := sketch{}
		flags.StringVar(&s.scenarios, "scenarios", "scenarios", "the `directory` of the simulated nodes")
		flags.StringVar(&s.rules, "rules", "charts/railhead/files/rules", "the `directory` of Prometheus' rules")
		flags.StringVar(&s.chromium, "chromium", "chromium", "the `program` that makes a picture of a page")
		flags.StringVar(&s.prometheus, "prometheus", "prometheus", "the `program` Prometheus")
		flags.StringVar(&s.promtool, "promtool", "promtool", "the `program` promtool")
		if err := flags.Parse(args); err != nil {
			return err
		}
		return s.pictures(ctx, *dir)
	default:
		return fmt.Errorf("verb %q, want generate or picture", verb)
	}
}

// generate writes all dashboards to a directory.
func generate(dir string) error {
	files, err := boards.Files(counters.Families())
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
