package api

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

func TestMain(m *testing.M) {
	Launch()
	BecomeAgent()
	ctrl.SetLogger(logr.Discard()) // the controller has a logger of its own
	os.Exit(runTests(m))
}

// runTests runs the tests, and ends what they share.
func runTests(m *testing.M) (code int) {
	if os.Getenv(sharedEnv) == "" { // otherwise it is shared with the process that started this one
		dir, err := os.MkdirTemp("", "railhead-api-")
		if err == nil {
			err = os.Setenv(sharedEnv, dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		defer func() {
			if err := shared.stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}()
	}
	// Most of the time a test waits: for other programs, or for half a minute that
	// somebody has to be gone. What the command line says counts more.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// golden compares a text with a file of testdata, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if got == "" {
		t.Fatalf("%s: nothing to compare", file)
	}
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
