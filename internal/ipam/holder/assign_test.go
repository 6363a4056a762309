package holder_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/holder"
)

func TestAssignSameHostPart(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.3-10.1.0.6")
	n.grant("b", "10.2.0.5-10.2.0.8")
	r := request("p1", "s1", []string{"a"}, []string{"b"})
	a := n.assign(r)
	if diff := cmp.Diff([]string{"10.1.0.5", "10.2.0.5"}, addresses(a)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(a, n.assign(r), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("the same key got another answer: %s", diff)
	}
	taken := r
	taken.Sandbox = "s2"
	b := n.assign(taken)
	if diff := cmp.Diff(addresses(a), addresses(b)); diff != "" || b.Sequence <= a.Sequence {
		t.Errorf("a new sandbox: sequence %d after %d, %s", b.Sequence, a.Sequence, diff)
	}
	if _, freed, err := n.Release(r.Key, 0, nil); freed || err != nil {
		t.Errorf("a late release: %t, %v", freed, err)
	}
	// What was never had comes before what was freed.
	if _, freed, err := n.Release(taken.Key, b.Sequence, nil); !freed || err != nil {
		t.Errorf("release: %t, %v", freed, err)
	}
	next := n.assign(request("p2", "s1", []string{"a"}, []string{"b"}))
	if diff := cmp.Diff([]string{"10.1.0.6", "10.2.0.6"}, addresses(next)); diff != "" {
		t.Error(diff)
	}
}

func TestAssignTwoNICsOfOnePool(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.3-10.1.0.4")
	if diff := cmp.Diff([]string{"10.1.0.3", "10.1.0.4"}, addresses(n.assign(request("p1", "s", []string{"a"}, []string{"a"})))); diff != "" {
		t.Error(diff)
	}
}

func TestAssignAllOrNone(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.3")
	r := request("p1", "s1", []string{"a"}, []string{"b"})
	_, err := n.Assign(r)
	short, ok := errors.AsType[*holder.ShortError](err)
	if !ok || !short.Waiting {
		t.Fatalf("got %v, want a pod that waits", err)
	}
	n.assign(request("p2", "s1", []string{"a"}))
	n.sync()
	want := []v1alpha1.Want{{Pool: "a", Addresses: 2}, {Pool: "b", Addresses: 1}}
	if diff := cmp.Diff(want, n.spec().Wants); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]v1alpha1.Group{{Pools: []string{"a", "b"}}}, n.spec().Groups); diff != "" {
		t.Error(diff)
	}
}

// TestFencedNodeSaysSo: the controller's word about the node as a whole is the
// reason that a pod without addresses is told.
func TestFencedNodeSaysSo(t *testing.T) {
	n := newNode(t)
	n.api.lease.Status.Reason = "fenced by an administrator"
	n.api.answer()
	if err := n.Observe(n.api.lease.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	_, err := n.Assign(request("p1", "s1", []string{"a"}))
	if err == nil || !strings.Contains(err.Error(), "fenced by an administrator") {
		t.Errorf("got %v, want the reason of the lease", err)
	}
}

func TestAssignWaitsForShortBeforeNextPool(t *testing.T) {
	n := newNode(t)
	n.grant("b", "10.2.0.3")
	r := request("p1", "s1", []string{"a", "b"})
	if _, err := n.Assign(r); err == nil {
		t.Fatal("the second pool was taken before the first one answered")
	}
	n.api.pool("a").Short = "all addresses are held"
	n.api.answer() // of a spec that does not name the need
	n.see()
	if _, err := n.Assign(r); err == nil {
		t.Fatal("an answer to an earlier question was taken")
	}
	n.sync()
	n.api.answer()
	n.see()
	if diff := cmp.Diff([]string{"10.2.0.3"}, addresses(n.assign(r))); diff != "" {
		t.Error(diff)
	}
}

func TestAssignSettles(t *testing.T) {
	n := newNode(t)
	n.grant("b", "10.2.0.3")
	r := request("p1", "s1", []string{"a", "b"})
	r.Settle = true
	n.assign(r)
	r.PodUID = "p2"
	_, err := n.Assign(r)
	if short, ok := errors.AsType[*holder.ShortError](err); !ok || short.Waiting || len(short.Pools) != 2 {
		t.Errorf("got %v, want both pools to lack", err)
	}
}

func TestAssignExact(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.3-10.1.0.4")
	r := request("p1", "s1", []string{"a"})
	r.NICs[0].Choices[0].Exact = netip.MustParseAddr("10.1.0.9")
	if _, err := n.Assign(r); err == nil {
		t.Fatal("another address was given")
	}
	n.sync()
	if diff := cmp.Diff([]v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.1.0.9"}}}, n.spec().Exact); diff != "" {
		t.Error(diff)
	}
	n.grant("a", "10.1.0.9")
	if diff := cmp.Diff([]string{"10.1.0.9"}, addresses(n.assign(r))); diff != "" {
		t.Error(diff)
	}
}

func TestPinnedAddressesAreForTheirIdentity(t *testing.T) {
	n := newNode(t)
	n.api.grant("a", "StatefulSet/ns/db/0", "10.1.0.3")
	n.see()
	if _, err := n.Assign(request("p1", "s1", []string{"a"})); err == nil {
		t.Fatal("a pinned address was given to somebody else")
	}
	n.Abandon(holder.Key{PodUID: "p1"})
	r := request("p2", "s1", []string{"a"})
	r.Identity = "StatefulSet/ns/db/0"
	n.assign(r)
	n.sync()
	pins := []v1alpha1.Pin{{Identity: r.Identity, Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
	if diff := cmp.Diff(pins, n.spec().Pins); diff != "" || len(n.spec().Wants) > 0 {
		t.Errorf("wants %v, %s", n.spec().Wants, diff)
	}
	if _, freed, err := n.Release(r.Key, 0, nil); !freed || err != nil {
		t.Fatal(freed, err)
	}
	n.sync()
	if diff := cmp.Diff([]v1alpha1.Return{{Pool: "a", Epoch: 1, Addresses: []string{"10.1.0.3"}}}, n.spec().Returns); diff != "" || len(n.spec().Pins) > 0 {
		t.Errorf("pins %v, %s", n.spec().Pins, diff)
	}
}

func TestReturnsOutliveRestarts(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.3-10.1.0.6")
	n.assign(request("p1", "s1", []string{"a"}))
	n.api.pool("a").Recall = 2
	n.api.answer()
	n.see()
	n.start()
	if err := n.Ready(); err != nil {
		t.Fatal(err)
	}
	n.assign(request("p2", "s1", []string{"a"}))
	if _, err := n.Assign(request("p3", "s1", []string{"a"})); err == nil {
		t.Fatal("an address was assigned that is being given back")
	}
	n.sync()
	if diff := cmp.Diff([]v1alpha1.Return{{Pool: "a", Epoch: 1, Addresses: []string{"10.1.0.5-10.1.0.6"}}}, n.spec().Returns); diff != "" {
		t.Error(diff)
	}
	n.api.pool("a").Recall = 0
	n.api.take()
	n.see()
	n.sync()
	if len(n.spec().Returns) > 0 {
		t.Errorf("still returning %v", n.spec().Returns)
	}
}

func TestExcessGoesBackAfterAWhile(t *testing.T) {
	n := newNode(t)
	n.api.grant("a", "", "10.1.0.1-10.1.0.20")
	n.api.pool("a").Reserve = 4
	n.see()
	n.sync()
	if len(n.spec().Returns) > 0 {
		t.Fatalf("returned at once: %v", n.spec().Returns)
	}
	n.now = n.now.Add(10 * time.Second)
	n.sync()
	if diff := cmp.Diff([]v1alpha1.Return{{Pool: "a", Epoch: 1, Addresses: []string{"10.1.0.6-10.1.0.20"}}}, n.spec().Returns); diff != "" {
		t.Error(diff)
	}
}

func TestLostJournal(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.3-10.1.0.6")
	had := n.assign(request("p1", "s1", []string{"a"}))
	n.assign(request("p2", "s1", []string{"a"}))
	n.api.pool("a").Recall = 1
	n.api.answer()
	n.see()
	n.sync()
	if err := n.disk.Replace("addresses.journal", []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	n.start()
	r := request("p3", "s1", []string{"a"})
	if _, err := n.Assign(r); !errors.Is(err, holder.ErrNotReady) {
		t.Fatalf("got %v, want ErrNotReady", err)
	}
	n.Occupied(map[netip.Addr]string{netip.MustParseAddr("10.1.0.3"): "ns3", netip.MustParseAddr("10.1.0.4"): "ns4"})
	if _, err := n.Assign(r); !errors.Is(err, holder.ErrNotReady) {
		t.Fatalf("got %v, want ErrNotReady", err)
	}
	if err := n.Adopt(had); err != nil {
		t.Fatal(err)
	}
	n.sync()
	if got := n.spec().Session; got != "session2" {
		t.Errorf("session %s", got)
	}
	if diff := cmp.Diff([]string{"10.1.0.5"}, addresses(n.assign(r))); diff != "" {
		t.Error(diff)
	}
	if _, err := n.Assign(request("p4", "s1", []string{"a"})); err == nil {
		t.Error("an address that is in use or given back was assigned")
	}
	if s := n.Stats(); s.Strays != 1 || s.Assignments != 2 || s.Pools[0].Returning != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestAnotherBootKeepsNothing(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.3")
	n.assign(request("p1", "s1", []string{"a"}))
	n.boot = "boot2"
	n.start()
	if err := n.Ready(); !errors.Is(err, holder.ErrNotReady) {
		t.Fatalf("got %v", err)
	}
	n.Occupied(nil)
	n.sync()
	n.assign(request("p2", "s1", []string{"a"}))
}

func TestUsedAddressThatIsGrantedNoMore(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.3")
	r := request("p1", "s1", []string{"a"})
	n.assign(r)
	n.api.pool("a").Grants = nil
	n.api.answer()
	n.see()
	n.sync()
	if diff := cmp.Diff([]v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.1.0.3"}}}, n.spec().Exact); diff != "" {
		t.Error(diff)
	}
	if s := n.Stats(); s.Pools[0].Conflicts != 1 {
		t.Errorf("stats %+v", s)
	}
	if _, _, err := n.Release(r.Key, 0, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Assign(request("p2", "s1", []string{"a"})); err == nil {
		t.Error("it was assigned again")
	}
}

func TestOldVersionsAreIgnored(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.3")
	old := n.api.lease.DeepCopy()
	n.api.pool("a").Grants = nil
	n.api.answer()
	n.see()
	if err := n.Observe(old); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Assign(request("p1", "s1", []string{"a"})); err == nil {
		t.Error("a grant of an old version was used")
	}
}

func TestLostAnswerIsReadAgain(t *testing.T) {
	n := newNode(t)
	n.Expect(request("p1", "", []string{"a"}))
	n.api.lost = apierrors.NewTimeoutError("gone", 1)
	if err := n.Sync(t.Context(), n.api); err == nil {
		t.Fatal("no error")
	}
	before := n.api.writes
	n.sync()
	if n.api.writes != before {
		t.Error("it was written again")
	}
	n.Abandon(holder.Key{PodUID: "p1"})
	n.api.lease.ResourceVersion = n.api.next() // somebody's write
	n.sync()
	if len(n.spec().Wants) > 0 {
		t.Errorf("wants %v", n.spec().Wants)
	}
	n.api.lease = nil // deleted
	n.Expect(request("p1", "", []string{"a"}))
	n.sync()
	if len(n.spec().Wants) != 1 {
		t.Errorf("wants %v", n.spec().Wants)
	}
}
