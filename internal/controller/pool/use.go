package pool

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// use is who has addresses of a pool.
type use struct {
	known  int64         // how many pods have, as far as the Catalog can tell
	review policy.Review // what keeps it from telling
	kept   int64         // how many nodes hold, or pods keep over their lives
	// holder is an object with an address that the Catalog does not count: it has
	// not heard of it yet, or cannot read it.
	holder string
}

// isNone says whether it is certain that nobody has an address. Those in
// quarantine that no pod is known of hold up nothing.
func (u use) isNone() bool { return u.known == 0 && u.kept == 0 && u.review.OK() && u.holder == "" }

// use looks up who has addresses of a pool. Before a deleted one is let go, the
// API server is asked, too: a pod may have got an address that the cache has not
// heard of.
func (r *Reconciler) use(ctx context.Context, pool *v2beta1.SpiderIPPool) (use, error) {
	u := use{known: r.Catalog.Usage(pool.Name), review: policy.ReviewUse(pool)}
	if pool.DeletionTimestamp != nil {
		u.kept = policy.Count(r.Catalog.Kept(pool.Name))
	}
	if pool.DeletionTimestamp == nil || !u.isNone() || !controllerutil.ContainsFinalizer(pool, v2beta1.Finalizer) {
		return u, nil
	}
	var err error
	if u.holder, err = r.holder(ctx, pool.Name); err != nil {
		return use{}, fmt.Errorf("who has addresses of SpiderIPPool %s: %w", pool.Name, err)
	}
	return u, nil
}

// holder is a SpiderEndpoint or PoolLedger by which somebody has an address of a
// pool, "" if there is none.
func (r *Reconciler) holder(ctx context.Context, pool string) (string, error) {
	ledger, err := find(ctx, r.Live, &v1alpha1.PoolLedgerList{}, func(l *v1alpha1.PoolLedgerList) (string, bool) {
		at := slices.IndexFunc(l.Items, func(o v1alpha1.PoolLedger) bool { return o.Spec.Pool == pool && isKept(&o) })
		if at < 0 {
			return "", false
		}
		return "PoolLedger " + l.Items[at].Name, true
	})
	if ledger != "" || err != nil {
		return ledger, err
	}
	return find(ctx, r.Live, &v2beta1.SpiderEndpointList{}, func(l *v2beta1.SpiderEndpointList) (string, bool) {
		at := slices.IndexFunc(l.Items, func(o v2beta1.SpiderEndpoint) bool { return holds(&o, pool) })
		if at < 0 {
			return "", false
		}
		return "SpiderEndpoint " + client.ObjectKeyFromObject(&l.Items[at]).String(), true
	})
}

// find reads all objects of a kind, some at a time, until one is what is looked for.
func find[L client.ObjectList](ctx context.Context, live client.Reader, list L, look func(L) (string, bool)) (string, error) {
	const page = 500
	for {
		if err := live.List(ctx, list, client.Limit(page), client.Continue(list.GetContinue())); err != nil {
			return "", err
		}
		if found, ok := look(list); ok || list.GetContinue() == "" {
			return found, nil
		}
	}
}

// isKept says whether a node or a pod has an address of a ledger.
func isKept(ledger *v1alpha1.PoolLedger) bool {
	return slices.ContainsFunc(ledger.Spec.Runs, func(run v1alpha1.Run) bool {
		return run.Quarantine == nil || run.Quarantine.Pod != ""
	})
}

// holds says whether an endpoint has an address of a pool, readable or not.
func holds(endpoint *v2beta1.SpiderEndpoint, pool string) bool {
	for _, i := range endpoint.Status.Current.IPs {
		if is(i.IPv4Pool, pool) && !is(i.IPv4, "") || is(i.IPv6Pool, pool) && !is(i.IPv6, "") {
			return true
		}
	}
	return false
}

// is says whether a text is another; one that is left out is empty.
func is(text *string, other string) bool {
	return text != nil && *text == other || text == nil && other == ""
}
