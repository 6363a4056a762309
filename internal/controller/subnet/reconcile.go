package subnet

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// reconciler makes subnets and applications' own pools as they should be.
type reconciler struct {
	client  client.Client
	live    client.Reader // asks the API server
	catalog *policy.Catalog
	story   *story
	resync  time.Duration
}

// shortly is when a write that lost a race is tried again.
const shortly = 200 * time.Millisecond

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var (
		result ctrl.Result
		err    error
	)
	if app, ok := applicationOf(request); ok {
		result, err = r.application(ctx, app)
	} else {
		err = r.subnet(ctx, request.Name)
	}
	// Somebody was quicker: what is there now is another question, and no error.
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: shortly}, nil
	}
	return result, err
}

// application gives an application the pools that it wants.
//
// A plan is first made from what the cache says of the application's own pools.
// That is stale at times, and is used for no more than to see that there is
// nothing to do, as nearly always. Where there is, the plan is made again from
// all pools as the API server has them, and written at once. Two reconciles
// cannot choose the same address: there is one worker, which has seen its own
// writes that way; writes of a leader that lost its lease are fenced off; and
// what both a former and the present leader could write is the same pool, whose
// name is taken or whose resource version is another then. Should an
// administrator make an overlapping pool between list and write, the webhook
// refuses the later of the two.
func (r *reconciler) application(ctx context.Context, app policy.Application) (ctrl.Result, error) {
	config := r.catalog.Config()
	c, err := r.claimantOf(ctx, app, config)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("%s: %w", app, err)
	}
	if c.isUnsure || !config.EnableSpiderSubnet || !config.EnableAutoPool {
		r.story.problems(c.app, c.problems)
		return r.again(c.isUnsure), nil
	}
	known, err := r.ownPools(ctx, app)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := r.plan(c, known)
	if plan.Chooses() {
		var pools v2beta1.SpiderIPPoolList
		if err := r.live.List(ctx, &pools); err != nil {
			return ctrl.Result{}, fmt.Errorf("list SpiderIPPools: %w", err)
		}
		known = pools.Items
		plan = r.plan(c, known)
	}
	refused, err := r.apply(ctx, c.app, plan, known)
	problems := append(plan.Problems, refused...)
	r.story.problems(c.app, problems)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.again(len(problems) > 0), nil
}

// plan plans with some of the pools that there are.
func (r *reconciler) plan(c claimant, pools []v2beta1.SpiderIPPool) policy.AutoPoolPlan {
	state := policy.AutoPoolState{Subnets: r.catalog.Subnets(), Reserved: r.catalog.Reserved, Used: r.catalog.Used}
	for i := range pools {
		state.Pools = append(state.Pools, &pools[i])
	}
	return policy.PlanAutoPools(c.app, c.claim, c.pods, state)
}

// again looks from time to time at an application that waits, or whose end
// nothing may tell of, beside whenever something changes that is heard of.
func (r *reconciler) again(waits bool) ctrl.Result {
	if !waits {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: r.resync}
}

// apply writes a plan, new pools first, so that an application is never
// without. What the API server refuses is a problem of the application; other
// errors are returned, and nothing is written after them. known are the pools
// that the plan was made from.
func (r *reconciler) apply(ctx context.Context, app policy.Application, plan policy.AutoPoolPlan, known []v2beta1.SpiderIPPool) ([]policy.Problem, error) {
	var refused []policy.Problem
	write := func(pool *v2beta1.SpiderIPPool, reason, text string, err error) error {
		switch {
		case err == nil:
			r.story.pool(app, reason, text)
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
			refused = append(refused, policy.Problem{
				Error:  field.Forbidden(field.NewPath("SpiderIPPool").Key(pool.Name), "the API server refuses the pool: "+err.Error()),
				Reason: reasonRefused,
			})
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("SpiderIPPool %s: %w", pool.Name, err)
		}
		return nil
	}
	for _, pool := range plan.Create {
		r.catalog.Default(pool)
		err := r.client.Create(ctx, pool)
		if err := write(pool, "PoolCreated", said(pool), err); err != nil {
			return refused, err
		}
	}
	for _, pool := range plan.Update {
		at := slices.IndexFunc(known, func(p v2beta1.SpiderIPPool) bool { return p.Name == pool.Name })
		err := r.client.Patch(ctx, pool, onto(&known[at]))
		if err := write(pool, "PoolChanged", said(pool), err); err != nil {
			return refused, err
		}
	}
	for _, pool := range plan.Delete {
		// A pool that changed after it was read may be another application's by now.
		err := r.client.Delete(ctx, pool, client.Preconditions{UID: &pool.UID, ResourceVersion: &pool.ResourceVersion})
		if err := write(pool, "PoolDeleted", "pool "+pool.Name+" goes once its addresses are free", err); err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// said is what an application is told of a pool of its own.
func said(object *v2beta1.SpiderIPPool) string {
	pool, _ := policy.PoolOf(object)
	return fmt.Sprintf("pool %s of %s: %s of subnet %s",
		object.Name, object.Labels[v2beta1.LabelInterface], policy.AddressWord(policy.Count(pool.Addresses)), object.Labels[v2beta1.LabelSubnet])
}
