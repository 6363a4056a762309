package pool

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// errKilled is what a reconciler sees of its own death.
var errKilled = errors.New("killed")

// world is an API server with a count of writes, which can fail one of them.
type world struct {
	client client.Client
	writes int
	failAt int  // which write fails; 0: none
	lost   bool // it is done, and only its answer is lost
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v2beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v2beta1.SpiderIPPool{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
				return w.write(func() error { return c.Patch(ctx, o, p, options...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
				return w.write(func() error { return c.SubResource(sub).Patch(ctx, o, p, options...) })
			},
		}).Build()
	return w
}

func (w *world) write(do func() error) error {
	w.writes++
	if w.writes != w.failAt {
		return do()
	}
	if w.lost {
		if err := do(); err != nil {
			return err
		}
	}
	return errKilled
}

// reconciler is one that has just started: it knows what there is.
func (w *world) reconciler(t *testing.T) (*Reconciler, *events.FakeRecorder) {
	t.Helper()
	recorder := events.NewFakeRecorder(100)
	r := &Reconciler{Client: w.client, Live: w.client, Catalog: policy.NewCatalog(), Recorder: recorder}
	var pools v2beta1.SpiderIPPoolList
	var endpoints v2beta1.SpiderEndpointList
	var ledgers v1alpha1.PoolLedgerList
	if err := errors.Join(w.client.List(t.Context(), &pools), w.client.List(t.Context(), &endpoints), w.client.List(t.Context(), &ledgers)); err != nil {
		t.Fatal(err)
	}
	for i := range ledgers.Items {
		r.Catalog.Put(&ledgers.Items[i])
	}
	for i := range pools.Items {
		r.Catalog.Put(&pools.Items[i])
	}
	for i := range endpoints.Items {
		r.Catalog.Put(&endpoints.Items[i])
	}
	return r, recorder
}

// reconcile looks at all pools, as a reconciler that has just started, and
// returns what it told.
func (w *world) reconcile(t *testing.T) (told []string, err error) {
	t.Helper()
	r, recorder := w.reconciler(t)
	_, err = r.Reconcile(t.Context(), all())
	close(recorder.Events)
	for e := range recorder.Events {
		told = append(told, e)
	}
	return told, err
}

func (w *world) pool(t *testing.T, name string) *v2beta1.SpiderIPPool {
	t.Helper()
	pool := &v2beta1.SpiderIPPool{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: name}, pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

// pool is one with the addresses 10.0.N.1 to .9.
func pool(name string, n int) *v2beta1.SpiderIPPool {
	return &v2beta1.SpiderIPPool{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)),
		},
		Spec: v2beta1.IPPoolSpec{
			Subnet: fmt.Sprintf("10.0.%d.0/24", n),
			IPs:    []string{fmt.Sprintf("10.0.%d.1-10.0.%d.9", n, n)},
		},
	}
}

// going is a pool that was deleted.
func going(name string, n int) *v2beta1.SpiderIPPool {
	p := pool(name, n)
	p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))), []string{v2beta1.Finalizer}
	return p
}

// endpoint is a pod with an address of a pool.
func endpoint(name, pool, address string) *v2beta1.SpiderEndpoint {
	return &v2beta1.SpiderEndpoint{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Status: v2beta1.EndpointStatus{Current: v2beta1.EndpointAllocation{
			UID: "pod-" + name, Node: "node-1",
			IPs: []v2beta1.EndpointInterface{{Interface: "net1", IPv4: new(address + "/24"), IPv4Pool: new(pool)}},
		}},
	}
}
