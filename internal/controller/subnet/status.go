package subnet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Reasons of a subnet's condition Ready.
const (
	reasonServing   = "Serving"
	reasonExhausted = "Exhausted" // True: its pools serve, and there is nothing for another
	reasonInvalid   = "Invalid"
	reasonDeleting  = "Deleting"
	reasonOff       = "SwitchedOff"
)

// ready is the condition of a subnet.
const ready = "Ready"

// subnet keeps what a SpiderSubnet says of its pools, and its finalizer for as
// long as there are any.
func (r *reconciler) subnet(ctx context.Context, name string) error {
	stored := &v2beta1.SpiderSubnet{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, stored); err != nil {
		return client.IgnoreNotFound(err)
	}
	parsed, _ := policy.SubnetOf(stored)
	var list v2beta1.SpiderIPPoolList
	if err := r.client.List(ctx, &list); err != nil {
		return err
	}
	pools := poolsOf(name, parsed.CIDR, list.Items)
	isGone, err := r.finalize(ctx, stored, parsed.CIDR, pools)
	if err != nil || isGone {
		return err
	}
	status := statusOf(stored, parsed, pools)
	condition := r.condition(stored, parsed, pools)
	condition.ObservedGeneration = stored.Generation
	before := meta.FindStatusCondition(stored.Status.Conditions, ready)
	meta.SetStatusCondition(&status.Conditions, condition)
	if equality.Semantic.DeepEqual(status, stored.Status) {
		return nil
	}
	changed := stored.DeepCopy()
	changed.Status = status
	if err := r.client.Status().Patch(ctx, changed, onto(stored)); err != nil {
		return ignoreGone(err)
	}
	if before == nil || before.Status != condition.Status || before.Reason != condition.Reason {
		r.story.subnet(stored, eventType(condition), condition.Reason, condition.Message)
	}
	return nil
}

// finalize sets the finalizer of a subnet, or takes it from one that is being
// deleted and has no pools. It says whether the subnet has gone with it.
func (r *reconciler) finalize(ctx context.Context, stored *v2beta1.SpiderSubnet, cidr netip.Prefix, pools []*v2beta1.SpiderIPPool) (bool, error) {
	isDeleting := stored.DeletionTimestamp != nil
	has := controllerutil.ContainsFinalizer(stored, v2beta1.Finalizer)
	if has != isDeleting || isDeleting && len(pools) > 0 {
		return isDeleting && !has, nil
	}
	changed := stored.DeepCopy()
	if !isDeleting {
		controllerutil.AddFinalizer(changed, v2beta1.Finalizer)
		if err := r.client.Patch(ctx, changed, onto(stored)); err != nil {
			return false, ignoreGone(err)
		}
		changed.DeepCopyInto(stored)
		return false, nil
	}
	// The cache may not have heard of the latest pool.
	var live v2beta1.SpiderIPPoolList
	if err := r.live.List(ctx, &live); err != nil {
		return false, err
	}
	if len(poolsOf(stored.Name, cidr, live.Items)) > 0 {
		return false, nil // its event is on the way
	}
	controllerutil.RemoveFinalizer(changed, v2beta1.Finalizer)
	return true, ignoreGone(r.client.Patch(ctx, changed, onto(stored)))
}

// onto is a patch of what was read, refused if that has changed since. An update
// would drop fields that a newer version knows beside this one.
func onto(read client.Object) client.Patch {
	return client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
}

// poolsOf are the pools of a subnet: those of its CIDR, and those that say so.
func poolsOf(name string, cidr netip.Prefix, pools []v2beta1.SpiderIPPool) []*v2beta1.SpiderIPPool {
	var found []*v2beta1.SpiderIPPool
	for i := range pools {
		parsed, _ := policy.PoolOf(&pools[i])
		if pools[i].Labels[v2beta1.LabelSubnet] == name || cidr.IsValid() && parsed.Subnet == cidr {
			found = append(found, &pools[i])
		}
	}
	slices.SortFunc(found, func(a, b *v2beta1.SpiderIPPool) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// controlledPool is what a subnet's status says of one pool.
type controlledPool struct {
	IPs         []string `json:"ips"`
	Application string   `json:"application,omitempty"` // "namespace/name"
}

// statusOf counts a subnet's addresses and those that its pools hold. Whether
// pods have them is not asked.
func statusOf(stored *v2beta1.SpiderSubnet, subnet policy.Subnet, pools []*v2beta1.SpiderIPPool) v2beta1.SubnetStatus {
	status := *stored.Status.DeepCopy()
	controlled := map[string]controlledPool{}
	for _, pool := range pools {
		parsed, _ := policy.PoolOf(pool)
		c := controlledPool{IPs: policy.FormatRanges(parsed.Addresses)}
		if app, ok := ownerOf(pool); ok {
			c.Application = app.Namespace + "/" + app.Name
		}
		controlled[pool.Name] = c
	}
	status.ControlledIPPools = nil
	if len(controlled) > 0 {
		text, err := json.Marshal(controlled)
		if err == nil { // strings always can be written
			status.ControlledIPPools = new(string(text))
		}
	}
	total, free := policy.Count(subnet.Addresses), policy.Count(freeOf(subnet, pools))
	status.TotalIPCount, status.AllocatedIPCount = new(total), new(total-free)
	return status
}

// freeOf are the addresses of a subnet that no pool holds.
func freeOf(subnet policy.Subnet, pools []*v2beta1.SpiderIPPool) *netipx.IPSet {
	var build netipx.IPSetBuilder
	build.AddSet(subnet.Addresses)
	for _, pool := range pools {
		parsed, _ := policy.PoolOf(pool)
		build.RemoveSet(parsed.Addresses)
	}
	free, err := build.IPSet()
	if err != nil { // parsed sets have no invalid ranges
		return &netipx.IPSet{}
	}
	return free
}

// condition says whether a subnet serves, and what holds one that goes.
func (r *reconciler) condition(stored *v2beta1.SpiderSubnet, subnet policy.Subnet, pools []*v2beta1.SpiderIPPool) metav1.Condition {
	review := r.catalog.Review(stored, nil)
	free := policy.Count(freeOf(subnet, pools))
	total := policy.Count(subnet.Addresses)
	switch {
	case stored.DeletionTimestamp != nil:
		return no(reasonDeleting, "is deleted once its pools are: "+someNames(pools))
	case !r.catalog.Config().EnableSpiderSubnet:
		return no(reasonOff, "enableSpiderSubnet is false in ConfigMap "+policy.ConfigMapName+": no pool belongs to a subnet")
	case !review.OK():
		return no(reasonInvalid, review.Message())
	case free == 0:
		return yes(reasonExhausted, fmt.Sprintf("all of its %d addresses are in pools: add addresses to make room for further pools", total))
	}
	return yes(reasonServing, fmt.Sprintf("%d of %d addresses are in no pool yet", free, total))
}

// someNames are the names of pools, the first of many.
func someNames(pools []*v2beta1.SpiderIPPool) string {
	const most = 8
	var names []string
	for i, pool := range pools {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(pools)-most))
			break
		}
		names = append(names, pool.Name)
	}
	return strings.Join(names, ", ")
}

func yes(reason, message string) metav1.Condition {
	return metav1.Condition{Type: ready, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func no(reason, message string) metav1.Condition {
	return metav1.Condition{Type: ready, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// eventType is that of an Event about a condition.
func eventType(c metav1.Condition) string {
	if c.Status == metav1.ConditionTrue && c.Reason != reasonExhausted || c.Reason == reasonDeleting {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// ignoreGone leaves out that an object has gone meanwhile.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
