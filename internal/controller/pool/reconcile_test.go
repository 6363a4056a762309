package pool

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/spiderpool/v2beta1"
)

func condition(t *testing.T, p *v2beta1.SpiderIPPool) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(p.Status.Conditions, Ready)
	if c == nil {
		t.Fatalf("pool %s has no condition %s", p.Name, Ready)
	}
	return *c
}

// TestCount wants a new pool counted and given its finalizer with two writes,
// and none after that.
func TestCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool("rail0", 0), endpoint("a", "rail0", "10.0.0.1"), endpoint("b", "rail0", "10.0.0.2"), endpoint("c", "other", "10.0.0.3"))
	told, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	p := w.pool(t, "rail0")
	if *p.Status.TotalIPCount != 9 || *p.Status.AllocatedIPCount != 2 {
		t.Errorf("%d addresses of which %d are used, want 9 and 2", *p.Status.TotalIPCount, *p.Status.AllocatedIPCount)
	}
	if diff := cmp.Diff([]string{v2beta1.Finalizer}, p.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if c := condition(t, p); c.Status != metav1.ConditionTrue || c.Reason != ReasonReady || c.ObservedGeneration != 1 {
		t.Errorf("condition %+v", c)
	}
	if diff := cmp.Diff([]string{"Normal Ready it gives addresses"}, told); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	if w.writes != 2 {
		t.Errorf("%d writes, want 2", w.writes)
	}
	if told, err := w.reconcile(t); err != nil || w.writes != 2 || len(told) > 0 {
		t.Errorf("the second look: error %v, %d writes, Events %q", err, w.writes-2, told)
	}
}

// TestHuge wants more addresses than a number has room for to be capped.
func TestHuge(t *testing.T) {
	t.Parallel()
	p := pool("rail0", 0)
	p.Spec.Subnet, p.Spec.IPs = "fd00::/48", []string{"fd00::1-fd00::ffff:ffff:ffff:ffff:fffe"}
	w := newWorld(t, p)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if got := *w.pool(t, "rail0").Status.TotalIPCount; got != math.MaxInt64 {
		t.Errorf("%d addresses", got)
	}
}

// TestOldAllocations wants the addresses that Spiderpool noted in the pool
// itself to count, and stay noted.
func TestOldAllocations(t *testing.T) {
	t.Parallel()
	noted := `{"10.0.0.4":{"pod":"default/x","podUid":"1"}}`
	p := going("rail0", 0)
	p.Status.AllocatedIPs = &noted
	w := newWorld(t, p)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	got := w.pool(t, "rail0")
	if *got.Status.AllocatedIPCount != 1 || *got.Status.AllocatedIPs != noted {
		t.Errorf("status %+v", got.Status)
	}
}

// TestConditions wants the reason and the words for each way not to serve.
func TestConditions(t *testing.T) {
	t.Parallel()
	edit := func(change func(*v2beta1.SpiderIPPool)) *v2beta1.SpiderIPPool {
		p := pool("rail0", 1)
		change(p)
		return p
	}
	tests := []struct {
		name    string
		objects []client.Object
		reason  string
		words   string
	}{
		{"disable", []client.Object{edit(func(p *v2beta1.SpiderIPPool) { p.Spec.Disable = new(true) })}, ReasonDisabled, "spec.disable"},
		{"disabled", []client.Object{edit(func(p *v2beta1.SpiderIPPool) { p.Spec.Disabled = new(true) })}, ReasonDisabled, "those in use stay"},
		{"no range", []client.Object{edit(func(p *v2beta1.SpiderIPPool) { p.Spec.IPs = []string{"10.0.1.9-10.0.1.1"} })}, ReasonInvalid, "spec.ips[0]"},
		{"no subnet", []client.Object{edit(func(p *v2beta1.SpiderIPPool) { p.Spec.Subnet = "x" })}, ReasonInvalid, "spec.subnet"},
		{"another was first", []client.Object{
			edit(func(*v2beta1.SpiderIPPool) {}),
			func() client.Object { p := pool("first", 0); p.Spec = pool("rail0", 1).Spec; return p }(),
		}, ReasonConflict, "pool first"},
		{"going, one in use", []client.Object{going("rail0", 1), endpoint("a", "rail0", "10.0.1.1")}, ReasonTerminating, "the one address"},
		{"going, two in use", []client.Object{
			going("rail0", 1), endpoint("a", "rail0", "10.0.1.1"), endpoint("b", "rail0", "10.0.1.2"),
		}, ReasonTerminating, "the 2 addresses"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.objects...)
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			c := condition(t, w.pool(t, "rail0"))
			if c.Status != metav1.ConditionFalse || c.Reason != tt.reason || !strings.Contains(c.Message, tt.words) {
				t.Errorf("condition %s %s %q, want False %s with %q", c.Status, c.Reason, c.Message, tt.reason, tt.words)
			}
			before := w.writes
			if told, err := w.reconcile(t); err != nil || w.writes != before || len(told) > 0 {
				t.Errorf("the second look: error %v, %d writes, Events %q", err, w.writes-before, told)
			}
		})
	}
}

// TestFamilyOff wants a pool of a family that the cluster does not have to be
// told so, and the winner of a conflict to serve.
func TestFamilyOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool("rail0", 0))
	r, _ := w.reconciler(t)
	config := r.Catalog.Config()
	config.EnableIPv4 = false
	r.Catalog.SetConfig(config)
	if _, err := r.Reconcile(t.Context(), named("rail0")); err != nil {
		t.Fatal(err)
	}
	if c := condition(t, w.pool(t, "rail0")); c.Reason != ReasonInvalid || !strings.Contains(c.Message, "IPv4") {
		t.Errorf("condition %+v", c)
	}
}

// TestTerminating wants a deleted pool to stay while addresses are in use, and
// to go with one write once they are free.
func TestTerminating(t *testing.T) {
	t.Parallel()
	used := endpoint("a", "rail0", "10.0.0.1")
	w := newWorld(t, going("rail0", 0), used)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	w.pool(t, "rail0")
	if err := w.client.Delete(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	before := w.writes
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	err := w.client.Get(t.Context(), client.ObjectKey{Name: "rail0"}, &v2beta1.SpiderIPPool{})
	if !apierrors.IsNotFound(err) || w.writes != before+1 {
		t.Errorf("error %v after %d writes, want it gone after 1", err, w.writes-before)
	}
}

// TestOtherFinalizers wants a pool that others hold, too, to lose ours only, and
// then to be left alone.
func TestOtherFinalizers(t *testing.T) {
	t.Parallel()
	p := going("rail0", 0)
	p.Finalizers = append(p.Finalizers, "example.com/other")
	w := newWorld(t, p)
	for range 2 {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"example.com/other"}, w.pool(t, "rail0").Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if w.writes != 1 {
		t.Errorf("%d writes, want 1", w.writes)
	}
}

// TestUnreadableAllocations wants a pool whose own notes of addresses in use
// cannot be read to stay when it is deleted, to give no address, to say why, and
// its number of addresses in use not to be made up.
func TestUnreadableAllocations(t *testing.T) {
	t.Parallel()
	for name, noted := range map[string]string{
		"no JSON":      `{"10.0.0.4":{"pod":"default/x"`,
		"no address":   `{"10.0.0.400":{"pod":"default/x"}}`,
		"no object":    `["10.0.0.4"]`,
		"very long":    strings.Repeat("é", 1<<10),
		"a long one":   `{"` + strings.Repeat("9", 40<<10) + `":{"pod":"default/x"}}`,
		"no whole one": `{"10.0.0.4":"default/x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, deleted := pool("live", 0), going("deleted", 1)
			for _, p := range []*v2beta1.SpiderIPPool{live, deleted} {
				p.Status.AllocatedIPs, p.Status.AllocatedIPCount = &noted, new(int64(7))
			}
			w := newWorld(t, live, deleted)
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			for name, reason := range map[string]string{"live": ReasonInvalid, "deleted": ReasonTerminating} {
				p := w.pool(t, name)
				c := condition(t, p)
				if c.Status != metav1.ConditionFalse || c.Reason != reason || !strings.Contains(c.Message, "status.allocatedIPs") || len(c.Message) > 1024 {
					t.Errorf("pool %s: condition %+v", name, c)
				}
				if *p.Status.AllocatedIPCount != 7 || len(p.Finalizers) != 1 {
					t.Errorf("pool %s: %d in use, finalizers %q", name, *p.Status.AllocatedIPCount, p.Finalizers)
				}
			}
			mended := w.pool(t, "deleted")
			mended.Status.AllocatedIPs = nil
			if err := w.client.Status().Update(t.Context(), mended); err != nil {
				t.Fatal(err)
			}
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if err := w.client.Get(t.Context(), client.ObjectKey{Name: "deleted"}, &v2beta1.SpiderIPPool{}); !apierrors.IsNotFound(err) {
				t.Errorf("error %v, want it gone once nothing is noted", err)
			}
		})
	}
}

// TestUnheardOf wants a deleted pool to stay for an address that the cache has
// not heard of, or that cannot be read, and to be looked at again.
func TestUnheardOf(t *testing.T) {
	t.Parallel()
	family6 := endpoint("six", "rail0", "")
	family6.Status.Current.IPs[0] = v2beta1.EndpointInterface{Interface: "net1", IPv6: new("fd00::1/64"), IPv6Pool: new("rail0")}
	for name, holder := range map[string]*v2beta1.SpiderEndpoint{
		"late": endpoint("late", "rail0", "10.0.0.1"), "unreadable": endpoint("unreadable", "rail0", "10.0.0.1/24"), "six": family6,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			without := endpoint("without", "rail0", "")
			without.Status.Current.IPs[0].IPv4 = nil
			w := newWorld(t, going("rail0", 0), without, endpoint("other", "rail1", "10.0.1.1"))
			r, _ := w.reconciler(t)
			if err := w.client.Create(t.Context(), holder); err != nil {
				t.Fatal(err)
			}
			result, err := r.Reconcile(t.Context(), named("rail0"))
			if err != nil || result.RequeueAfter != recheck {
				t.Errorf("error %v, result %+v", err, result)
			}
			if c := condition(t, w.pool(t, "rail0")); c.Reason != ReasonTerminating || !strings.Contains(c.Message, "default/"+name) {
				t.Errorf("condition %+v", c)
			}
			if err := w.client.Delete(t.Context(), holder); err != nil {
				t.Fatal(err)
			}
			if result, err := r.Reconcile(t.Context(), all()); err != nil || result.RequeueAfter != 0 {
				t.Errorf("error %v, result %+v", err, result)
			}
			if err := w.client.Get(t.Context(), client.ObjectKey{Name: "rail0"}, &v2beta1.SpiderIPPool{}); !apierrors.IsNotFound(err) {
				t.Errorf("error %v, want it gone", err)
			}
		})
	}
}

// TestInvalidAmongMany wants one pool that breaks rules to keep no other from
// being counted, and its finalizer, since it may not always have broken them.
func TestInvalidAmongMany(t *testing.T) {
	t.Parallel()
	bad := pool("bad", 1)
	bad.Spec.IPs = []string{"nonsense"}
	w := newWorld(t, pool("a", 0), bad, pool("c", 2))
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "c"} {
		if p := w.pool(t, name); p.Status.TotalIPCount == nil || *p.Status.TotalIPCount != 9 {
			t.Errorf("pool %s: status %+v", name, p.Status)
		}
	}
	if p := w.pool(t, "bad"); p.Status.TotalIPCount != nil || len(p.Finalizers) != 1 {
		t.Errorf("the bad pool has status %+v and finalizers %q", p.Status, p.Finalizers)
	}
}

// TestKilled kills the reconciler at each of its writes, before the write and
// after it: another one brings all to where it would be, and then writes nothing.
func TestKilled(t *testing.T) {
	t.Parallel()
	start := func() []client.Object {
		return []client.Object{
			pool("a", 0), pool("b", 1), going("c", 2), going("d", 3), endpoint("x", "a", "10.0.0.1"), endpoint("y", "d", "10.0.3.1"),
		}
	}
	whole := newWorld(t, start()...)
	if _, err := whole.reconcile(t); err != nil {
		t.Fatal(err)
	}
	for at := range whole.writes {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d lost %t", at+1, lost), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, start()...)
				w.failAt, w.lost = at+1, lost
				if _, err := w.reconcile(t); err == nil {
					t.Fatal("it was not killed")
				}
				if _, err := w.reconcile(t); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(whole.stored(t), w.stored(t)); diff != "" {
					t.Errorf("(-undisturbed +killed):\n%s", diff)
				}
				before := w.writes
				if told, err := w.reconcile(t); err != nil || w.writes != before || len(told) > 0 {
					t.Errorf("converged, it writes %d times more, tells %q, and has error %v", w.writes-before, told, err)
				}
			})
		}
	}
}

// stored are all pools, without what depends on when and how often they were written.
func (w *world) stored(t *testing.T) []v2beta1.SpiderIPPool {
	t.Helper()
	var list v2beta1.SpiderIPPoolList
	if err := w.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		list.Items[i].ResourceVersion = ""
		for j := range list.Items[i].Status.Conditions {
			list.Items[i].Status.Conditions[j].LastTransitionTime = metav1.Time{}
		}
	}
	return list.Items
}

// TestPaused wants a reconciler that decided by what is no more so to write
// nothing over what others wrote since, and to look again.
func TestPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool("rail0", 0))
	paused, _ := w.reconciler(t)
	stale := w.pool(t, "rail0")
	if _, err := w.reconcile(t); err != nil { // by another leader
		t.Fatal(err)
	}
	before := w.stored(t)
	result, err := settle(paused.one(t.Context(), stale))
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("error %v, result %+v: want to look again", err, result)
	}
	if diff := cmp.Diff(before, w.stored(t)); diff != "" {
		t.Errorf("it was changed (-before +after):\n%s", diff)
	}
}

// TestTransition wants the time of a condition to be that of its last change of
// status, not of the last look.
func TestTransition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool("rail0", 0))
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	long := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := w.pool(t, "rail0")
	p.Status.Conditions[0].LastTransitionTime = long
	if err := w.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Create(t.Context(), endpoint("a", "rail0", "10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	p = w.pool(t, "rail0")
	if *p.Status.AllocatedIPCount != 1 || !condition(t, p).LastTransitionTime.Time.Equal(long.Time) {
		t.Errorf("status %+v", p.Status)
	}
}
