package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// again is when a write is tried again that another one came before: the cache
// will have that one by then.
const again = 200 * time.Millisecond

// pace is how often numbers of a pool are written at most.
const pace = time.Second

// recheck is when a pool is looked at again that the API server knows a user of
// and the cache does not.
const recheck = time.Minute

// Reconciler brings a pool's status and finalizer to what the Catalog says. Each
// write carries the resource version that it was decided by.
type Reconciler struct {
	Client   client.Client
	Live     client.Reader // asks the API server
	Catalog  *policy.Catalog
	Recorder events.EventRecorder

	counted map[string]time.Time // when numbers of a pool were last written; there is one worker
}

// Reconcile looks at one pool, or, without a name, at all.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request == all() {
		return settle(r.all(ctx))
	}
	pool := &v2beta1.SpiderIPPool{}
	if err := r.Client.Get(ctx, request.NamespacedName, pool); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return settle(r.one(ctx, pool))
}

// settle takes a conflict for what it is: no fault, but somebody was faster.
func settle(look time.Duration, err error) (reconcile.Result, error) {
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: again}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: look}, nil
}

// sooner is the shorter of two times to wait, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// all looks at every pool. One that fails keeps no other from being looked at.
func (r *Reconciler) all(ctx context.Context) (look time.Duration, err error) {
	var list v2beta1.SpiderIPPoolList
	if err := r.Client.List(ctx, &list); err != nil {
		return 0, err
	}
	var conflict error
	var errs []error
	for i := range list.Items {
		next, err := r.one(ctx, &list.Items[i])
		look = sooner(look, next)
		switch {
		case apierrors.IsConflict(err):
			conflict = err
		case client.IgnoreNotFound(err) != nil:
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return look, conflict
	}
	return look, errors.Join(errs...)
}

// one looks at a pool, a copy that it may change. It says when to look again at
// one that was deleted and is held by what the API server alone knows, or whose
// numbers were written just now; 0 for whenever something changes.
func (r *Reconciler) one(ctx context.Context, pool *v2beta1.SpiderIPPool) (look time.Duration, err error) {
	parsed, own := policy.PoolOf(pool)
	v := verdict{own: own, review: r.Catalog.Review(pool, nil), served: r.served(parsed)}
	if v.use, err = r.use(ctx, pool); err != nil {
		return 0, err
	}
	if v.use.holder != "" {
		look = recheck
	}
	gone, err := r.finalize(ctx, pool, v.use)
	if gone || err != nil {
		delete(r.counted, pool.Name)
		return look, err
	}
	next, err := r.tell(ctx, pool, parsed, v)
	return sooner(look, next), err
}

// tell writes the status, and an Event if the condition is news. What are only
// numbers waits until its time has come.
func (r *Reconciler) tell(ctx context.Context, pool *v2beta1.SpiderIPPool, parsed policy.Pool, v verdict) (look time.Duration, err error) {
	before := pool.DeepCopy()
	if err := r.count(pool, parsed, v); err != nil {
		return 0, err
	}
	ready := readiness(pool, v)
	changed := meta.SetStatusCondition(&pool.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(before.Status, pool.Status) {
		return 0, nil
	}
	if wait := time.Until(r.counted[pool.Name].Add(pace)); !changed && wait > 0 {
		return wait, nil
	}
	if err := r.Client.Status().Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, fmt.Errorf("status of SpiderIPPool %s: %w", pool.Name, err)
	}
	if r.counted == nil {
		r.counted = map[string]time.Time{}
	}
	r.counted[pool.Name] = time.Now()
	if changed && told(before.Status.Conditions, ready) {
		r.Recorder.Eventf(pool, nil, severity(ready), ready.Reason, "Review", "%s", ready.Message)
	}
	return 0, nil
}

// count puts into the status how many addresses there are and pods have, and
// which; and leaves what is not known.
func (r *Reconciler) count(pool *v2beta1.SpiderIPPool, parsed policy.Pool, v verdict) error {
	if v.use.review.OK() {
		pool.Status.AllocatedIPCount = &v.use.known
	}
	if parsed.Addresses == nil || !v.own.OK() {
		return nil
	}
	total := policy.Count(parsed.Addresses)
	pool.Status.TotalIPCount = &total
	if !v.use.review.OK() {
		return nil
	}
	noted, err := r.Catalog.Allocations(pool, total)
	if err != nil {
		return err
	}
	pool.Status.AllocatedIPs = noted
	return nil
}

// served says whether the cluster has addresses of a pool's family.
func (r *Reconciler) served(pool policy.Pool) bool {
	config := r.Catalog.Config()
	if pool.Version() == 4 {
		return config.EnableIPv4
	}
	return config.EnableIPv6
}

// finalize sets the finalizer of a pool, and takes it from a deleted one with no
// address in use. One that breaks rules has one, too: pods may have addresses of
// it, from before it did. Admission does not set it: kubectl would warn users of
// a name that they did not write.
func (r *Reconciler) finalize(ctx context.Context, pool *v2beta1.SpiderIPPool, u use) (gone bool, err error) {
	before, changed := pool.DeepCopy(), false
	deleting := pool.DeletionTimestamp != nil
	switch {
	case deleting && u.isNone():
		changed = controllerutil.RemoveFinalizer(pool, v2beta1.Finalizer)
	case !deleting:
		changed = controllerutil.AddFinalizer(pool, v2beta1.Finalizer)
	}
	if !changed {
		return deleting && u.isNone(), nil
	}
	if err := r.Client.Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("finalizer of SpiderIPPool %s: %w", pool.Name, err)
	}
	return deleting, nil
}

// told says whether people hear of a condition: of each that is new, but not of
// a new number in it.
func told(before []metav1.Condition, now metav1.Condition) bool {
	was := meta.FindStatusCondition(before, now.Type)
	return was == nil || was.Reason != now.Reason || now.Reason != ReasonTerminating && was.Message != now.Message
}

func severity(ready metav1.Condition) string {
	if ready.Reason == ReasonInvalid || ready.Reason == ReasonConflict {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
