package address

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// stage is a giver that runs, and what it hears and says.
type stage struct {
	*giver

	handlers map[reflect.Type]handler.EventHandler
	log      *bytes.Buffer
	changes  chan event.GenericEvent
	registry *prometheus.Registry
	events   *events.FakeRecorder
}

func newStage(t *testing.T, api client.Client) *stage {
	t.Helper()
	s := &stage{
		handlers: map[reflect.Type]handler.EventHandler{}, log: &bytes.Buffer{},
		changes: make(chan event.GenericEvent), registry: prometheus.NewRegistry(), events: events.NewFakeRecorder(100),
	}
	metrics, err := newMetrics(s.registry, func(string) int64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	watch := func(kind client.Object, h handler.EventHandler) source.Source {
		return source.Func(func(context.Context, queue) error {
			s.handlers[reflect.TypeOf(kind)] = h
			return nil
		})
	}
	s.giver = &giver{
		Options: Options{
			Watch: watch, Changes: s.changes, Doubt: defaultDoubt, Gather: defaultGather,
			Log: slog.New(slog.NewTextHandler(s.log, nil)),
		},
		catalog: policy.NewCatalog(), cache: api, api: api, recorder: s.events, metrics: metrics,
	}
	return s
}

// hear has the giver hear of an object as the API server has it: of a copy, for
// what informers tell of is not written to afterwards.
func (s *stage) hear(t *testing.T, o client.Object) {
	t.Helper()
	told := o.DeepCopyObject().(client.Object)
	if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(o), told); err != nil {
		t.Fatal(err)
	}
	s.handlers[reflect.TypeOf(o)].Create(t.Context(), event.CreateEvent{Object: told}, nil)
}

// runs is how many rounds there were.
func (s *stage) runs() int { return int(testutil.ToFloat64(s.metrics.rounds)) }

// begin runs the giver until the test ends it.
func (s *stage) begin(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	}
}

// asking is the lease of a node that wants an address of rail0.
func asking(node string) *v1alpha1.AddressLease {
	lease := testLease(node, "1")
	lease.Generation, lease.Spec.Wants = 1, []v1alpha1.Want{{Pool: "rail0", Addresses: 1}}
	return lease
}

// TestGiver wants what nodes ask for at once to be one round and one write of
// the ledger, and nothing to run for what a round wrote itself.
func TestGiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := []*v1alpha1.AddressLease{asking("node1"), asking("node2"), asking("node3")}
		objects := []client.Object{testPool()}
		for _, lease := range leases {
			objects = append(objects, lease, testNode(lease.Name, "1"))
		}
		s := newStage(t, fakeAPI(t, interceptor.Funcs{}, objects...))
		end := s.begin(t)
		time.Sleep(time.Second)
		for _, o := range objects {
			s.hear(t, o)
		}
		before := s.runs()
		time.Sleep(100 * time.Millisecond)
		for _, lease := range leases {
			if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil || len(lease.Status.Pools) != 1 || len(lease.Status.Pools[0].Grants) == 0 {
				t.Errorf("%s has %+v, error %v", lease.Name, lease.Status, err)
			}
		}
		if n := testutil.ToFloat64(s.metrics.ledgerWrites); n != 1 {
			t.Errorf("%v writes of ledgers for three nodes", n)
		}
		if n := s.runs() - before; n < 1 || n > 3 {
			t.Errorf("%d rounds", n)
		}
		settled := s.runs()
		for _, lease := range leases {
			s.hear(t, lease)
		}
		time.Sleep(time.Second)
		if n := s.runs() - settled; n != 0 {
			t.Errorf("%d rounds for what a round wrote", n)
		}
		time.Sleep(resync)
		if n := s.runs() - settled; n != 1 {
			t.Errorf("%d rounds within %s without any change", n, resync)
		}
		if n := testutil.CollectAndCount(s.metrics.pools); n == 0 {
			t.Error("no series of pools")
		}
		end()
		if n := testutil.CollectAndCount(s.metrics.pools); n != 0 {
			t.Errorf("%d series of pools of one that does not lead", n)
		}
	})
}

// TestGiverFails wants a failure to be said, tried again after a while that
// grows, and made up for.
func TestGiverFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		objects := []client.Object{testPool(), asking("node1"), testNode("node1", "1")}
		s := newStage(t, fakeAPI(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if down.Load() {
				return errors.New("no answer")
			}
			return c.Create(ctx, o, options...)
		}}, objects...))
		end := s.begin(t)
		for _, o := range objects {
			s.hear(t, o)
		}
		time.Sleep(time.Minute)
		if n := s.runs(); n < 10 || n > 60 {
			t.Errorf("%d rounds within a minute in which all fail", n)
		}
		if n := strings.Count(s.log.String(), "no answer"); n < 2 || n > 5 {
			t.Errorf("the log has it %d times within a minute: %s", n, s.log)
		}
		down.Store(false)
		time.Sleep(backoffMost + time.Second)
		lease := &v1alpha1.AddressLease{}
		if err := s.api.Get(t.Context(), client.ObjectKey{Name: "node1"}, lease); err != nil || len(lease.Status.Pools) != 1 || len(lease.Status.Pools[0].Grants) == 0 {
			t.Errorf("after that it has %+v, error %v", lease.Status, err)
		}
		end()
	})
}

// TestWhatWantsRounds wants a round at once for what decides who gets what,
// soon for what pods have, and none for numbers.
func TestWhatWantsRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node, pool, lease := testNode("node1", "1"), testPool(), asking("node1")
		reserved := &v2beta1.SpiderReservedIP{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
		endpoint := testEndpoint("a")
		ledger := testLedger(v1alpha1.Run{Addresses: "10.0.0.9", Quarantine: &v1alpha1.Quarantine{Reason: "x"}})
		ledger.Finalizers = []string{v1alpha1.Finalizer}
		s := newStage(t, fakeAPI(t, interceptor.Funcs{}, node, pool, lease, reserved, endpoint, ledger))
		end := s.begin(t)
		for _, o := range []client.Object{node, pool, lease, reserved, endpoint, ledger} {
			s.hear(t, o)
		}
		time.Sleep(5 * time.Second)
		remove := func(o client.Object) func() {
			return func() { s.handlers[reflect.TypeOf(o)].Delete(t.Context(), event.DeleteEvent{Object: o}, nil) }
		}
		for _, step := range []struct {
			name string
			do   func()
			want bool
		}{
			{"the same node", func() { s.hear(t, node) }, false},
			{"the same pool", func() { s.hear(t, pool) }, false},
			{"a node that is away", remove(node), false},
			{"a ledger", func() { s.hear(t, ledger) }, false},
			{"a word on a ledger", func() { s.annotate(t, "rail0", "10.0.0.8"); s.hear(t, ledger) }, true},
			{"no word any more", func() { s.hear(t, ledger) }, false},
			{"a ledger that is to be deleted", func() { s.delete(t, ledger); s.hear(t, ledger) }, true},
			{"a ledger that is to be deleted still", func() { s.hear(t, ledger) }, false},
			{"settings", func() { s.changes <- event.GenericEvent{} }, true},
			{"reserved addresses", func() { s.hear(t, reserved) }, true},
			{"no more reserved addresses", remove(reserved), true},
			{"an endpoint", func() { s.hear(t, endpoint) }, true},
			{"no more endpoint", remove(endpoint), true},
			{"no more ledger", remove(ledger), true},
			{"no more pool", remove(pool), true},
			{"no more lease", remove(lease), true},
		} {
			before := s.runs()
			step.do()
			time.Sleep(endpointPause + 100*time.Millisecond)
			if n := s.runs() - before; n > 0 != step.want || n > 4 {
				t.Errorf("%s: %d rounds", step.name, n)
			}
		}
		end()
	})
}

// TestGiverOneBad wants a pool whose ledger cannot be written to hold up nobody
// who wants addresses of another.
func TestGiverOneBad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := asking("node1"), asking("node2")
		first.Spec.Wants = append(first.Spec.Wants, v1alpha1.Want{Pool: "bad", Addresses: 1})
		bad := testPool(func(p *v2beta1.SpiderIPPool) {
			p.Name, p.UID, p.Spec.Subnet, p.Spec.IPs = "bad", "2", "10.9.0.0/24", []string{"10.9.0.1-10.9.0.9"}
		})
		objects := []client.Object{testPool(), bad, first, second, testNode("node1", "1"), testNode("node2", "1")}
		s := newStage(t, fakeAPI(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if o.GetName() == "bad" {
				return errors.New("no answer")
			}
			return c.Create(ctx, o, options...)
		}}, objects...))
		end := s.begin(t)
		for _, o := range objects {
			if o != client.Object(second) {
				s.hear(t, o)
			}
		}
		time.Sleep(time.Minute)
		s.hear(t, second)
		time.Sleep(100 * time.Millisecond)
		for _, name := range []string{"node1", "node2"} {
			lease := &v1alpha1.AddressLease{}
			if err := s.api.Get(t.Context(), client.ObjectKey{Name: name}, lease); err != nil {
				t.Fatal(err)
			}
			granted := 0
			for _, p := range lease.Status.Pools {
				if p.Pool == "rail0" {
					granted += len(p.Grants)
				}
			}
			if granted == 0 {
				t.Errorf("%s has %+v", name, lease.Status)
			}
		}
		end()
	})
}
