package api

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

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
