package coordinator

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// reconciler keeps the status of SpiderCoordinators.
type reconciler struct {
	client   client.Client
	live     client.Reader
	catalog  *policy.Catalog
	recorder events.EventRecorder
	reader   reader
	watches  *watches // nil: nothing is watched
	resync   time.Duration
	fallback string // the coordinator that is created if there is none; "": none is
}

// shortly is when a write that lost a race is tried again.
const shortly = 200 * time.Millisecond

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	stored := &v2beta1.SpiderCoordinator{}
	err := r.client.Get(ctx, request.NamespacedName, stored)
	switch {
	case apierrors.IsNotFound(err) && request.Name == r.fallback:
		err = r.create(ctx)
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case err == nil && stored.DeletionTimestamp != nil:
		return ctrl.Result{}, nil
	case err == nil:
		err = r.update(ctx, stored)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: shortly}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.resync}, nil
}

// create creates the default coordinator if there is none of any name.
func (r *reconciler) create(ctx context.Context) error {
	var list v2beta1.SpiderCoordinatorList
	if err := r.live.List(ctx, &list, client.Limit(1)); err != nil || len(list.Items) > 0 {
		return err
	}
	made := &v2beta1.SpiderCoordinator{
		ObjectMeta: metav1.ObjectMeta{Name: r.fallback},
		// Link-local addresses, such as of a node's own DNS cache, are the node's.
		Spec: v2beta1.CoordinatorSpec{HijackCIDR: []string{"169.254.0.0/16"}},
	}
	r.catalog.Default(made)
	if err := r.client.Create(ctx, made); err != nil {
		return fmt.Errorf("create SpiderCoordinator %s: %w", r.fallback, err)
	}
	return nil
}

// update writes what was found out, if that is new.
func (r *reconciler) update(ctx context.Context, stored *v2beta1.SpiderCoordinator) error {
	found, err := r.find(ctx, stored)
	if err != nil {
		return fmt.Errorf("SpiderCoordinator %s: %w", stored.Name, err)
	}
	status := statusOf(stored, found)
	if equality.Semantic.DeepEqual(status, stored.Status) {
		return nil
	}
	changed := stored.DeepCopy()
	changed.Status = status
	// Not an update: what a newer version knows beside this one stays.
	if err := r.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	if status.Phase != stored.Status.Phase || status.Reason != stored.Status.Reason {
		r.tell(changed, found)
	}
	return nil
}

// find asks the cluster, and for its nodes if the others say too little.
func (r *reconciler) find(ctx context.Context, stored *v2beta1.SpiderCoordinator) (finding, error) {
	// One that was written past the webhook lacks defaults, and means them.
	meant := stored.DeepCopy()
	r.catalog.Default(meant)
	if review := r.catalog.Review(meant, nil); !review.OK() {
		return finding{reason: review.Message()}, nil
	}
	if r.watches != nil {
		if err := r.watches.kinds(); err != nil {
			return finding{}, err
		}
	}
	f, err := r.reader.cheap(ctx)
	if err != nil {
		return finding{}, err
	}
	f.podCIDRType, f.isByHand = v2beta1.PodCIDRAuto, isByHand(meant.Spec.HijackCIDR)
	if kind := meant.Spec.PodCIDRType; kind != nil && *kind != "" {
		f.podCIDRType = *kind
	}
	found := discover(f)
	if !found.wantsNodes {
		return found, nil
	}
	if r.watches != nil {
		if err := r.watches.nodes(); err != nil {
			return finding{}, err
		}
	}
	if f.nodes, err = r.reader.readNodes(ctx); err != nil {
		return finding{}, err
	}
	return discover(f), nil
}

// ready is the condition of a coordinator.
const ready = "Ready"

// statusOf is the status that a finding makes. Where one of both could not be
// found out the other is there all the same, for whoever reads the status.
func statusOf(stored *v2beta1.SpiderCoordinator, found finding) v2beta1.CoordinatorStatus {
	status := *stored.Status.DeepCopy()
	status.Phase, status.Reason = v2beta1.PhaseSynced, found.reason
	condition := metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: v2beta1.PhaseSynced,
		Message: "the network is " + found.network, ObservedGeneration: stored.Generation,
	}
	if found.reason != "" {
		status.Phase = v2beta1.PhaseNotReady
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, v2beta1.PhaseNotReady, found.reason
	}
	status.OverlayPodCIDR, status.ServiceCIDR = textsOfPrefixes(found.pods), textsOfPrefixes(found.services)
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}

func textsOfPrefixes(prefixes []netip.Prefix) []string {
	var texts []string
	for _, p := range prefixes {
		texts = append(texts, p.String())
	}
	return texts
}

// tell makes an Event of a phase or reason that is new.
func (r *reconciler) tell(stored *v2beta1.SpiderCoordinator, found finding) {
	regarding := &corev1.ObjectReference{
		APIVersion: v2beta1.GroupVersion.String(), Kind: "SpiderCoordinator", Name: stored.Name, UID: stored.UID,
	}
	kind, text := corev1.EventTypeWarning, found.reason
	if found.reason == "" {
		kind, text = corev1.EventTypeNormal, fmt.Sprintf("the network is %s: pods have %v, Services have %v",
			found.network, stored.Status.OverlayPodCIDR, stored.Status.ServiceCIDR)
	}
	r.recorder.Eventf(regarding, nil, kind, stored.Status.Phase, "Reconcile", "%s", text)
}

// isByHand says whether destinations go beyond link-local addresses, which are
// the default.
func isByHand(destinations []string) bool {
	linkLocal := []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}
	for _, text := range destinations {
		prefix, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			continue
		}
		isLocal := false
		for _, p := range linkLocal {
			isLocal = isLocal || p.Contains(prefix.Addr()) && prefix.Bits() >= p.Bits()
		}
		if !isLocal {
			return true
		}
	}
	return false
}

// all asks for every coordinator.
func (r *reconciler) all(ctx context.Context) []reconcile.Request {
	var list v2beta1.SpiderCoordinatorList
	if err := r.client.List(ctx, &list); err != nil {
		log.FromContext(ctx).Error(err, "list SpiderCoordinators")
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
	}
	return requests
}
