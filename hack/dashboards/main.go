// Command dashboards writes the Grafana dashboards of the chart:
//
//	go run ./hack/dashboards [-o DIR]
//
// The dashboards are defined in the package boards; what a metric means comes
// from the table of the package counters.
package main

//go:generate go run . -o ../../charts/railhead/files/dashboards

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"railhead/hack/dashboards/boards"
	"railhead/internal/counters"
)

func main() {
	dir := flag.String("o", "charts/railhead/files/dashboards", "the `directory` to write to")
	flag.Parse()
	if err := generate(*dir); err != nil {
		fmt.Fprintf(os.Stderr, "dashboards: %v\n", err)
		os.Exit(1)
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
