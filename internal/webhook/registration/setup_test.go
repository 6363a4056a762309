package registration

import (
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestSetup needs no API server: nothing is asked before the manager starts.
func TestSetup(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // the test may run more than once in a process
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := newFixture("").Setup(mgr); err != nil {
		t.Fatal(err)
	}
}

// TestPoke does nothing before there is a queue, and then asks for one look
// however often it is called.
func TestPoke(t *testing.T) {
	f := newFixture("")
	f.Poke()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	if err := f.begin(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if q.Len() != 1 {
		t.Errorf("%d looks at the start, want 1", q.Len())
	}
	_, _ = q.Get()
	f.Poke()
	f.Poke()
	q.Done(request())
	if q.Len() != 1 {
		t.Errorf("%d looks after two pokes, want 1", q.Len())
	}
}
