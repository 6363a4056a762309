package subnet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/api/railhead/v1alpha1"
)

// testLedger says that a node holds addresses of a pool.
func testLedger(pool, held string) *v1alpha1.PoolLedger {
	return &v1alpha1.PoolLedger{
		ObjectMeta: metav1.ObjectMeta{Name: pool},
		Spec: v1alpha1.PoolLedgerSpec{
			Pool: pool, Part: "10.1.0.0-10.1.0.255", Runs: []v1alpha1.Run{{Addresses: held, Node: "node1"}},
		},
	}
}

// TestHeldByNodes wants an application's own pool to lose no address that a node
// holds, though no pod has it yet, and to lose it once it is given back.
func TestHeldByNodes(t *testing.T) {
	t.Parallel()
	const name = "auto4-web-eth0-00001"
	web := testDeployment(4, onA())
	g := newRig(t, testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.200"), web, testLedger(name, "10.1.0.1-10.1.0.4"))
	g.settle()
	web.Spec.Replicas = new(int32(1))
	g.update(web)
	g.settle()
	if got, want := g.pools(), name+" 10.1.0.1-10.1.0.4 a"; got != want {
		t.Errorf("while a node holds four: %s, want %s", got, want)
	}
	ledger := &v1alpha1.PoolLedger{}
	if err := g.server.Get(t.Context(), client.ObjectKey{Name: name}, ledger); err != nil {
		t.Fatal(err)
	}
	ledger.Spec.Runs[0].Addresses = "10.1.0.1"
	g.update(ledger)
	g.settle()
	if got, want := g.pools(), name+" 10.1.0.1-10.1.0.2 a"; got != want {
		t.Errorf("once three are back: %s, want %s", got, want)
	}
}

// queue keeps what is asked for.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	asked map[string]time.Duration
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *queue) AddAfter(request reconcile.Request, d time.Duration) { q.asked[request.String()] = d }

// TestLedgerChanges wants the application to be looked at whose pool a ledger is
// of, many changes at once, and nobody for other pools.
func TestLedgerChanges(t *testing.T) {
	t.Parallel()
	g := newRig(t, testSubnet("a", "10.1.0.0/24", "10.1.0.1-10.1.0.200"), testDeployment(1, onA()))
	g.settle()
	q := &queue{asked: map[string]time.Duration{}}
	for _, pool := range []string{"auto4-web-eth0-00001", "gone"} {
		g.ofLedgers().Update(t.Context(), event.UpdateEvent{ObjectNew: testLedger(pool, "10.1.0.1")}, q)
	}
	if diff := cmp.Diff(map[string]time.Duration{"ai/apps/v1 Deployment web": ledgerPause}, q.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
