package api

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) {
	Launch()
	BecomeAgent()
	ctrl.SetLogger(logr.Discard()) // the controller has a logger of its own
	os.Exit(m.Run())
}
