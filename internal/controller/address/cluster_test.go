package address

import (
	"strings"
	"testing"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam"
)

// testPool is one that gives 10.0.0.1 to .9.
func testPool(edit ...func(*v2beta1.SpiderIPPool)) *v2beta1.SpiderIPPool {
	p := &v2beta1.SpiderIPPool{
		ObjectMeta: metav1.ObjectMeta{Name: "rail0", UID: "1", Generation: 1, Finalizers: []string{v2beta1.Finalizer}},
		Spec:       v2beta1.IPPoolSpec{Subnet: "10.0.0.0/24", IPs: []string{"10.0.0.1-10.0.0.9"}},
	}
	p.Status.Conditions = []metav1.Condition{{Type: conditionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "it gives addresses"}}
	for _, change := range edit {
		change(p)
	}
	return p
}

func noneReserved(int64) *netipx.IPSet { return &netipx.IPSet{} }

// TestPools wants a pool to give nothing before the controller has reviewed it
// and holds it, nor after it was disabled, deleted or found wrong; and one that
// cannot be read to stay known, so that its ledgers do.
func TestPools(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit   func(*v2beta1.SpiderIPPool)
		closed string // what why has; empty: it gives
	}{
		"ready":        {func(*v2beta1.SpiderIPPool) {}, ""},
		"changed":      {func(p *v2beta1.SpiderIPPool) { p.Generation = 2 }, ""},
		"no condition": {func(p *v2beta1.SpiderIPPool) { p.Status.Conditions = nil }, "not reviewed"},
		"no finalizer": {func(p *v2beta1.SpiderIPPool) { p.Finalizers = nil }, "not reviewed"},
		"disable":      {func(p *v2beta1.SpiderIPPool) { p.Spec.Disable = new(true) }, "disabled"},
		"disabled":     {func(p *v2beta1.SpiderIPPool) { p.Spec.Disabled = new(true) }, "disabled"},
		"deleted":      {func(p *v2beta1.SpiderIPPool) { p.DeletionTimestamp = new(metav1.Now()) }, "deleted"},
		"conflict": {func(p *v2beta1.SpiderIPPool) {
			p.Status.Conditions[0].Status, p.Status.Conditions[0].Message = metav1.ConditionFalse, "pool x was first"
		}, "pool x was first"},
		"wrong since": {func(p *v2beta1.SpiderIPPool) { p.Spec.IPs = []string{"10.0.0.9-10.0.0.1"} }, "spec.ips[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.putPool(testPool(tt.edit))
			got, ok := c.viewPools(noneReserved)["rail0"]
			if !ok || got.Addresses == nil || (got.Closed == "") != (tt.closed == "") || !strings.Contains(got.Closed, tt.closed) || got.Deleting != (name == "deleted") {
				t.Errorf("pool %+v, want it closed by %q", got, tt.closed)
			}
		})
	}
}

// TestPoolChanges wants a round for what it could make something of, and none for numbers.
func TestPoolChanges(t *testing.T) {
	t.Parallel()
	c := newCluster()
	for _, step := range []struct {
		name string
		edit func(*v2beta1.SpiderIPPool)
		want bool
	}{
		{"new", func(p *v2beta1.SpiderIPPool) { p.Finalizers = nil }, true},
		{"finalizer", func(*v2beta1.SpiderIPPool) {}, true},
		{"number", func(p *v2beta1.SpiderIPPool) { p.Status.AllocatedIPCount = new(int64(1)) }, false},
		{"spec", func(p *v2beta1.SpiderIPPool) { p.Generation, p.Spec.IPs = 2, []string{"10.0.0.1"} }, true},
		{"deleted", func(p *v2beta1.SpiderIPPool) { p.Generation, p.DeletionTimestamp = 2, new(metav1.Now()) }, true},
		{"made again", func(p *v2beta1.SpiderIPPool) { p.UID = "2" }, true},
	} {
		if got := c.putPool(testPool(step.edit)); got != step.want {
			t.Errorf("%s: a round is wanted: %t", step.name, got)
		}
	}
}

// TestPoolAddresses wants reserved addresses kept back, and pools to serve the
// nodes that they are for, by names before labels.
func TestPoolAddresses(t *testing.T) {
	t.Parallel()
	c := newCluster()
	for name, rack := range map[string]string{"node1": "a", "node2": "b"} {
		node := testNode(name, "1")
		node.Labels = map[string]string{"rack": rack}
		c.putNode(node)
	}
	c.removeNode("node1") // and still counts
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "a"}}
	for _, p := range []*v2beta1.SpiderIPPool{
		testPool(func(p *v2beta1.SpiderIPPool) { p.Name = "all" }),
		testPool(func(p *v2beta1.SpiderIPPool) { p.Name, p.Spec.NodeAffinity = "rack", selector }),
		testPool(func(p *v2beta1.SpiderIPPool) {
			p.Name, p.Spec.NodeAffinity, p.Spec.NodeName = "named", selector, []string{"node2"}
		}),
		testPool(func(p *v2beta1.SpiderIPPool) { p.Name, p.Spec.Subnet = "unreadable", "x" }),
	} {
		c.putPool(p)
	}
	reserved, err := ipam.ParseRanges([]string{"10.0.0.2-10.0.0.4"})
	if err != nil {
		t.Fatal(err)
	}
	view := c.viewPools(func(int64) *netipx.IPSet { return reserved })
	for name, want := range map[string][3]bool{"all": {true, true, true}, "rack": {true, false, false}, "named": {false, true, false}} {
		p := view[name]
		if n := ipam.Count(p.Addresses); n != 6 {
			t.Errorf("pool %s has %d addresses", name, n)
		}
		for i, node := range []string{"node1", "node2", "node3"} {
			if got := p.Serves == nil || p.Serves(node); got != want[i] {
				t.Errorf("pool %s serves %s: %t", name, node, got)
			}
		}
	}
	if len(view) != 3 {
		t.Errorf("there are %d pools, and one never gave anything", len(view))
	}
}
