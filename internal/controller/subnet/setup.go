package subnet

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Watch is a source of events of a kind, each after the Catalog has it.
type Watch = func(kind client.Object, h handler.EventHandler) source.Source

// Options of Setup.
type Options struct {
	// Watch is for kinds that the Catalog knows; nil: the manager's cache, with
	// which a reconcile may be ahead of the Catalog and is made up for later.
	Watch Watch
	// Registry gets the metrics; nil: none does.
	Registry prometheus.Registerer
	// Changes has an event whenever the Catalog's configuration is another; it may be nil.
	Changes <-chan event.GenericEvent
	// Resync is how often what nothing tells us of is looked up again, such as
	// owners of other vendors that are gone. By default ten minutes.
	Resync time.Duration
}

// Setup adds the controller of subnets and of applications' own pools.
//
// It has one worker. A worker for each subnet would not be enough to choose
// addresses in parallel, since a plan may try several subnets; and there is
// nothing to gain, as a look at an application that has what it wants costs
// microseconds.
func Setup(mgr ctrl.Manager, catalog *policy.Catalog, o Options) error {
	if o.Resync == 0 {
		o.Resync = 10 * time.Minute
	}
	if o.Watch == nil {
		o.Watch = func(kind client.Object, h handler.EventHandler) source.Source {
			return source.Kind(mgr.GetCache(), kind, h)
		}
	}
	for _, x := range indexes() {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), x.object, x.field, x.values); err != nil {
			return fmt.Errorf("index of %T by %s: %w", x.object, x.field, err)
		}
	}
	story, err := newStory(mgr.GetEventRecorder("railhead-controller"), o.Registry)
	if err != nil {
		return err
	}
	r := &reconciler{
		client:  mgr.GetClient(),
		live:    mgr.GetAPIReader(),
		catalog: catalog,
		story:   story,
		resync:  o.Resync,
	}
	c, err := controller.New("subnet", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	for _, s := range r.sources(mgr, o) {
		if err := c.Watch(s); err != nil {
			return err
		}
	}
	return nil
}

// sources are what the controller hears of.
func (r *reconciler) sources(mgr ctrl.Manager, o Options) []source.Source {
	mapped := handler.EnqueueRequestsFromMapFunc
	sources := []source.Source{
		o.Watch(&v2beta1.SpiderSubnet{}, mapped(r.ofSubnet)),
		o.Watch(&v2beta1.SpiderIPPool{}, mapped(r.ofPool)),
		o.Watch(&v2beta1.SpiderReservedIP{}, mapped(r.ofReserved)),
		o.Watch(&v1alpha1.PoolLedger{}, r.ofLedgers()),
	}
	if o.Changes != nil {
		sources = append(sources, source.Channel(o.Changes, mapped(r.everything)))
	}
	// What an application is, it says in its spec; a DaemonSet's status has how many pods it wants.
	for _, object := range []client.Object{
		&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &batchv1.Job{}, &batchv1.CronJob{},
	} {
		sources = append(sources, source.Kind(mgr.GetCache(), object, mapped(ofWorkload), matters()))
	}
	return append(sources, source.Kind[client.Object](mgr.GetCache(), podMetadata(), mapped(ofPod)))
}

// matters passes over changes of a workload that change nothing for its pools.
func matters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, _ := workloadOf(e.ObjectOld)
		after, _ := workloadOf(e.ObjectNew)
		return !before.same(after)
	}}
}

// ofSubnet asks for a subnet itself, for those that it may have been in the way
// of, and for the applications that wait for addresses.
func (r *reconciler) ofSubnet(ctx context.Context, object client.Object) []reconcile.Request {
	requests := append(r.unserved(ctx, object), subnetRequest(object.GetName()))
	if subnet, ok := object.(*v2beta1.SpiderSubnet); ok {
		parsed, _ := policy.SubnetOf(subnet)
		requests = append(requests, r.overlapping(parsed.CIDR)...)
	}
	return requests
}

// overlapping asks for the subnets that have an address of a CIDR.
func (r *reconciler) overlapping(cidr netip.Prefix) []reconcile.Request {
	var requests []reconcile.Request
	for _, subnet := range r.catalog.Subnets() {
		if cidr.IsValid() && subnet.CIDR.Overlaps(cidr) {
			requests = append(requests, subnetRequest(subnet.Name))
		}
	}
	return requests
}

// ofPool asks for whose pool it is, for its subnet or those that it is in the way
// of, and for the applications that wait for addresses, which it may have given
// back.
func (r *reconciler) ofPool(ctx context.Context, object client.Object) []reconcile.Request {
	pool, ok := object.(*v2beta1.SpiderIPPool)
	if !ok {
		return nil
	}
	requests := r.unserved(ctx, object)
	if app, ok := ownerOf(pool); ok {
		requests = append(requests, applicationRequest(app))
	}
	if name := pool.Labels[v2beta1.LabelSubnet]; name != "" {
		requests = append(requests, subnetRequest(name))
	}
	parsed, _ := policy.PoolOf(pool)
	return append(requests, r.overlapping(parsed.Subnet)...)
}

// ofLedgers asks for whose pool it is that a ledger is of: nodes may have given
// addresses back that the pool can do without. Many changes are one question.
func (r *reconciler) ofLedgers() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		ledger, ok := e.ObjectNew.(*v1alpha1.PoolLedger)
		if !ok {
			return
		}
		pool := &v2beta1.SpiderIPPool{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: ledger.Spec.Pool}, pool); err != nil {
			return // gone, and with it what could be made smaller
		}
		if app, ok := ownerOf(pool); ok {
			q.AddAfter(applicationRequest(app), ledgerPause)
		}
	}}
}

// ledgerPause is how long changes of a pool's ledgers are gathered.
const ledgerPause = time.Second

// unserved asks for the applications that wait for something.
func (r *reconciler) unserved(context.Context, client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, app := range r.story.waiting() {
		requests = append(requests, applicationRequest(app))
	}
	return requests
}
