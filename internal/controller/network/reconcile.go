package network

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/policy/nad"
)

// again is when a write is tried again that another one came before: the cache
// will have that one by then.
const again = 200 * time.Millisecond

// Reconciler brings a NetworkAttachmentDefinition, and the status of the
// SpiderMultusConfig that it is made of, to what the Catalog says. Each write is
// a creation, or carries the resource version that it was decided by.
type Reconciler struct {
	Client   client.Client
	Catalog  *policy.Catalog
	Recorder events.EventRecorder
}

// Reconcile looks at one SpiderMultusConfig.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	config := &v2beta1.SpiderMultusConfig{}
	if err := r.Client.Get(ctx, request.NamespacedName, config); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if config.DeletionTimestamp != nil { // what it owns goes with it
		return reconcile.Result{}, nil
	}
	err := r.one(ctx, config)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// one looks at a SpiderMultusConfig, a copy that it may change. What breaks rules
// has been admitted while no webhook was: its NetworkAttachmentDefinition stays
// as the last good one made it.
func (r *Reconciler) one(ctx context.Context, config *v2beta1.SpiderMultusConfig) error {
	review := r.Catalog.Review(config, nil)
	if !review.OK() {
		return r.tell(ctx, config, config.Status, refused(review))
	}
	network, ok := r.Catalog.Network(config.Namespace, config.Name)
	if !ok || network.UID != config.UID { // the Catalog will have it, and tell of it
		return nil
	}
	want, err := nad.For(network)
	if err != nil {
		return r.tell(ctx, config, config.Status, broken(err))
	}
	owner, err := r.make(ctx, config, want)
	if err != nil {
		return err
	}
	if owner != "" {
		return r.tell(ctx, config, config.Status, taken(want.Name, owner))
	}
	if err := r.removeOthers(ctx, config, want.Name); err != nil {
		return err
	}
	status := config.Status
	status.NetworkAttachmentDefinition, status.ResourceName = want.Name, network.Resource
	return r.tell(ctx, config, status, ready(want.Name))
}

// tell writes the status, and an Event if the condition is news.
func (r *Reconciler) tell(ctx context.Context, config *v2beta1.SpiderMultusConfig, status v2beta1.MultusConfigStatus, condition metav1.Condition) error {
	before := config.DeepCopy()
	condition.ObservedGeneration = config.Generation
	was := meta.FindStatusCondition(before.Status.Conditions, Ready)
	config.Status = *status.DeepCopy()
	meta.SetStatusCondition(&config.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(before.Status, config.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("status of SpiderMultusConfig %s/%s: %w", config.Namespace, config.Name, err)
	}
	if was == nil || was.Reason != condition.Reason || was.Message != condition.Message {
		severity := corev1.EventTypeWarning
		if condition.Status == metav1.ConditionTrue {
			severity = corev1.EventTypeNormal
		}
		r.Recorder.Eventf(config, nil, severity, condition.Reason, "Review", "%s", condition.Message)
	}
	return nil
}
