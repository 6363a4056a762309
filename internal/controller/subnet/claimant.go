package subnet

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// claimant is an application and what it wants.
type claimant struct {
	app      policy.Application // without UID: it is gone
	claim    *policy.Claim      // nil: it wants nothing
	pods     int64
	problems []policy.Problem
	// isUnsure says that its pools must stay as they are: what it wants cannot
	// be understood, or whether it is still there cannot be found out.
	isUnsure bool
}

// Reasons of problems beside those of plans.
const (
	reasonBarePod      = "BarePod"
	reasonNumberWanted = "NumberWanted"
	reasonNameTooLong  = "NameTooLong"
	reasonSwitchedOff  = "AutoPoolSwitchedOff"
	reasonRefused      = "PoolRefused"
	reasonOwnerUnknown = "OwnerUnknown"
)

// claimantOf finds an application and reads what it wants.
func (r *reconciler) claimantOf(ctx context.Context, app policy.Application, config policy.Config) (claimant, error) {
	object, isKnown := newWorkload(app.GroupVersion, app.Kind)
	switch {
	case app.GroupVersion == "v1" && app.Kind == "Pod":
		return r.barePod(ctx, app)
	case !isKnown:
		return r.foreign(ctx, app, config)
	}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: app.Namespace, Name: app.Name}, object)
	if apierrors.IsNotFound(err) {
		return claimant{app: app}, nil
	}
	if err != nil {
		return claimant{}, err
	}
	w, _ := workloadOf(object)
	app.UID = object.GetUID()
	if w.controller() != nil { // its controller's pods are not its own
		return claimant{app: app}, nil
	}
	return claimed(app, w.path, w.annotations, w.pods, config), nil
}

// claimed reads annotations of an application's pods.
func claimed(app policy.Application, path *field.Path, annotations map[string]string, pods int64, config policy.Config) claimant {
	claim, review := policy.ClaimOf(path, annotations, config)
	c := claimant{app: app, claim: claim, pods: pods}
	for _, err := range review.Errors {
		c.doubt(policy.ReasonBadAnnotation, err)
	}
	switch name := app.Name; {
	case claim == nil:
	case len(name) > validation.LabelValueMaxLength:
		c.doubt(reasonNameTooLong, field.Invalid(field.NewPath("metadata", "name"), name, fmt.Sprintf(
			"a pool has the name of its application in a label: want at most %d characters, or pools named in %s",
			validation.LabelValueMaxLength, v2beta1.AnnotationPools)))
	case !config.EnableSpiderSubnet || !config.EnableAutoPool:
		c.doubt(reasonSwitchedOff, field.Forbidden(path, fmt.Sprintf(
			"enableSpiderSubnet and enableAutoPoolForApplication of ConfigMap %s are not both true: want them so, or pools named in %s",
			policy.ConfigMapName, v2beta1.AnnotationPools)))
	}
	return c
}

// doubt notes a problem with which nothing is changed.
func (c *claimant) doubt(reason string, err *field.Error) {
	c.problems = append(c.problems, policy.Problem{Error: err, Reason: reason})
	c.isUnsure = true
}

// barePod is a pod without a controller. It comes back under another UID if at
// all, so that a pool of its own would serve it once.
func (r *reconciler) barePod(ctx context.Context, app policy.Application) (claimant, error) {
	pod := podMetadata()
	err := r.client.Get(ctx, types.NamespacedName{Namespace: app.Namespace, Name: app.Name}, pod)
	if apierrors.IsNotFound(err) {
		return claimant{app: app}, nil
	}
	if err != nil {
		return claimant{}, err
	}
	c := claimant{app: withUID(app, pod.UID)}
	if metav1.GetControllerOf(pod) == nil && claims(pod.Annotations) {
		path := field.NewPath("metadata", "annotations")
		c.doubt(reasonBarePod, field.Forbidden(path.Key(claimKey(pod.Annotations)),
			"no controller owns this pod, and only applications have pools of their own: want a Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or CronJob, or pools named in "+v2beta1.AnnotationPools))
	}
	return c, nil
}

// claimKey is the annotation of the two that counts.
func claimKey(annotations map[string]string) string {
	if _, ok := annotations[v2beta1.AnnotationSubnets]; ok {
		return v2beta1.AnnotationSubnets
	}
	return v2beta1.AnnotationSubnet
}

// foreign is an application of another vendor. How many pods it wants only its
// vendor knows: what it says of subnets is read from its pods, and it must say
// how many addresses it wants.
func (r *reconciler) foreign(ctx context.Context, app policy.Application, config policy.Config) (claimant, error) {
	found, err := r.evidence(ctx, app)
	if err != nil {
		return claimant{}, err
	}
	if len(found) == 0 {
		return r.withoutPods(ctx, app)
	}
	latest := found[len(found)-1]
	c := claimed(withUID(app, latest.owner), latest.path, latest.annotations, 0, config)
	if c.claim != nil && c.claim.Number.Flexible {
		value, ok := latest.annotations[v2beta1.AnnotationPoolNumber]
		if !ok {
			value = "(none)"
		}
		c.doubt(reasonNumberWanted, field.Invalid(latest.path.Key(v2beta1.AnnotationPoolNumber), value,
			"how many pods a "+app.Kind+" of "+app.GroupVersion+` wants is not known here: want a number of addresses such as "8", without "+"`))
	}
	return c, nil
}

// withoutPods is an application of another vendor that has no pods now. Its
// pools stay for as long as it is there.
func (r *reconciler) withoutPods(ctx context.Context, app policy.Application) (claimant, error) {
	pools, err := r.ownPools(ctx, app)
	if err != nil || len(pools) == 0 {
		return claimant{app: app}, err
	}
	owner := &metav1.PartialObjectMetadata{}
	owner.SetGroupVersionKind(schema.FromAPIVersionAndKind(app.GroupVersion, app.Kind))
	err = r.live.Get(ctx, types.NamespacedName{Namespace: app.Namespace, Name: app.Name}, owner)
	switch {
	case err == nil:
		app.UID = owner.UID
		// With another UID it is another application, and these pools are not its own.
		return claimant{app: app, isUnsure: ownedBy(pools, owner.UID)}, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return claimant{app: app}, nil
	case apierrors.IsForbidden(err):
		c := claimant{app: app}
		c.doubt(reasonOwnerUnknown, field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(
			"it has no pods, and whether it is still there may not be read (%v): its pool %s stays until it is deleted by hand, or the controller's role allows to get this kind", err, pools[0].Name)))
		return c, nil
	}
	return claimant{}, fmt.Errorf("%s: %w", app, err)
}

// ownedBy says whether an application with that UID has one of the pools.
func ownedBy(pools []v2beta1.SpiderIPPool, uid types.UID) bool {
	return slices.ContainsFunc(pools, func(p v2beta1.SpiderIPPool) bool {
		return p.Labels[v2beta1.LabelOwnerUID] == string(uid)
	})
}

// ownPools are an application's own pools, under whatever UID, as far as the
// cache knows them.
func (r *reconciler) ownPools(ctx context.Context, app policy.Application) ([]v2beta1.SpiderIPPool, error) {
	var pools v2beta1.SpiderIPPoolList
	err := r.client.List(ctx, &pools, client.MatchingFields{byOwner: applicationRequest(app).String()})
	return pools.Items, err
}
