// Package golden compares what a test made with a file, and writes the file
// where the test runs with -update.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Update says whether golden files are to be written. Tests that keep several
// goldens in one file ask it.
func Update() bool { return *update }

// Equal wants got to be what the file holds.
func Equal[T string | []byte](tb testing.TB, file string, got T) {
	tb.Helper()
	if *update {
		write(tb, file, []byte(got))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		tb.Errorf("%s differs (-want +got), go test -update accepts it:\n%s", file, diff)
	}
}

func write(tb testing.TB, file string, text []byte) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		tb.Fatal(err)
	}
}
