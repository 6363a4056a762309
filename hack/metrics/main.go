// Metrics writes docs/metrics.md: every metric of railhead, from the table that
// the exporter itself goes by.
package main

//go:generate go run . ../../docs/metrics.md

import (
	"bytes"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments, want the file to write", len(args))
	}
	var page bytes.Buffer
	write(&page)
	return os.WriteFile(args[0], page.Bytes(), 0o644)
}
