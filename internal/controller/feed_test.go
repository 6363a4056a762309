package controller

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/webhook"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func testFeed(catalog *policy.Catalog) *feed {
	log := slog.New(slog.DiscardHandler)
	return newFeed(catalog, newSettings(catalog, nil, log), webhook.NewNamespaces(nil))
}

// fedKind is where a kind comes in.
func fedKind(t *testing.T, f *feed, kind client.Object) *fed {
	t.Helper()
	k := f.of(kind)
	if k == nil {
		t.Fatalf("%T is not read", kind)
	}
	return k
}

func storedPool(version, subnet, ips string) *v2beta1.SpiderIPPool {
	return &v2beta1.SpiderIPPool{
		ObjectMeta: metav1.ObjectMeta{Name: "rail0", UID: "1", ResourceVersion: version},
		Spec:       v2beta1.IPPoolSpec{Subnet: subnet, IPs: []string{ips}},
	}
}

// TestFeed wants whoever follows a kind to find in the Catalog what it hears
// of, and what was there before it followed.
func TestFeed(t *testing.T) {
	t.Parallel()
	catalog := policy.NewCatalog()
	f := testFeed(catalog)
	k := fedKind(t, f, &v2beta1.SpiderIPPool{})
	var heard []string
	hear := func(what string) {
		if pool, ok := catalog.Pool("rail0"); ok {
			what += " " + pool.Subnet.String()
		}
		heard = append(heard, what)
	}
	follow := func(ctx context.Context) {
		source := f.watch(&v2beta1.SpiderIPPool{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) {
				if hear("created"); !e.IsInInitialList {
					heard = append(heard, "just now")
				}
			},
			UpdateFunc: func(context.Context, event.UpdateEvent, queue) { hear("updated") },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { hear("deleted") },
		})
		if err := source.Start(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	first, second := storedPool("1", "10.0.0.0/24", "10.0.0.1"), storedPool("2", "10.0.1.0/24", "10.0.1.1")
	ctx, cancel := context.WithCancel(t.Context())
	k.OnAdd(first, true)
	follow(ctx)
	k.OnUpdate(first, second)
	k.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: second})
	k.OnAdd(first, false)
	cancel()
	k.OnUpdate(first, second) // and nobody follows
	want := []string{"created 10.0.0.0/24", "updated 10.0.1.0/24", "deleted", "created 10.0.0.0/24", "just now"}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pool, ok := catalog.Pool("rail0"); !ok || pool.Subnet.String() != "10.0.1.0/24" || f.count(first) != 1 {
		t.Errorf("the Catalog has %v, and %d objects are counted", pool, f.count(first))
	}
}

// TestFeedUnknown wants a kind that is not read to be an error, not a silence.
func TestFeedUnknown(t *testing.T) {
	t.Parallel()
	f := testFeed(policy.NewCatalog())
	if err := f.watch(&metav1.PartialObjectMetadata{}, handler.Funcs{}).Start(t.Context(), nil); err != nil {
		t.Errorf("namespaces: %v", err)
	}
	if err := f.watch(&unread{}, handler.Funcs{}).Start(t.Context(), nil); err == nil {
		t.Error("no error for a kind that nothing reads")
	}
}

type unread struct{ v2beta1.SpiderIPPool }
