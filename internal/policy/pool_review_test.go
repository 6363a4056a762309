package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
)

// catalogOf is a Catalog with objects.
func catalogOf(objs ...metav1.Object) *Catalog {
	c := NewCatalog()
	for _, obj := range objs {
		c.Put(obj)
	}
	return c
}

// subnetWith is a SpiderSubnet.
func subnetWith(name, cidr string, ips []string, changes ...func(*v2beta1.SpiderSubnet)) *v2beta1.SpiderSubnet {
	subnet := &v2beta1.SpiderSubnet{ObjectMeta: poolWith(name, "", nil).ObjectMeta, Spec: v2beta1.SubnetSpec{Subnet: cidr, IPs: ips}}
	for _, change := range changes {
		change(subnet)
	}
	return subnet
}

func TestNewPoolBesideOthers(t *testing.T) {
	t.Parallel()
	gateway := func(text string) func(*v2beta1.SpiderIPPool) {
		return func(p *v2beta1.SpiderIPPool) { p.Spec.Gateway = &text }
	}
	broken := poolWith("broken", "10.9.0.0/24", []string{"10.9.0.1-10.9.0.9", "nonsense"})
	c := catalogOf(
		poolWith("one", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.20", "10.0.0.30-10.0.0.40"}, gateway("10.0.0.1")),
		poolWith("two", "10.0.0.0/24", []string{"10.0.0.50"}, gateway("10.0.0.1")),
		poolWith("six", "fd00::/64", []string{"fd00::1:0-fd00::1:ffff"}),
		broken,
		subnetWith("sub", "10.5.0.0/24", []string{"10.5.0.10-10.5.0.99"}),
	)
	for _, tt := range []struct {
		name string
		pool *v2beta1.SpiderIPPool
		want said
	}{
		{"the same subnet", poolWith("new", "10.0.0.0/24", []string{"10.0.0.60"}), said{}},
		{"the same subnet with host bits", poolWith("new", "10.0.0.7/24", []string{"10.0.0.40"}), said{
			Errors:   []string{`spec.ips[0]: Invalid value: "10.0.0.40": 10.0.0.40 is an address of pool one too: want each address in one pool`},
			Warnings: []string{`spec.subnet: "10.0.0.7/24" has host bits set: it means "10.0.0.0/24"`},
		}},
		{"addresses of several", poolWith("new", "10.0.0.0/24", []string{"10.0.0.5", "10.0.0.19-10.0.0.60"}), said{Errors: []string{
			`spec.ips[1]: Invalid value: "10.0.0.19-10.0.0.60": 10.0.0.50 is an address of pool two too: want each address in one pool`,
			`spec.ips[1]: Invalid value: "10.0.0.19-10.0.0.60": 10.0.0.30-10.0.0.40 are addresses of pool one too: want each address in one pool`,
			`spec.ips[1]: Invalid value: "10.0.0.19-10.0.0.60": 10.0.0.19-10.0.0.20 are addresses of pool one too: want each address in one pool`,
		}}},
		{"excluded addresses of others", poolWith("new", "10.0.0.0/24", []string{"10.0.0.19-10.0.0.25"}, func(p *v2beta1.SpiderIPPool) {
			p.Spec.ExcludeIPs = []string{"10.0.0.19-10.0.0.20"}
		}), said{}},
		{"a larger subnet", poolWith("new", "10.0.0.0/16", nil), said{Errors: []string{
			`spec.subnet: Invalid value: "10.0.0.0/16": overlaps the subnet 10.0.0.0/24 of pool one: want the same subnet, or one apart`,
		}}},
		{"a smaller subnet", poolWith("new", "fd00:0::8000:0:0:0/66", nil), said{Errors: []string{
			`spec.subnet: Invalid value: "fd00:0::8000:0:0:0/66": overlaps the subnet fd00::/64 of pool six: want the same subnet, or one apart`,
		}}},
		{"addresses of a broken pool", poolWith("new", "10.9.0.0/24", []string{"10.9.0.9"}), said{Errors: []string{
			`spec.ips[0]: Invalid value: "10.9.0.9": 10.9.0.9 is an address of pool broken too: want each address in one pool`,
		}}},
		{"cut from a SpiderSubnet", poolWith("new", "10.5.0.0/24", []string{"10.5.0.10-10.5.0.19"}), said{}},
		{"more than the SpiderSubnet has", poolWith("new", "10.5.0.0/24", []string{"10.5.0.90-10.5.0.110"}), said{Errors: []string{
			`spec.ips[0]: Invalid value: "10.5.0.90-10.5.0.110": 10.5.0.100-10.5.0.110 are no addresses of the SpiderSubnet sub (10.5.0.0/24), which pools of its CIDR are cut from`,
		}}},
		{"across a SpiderSubnet", poolWith("new", "10.5.0.0/20", nil), said{Errors: []string{
			`spec.subnet: Invalid value: "10.5.0.0/20": overlaps the SpiderSubnet sub (10.5.0.0/24): want the same subnet, or one apart`,
		}}},
		{"gateways as addresses", poolWith("new", "10.0.0.0/24", []string{"10.0.0.1-10.0.0.2"}, gateway("10.0.0.50")), said{Warnings: []string{
			`spec.gateway: 10.0.0.50 is one of the addresses of pool two: add it to the pool's excludeIPs, or a pod may take it`,
			`spec.ips: 10.0.0.1 is the gateway of pool one: add it to excludeIPs, or a pod may take it`,
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, saidBy(c.Review(tt.pool, nil))); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyConflicts has a pool that overlaps 1,000 others: what is said stays
// readable.
func TestManyConflicts(t *testing.T) {
	t.Parallel()
	c := NewCatalog()
	for i := range 1000 {
		c.Put(poolWith(fmt.Sprintf("p%d", i), "10.0.0.0/16", []string{fmt.Sprintf("10.0.%d.%d", i/200, 1+i%200)}))
	}
	review := c.Review(poolWith("new", "10.0.0.0/16", []string{"10.0.0.1-10.0.5.0"}), nil)
	if got := len(review.Errors); got != maxListed {
		t.Errorf("%d errors, want %d", got, maxListed)
	}
}

func TestPoolChange(t *testing.T) {
	t.Parallel()
	stored := poolWith("a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.20"}, func(p *v2beta1.SpiderIPPool) {
		p.Spec.IPVersion = new(int64(4))
		p.Status.AllocatedIPs = new(`{"10.0.0.12":{"pod":"ns/old","podUid":"1"}}`)
	})
	c := catalogOf(stored,
		poolWith("b", "10.0.0.0/24", []string{"10.0.0.30-10.0.0.40"}),
		poolWith("d", "10.0.0.0/24", []string{"10.0.0.20"}), // overlaps a already
		endpointWith("web-0", "a", "10.0.0.11/24"),
		endpointWith("web-1", "b", "10.0.0.13/24"),
	)
	for _, tt := range []struct {
		name   string
		change func(*v2beta1.SpiderIPPool)
		want   said
	}{
		{"nothing", func(*v2beta1.SpiderIPPool) {}, said{}},
		{"the subnet's spelling", func(p *v2beta1.SpiderIPPool) { p.Spec.Subnet = "10.0.0.9/24" }, said{Warnings: []string{
			`spec.subnet: "10.0.0.9/24" has host bits set: it means "10.0.0.0/24"`,
		}}},
		{"the subnet", func(p *v2beta1.SpiderIPPool) { p.Spec.Subnet = "10.0.0.0/23" }, said{Errors: []string{
			`spec.subnet: Forbidden: is immutable: it is 10.0.0.0/24, not 10.0.0.0/23; delete the pool and create another`,
		}}},
		{"the version", func(p *v2beta1.SpiderIPPool) { p.Spec.IPVersion = new(int64(6)) }, said{Errors: []string{
			`spec.ipVersion: Invalid value: 6: the subnet 10.0.0.0/24 is IPv4: want 4, or leave it out`,
			`spec.ipVersion: Forbidden: is immutable: it is 4, not 6; delete the pool and create another`,
		}}},
		{"fewer addresses", func(p *v2beta1.SpiderIPPool) { p.Spec.IPs = []string{"10.0.0.10-10.0.0.18"} }, said{}},
		{"fewer addresses, some in use", func(p *v2beta1.SpiderIPPool) { p.Spec.IPs = []string{"10.0.0.12-10.0.0.18"} }, said{Errors: []string{
			`spec.ips: Forbidden: 10.0.0.11 is in use by pod ns/web-0: delete the pod, or its SpiderEndpoint ns/web-0 if the pod is gone, or keep the address`,
		}}},
		{"excluded in use", func(p *v2beta1.SpiderIPPool) { p.Spec.ExcludeIPs = []string{"10.0.0.10-10.0.0.13"} }, said{Errors: []string{
			`spec.excludeIPs[0]: Forbidden: 10.0.0.11 is in use by pod ns/web-0: delete the pod, or its SpiderEndpoint ns/web-0 if the pod is gone, or keep the address`,
			`spec.excludeIPs[0]: Forbidden: 10.0.0.12 is in use by pod ns/old: delete the pod, or its SpiderEndpoint ns/old if the pod is gone, or keep the address`,
		}}},
		{"more addresses", func(p *v2beta1.SpiderIPPool) { p.Spec.IPs = []string{"10.0.0.10-10.0.0.29"} }, said{}},
		{"more addresses, some of another", func(p *v2beta1.SpiderIPPool) { p.Spec.IPs = []string{"10.0.0.10-10.0.0.31"} }, said{Errors: []string{
			`spec.ips[0]: Invalid value: "10.0.0.10-10.0.0.31": 10.0.0.30-10.0.0.31 are addresses of pool b too: want each address in one pool`,
		}}},
		{"a gateway", func(p *v2beta1.SpiderIPPool) { p.Spec.Gateway = new("10.0.0.1") }, said{}},
		{"a wrong gateway", func(p *v2beta1.SpiderIPPool) { p.Spec.Gateway = new("10.0.0.15") }, said{Errors: []string{
			`spec.gateway: Invalid value: "10.0.0.15": is one of the addresses for pods: take it from ips, or add it to excludeIPs`,
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changed := stored.DeepCopy()
			tt.change(changed)
			if diff := cmp.Diff(tt.want, saidBy(c.Review(changed, stored))); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreadableAllocations keeps all addresses when nobody can tell which are
// in use.
func TestUnreadableAllocations(t *testing.T) {
	t.Parallel()
	stored := poolWith("a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.20"}, func(p *v2beta1.SpiderIPPool) {
		p.Status.AllocatedIPs = new(`{"10.0.0.300":{}}`)
	})
	changed := stored.DeepCopy()
	changed.Spec.IPs = []string{"10.0.0.10"}
	want := said{Errors: []string{
		`status.allocatedIPs: Invalid value: "{\"10.0.0.300\":{}}": says which addresses are in use and cannot be read, so none can be removed: status.allocatedIPs of pool a: "10.0.0.300" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
	}}
	if diff := cmp.Diff(want, saidBy(catalogOf(stored).Review(changed, stored))); diff != "" {
		t.Errorf("Review (-want +got):\n%s", diff)
	}
}

// TestChangeOfBroken lets finalizers and labels of an object that breaks rules
// be written, and lets it be mended.
func TestChangeOfBroken(t *testing.T) {
	t.Parallel()
	stored := poolWith("a", "10.0.0.0/24", []string{"10.0.1.10"})
	labeled := stored.DeepCopy()
	labeled.Finalizers, labeled.Labels = []string{v2beta1.Finalizer}, map[string]string{"a": "b"}
	mended := stored.DeepCopy()
	mended.Spec.IPs = []string{"10.0.0.10"}
	for _, changed := range []*v2beta1.SpiderIPPool{labeled, mended} {
		if r := catalogOf(stored).Review(changed, stored); !r.OK() {
			t.Errorf("%v: %v", changed.Spec.IPs, r.Errors)
		}
	}
	if catalogOf(stored).Review(stored, nil).OK() {
		t.Error("the stored object is accepted")
	}
	if _, ok := catalogOf(stored).Pool("a"); ok {
		t.Error("the stored object is answered")
	}
}

func TestDeletingPool(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Unix(1, 0))
	stored := poolWith("a", "10.0.0.0/24", []string{"10.0.1.10"}, func(p *v2beta1.SpiderIPPool) {
		p.DeletionTimestamp, p.Finalizers = &now, []string{v2beta1.Finalizer}
	})
	c := catalogOf(stored)
	freed := stored.DeepCopy()
	freed.Finalizers = nil
	if r := c.Review(freed, stored); !r.OK() {
		t.Errorf("removing the finalizer: %v", r.Errors)
	}
	changed := stored.DeepCopy()
	changed.Spec.IPs = []string{"10.0.0.10"}
	changed.Finalizers = append(changed.Finalizers, "example.com/x")
	want := said{Errors: []string{
		`spec: Forbidden: a is being deleted: only finalizers may be removed`,
		`metadata.finalizers[1]: Forbidden: a is being deleted: "example.com/x" cannot be added`,
	}}
	if diff := cmp.Diff(want, saidBy(c.Review(changed, stored))); diff != "" {
		t.Errorf("Review (-want +got):\n%s", diff)
	}
	if c.Default(changed); len(changed.Finalizers) != 2 {
		t.Errorf("Default changed an object that is being deleted: %q", changed.Finalizers)
	}
}

func TestPoolDelete(t *testing.T) {
	t.Parallel()
	pool := poolWith("a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.20"})
	c := catalogOf(pool, endpointWith("web-0", "a", "10.0.0.11/24"))
	if r := c.ReviewDelete(pool); !r.OK() {
		t.Errorf("by default: %v", r.Errors)
	}
	config := DefaultConfig()
	config.RefuseDeleteInUse = true
	c.SetConfig(config)
	want := said{Errors: []string{
		`metadata.name: Forbidden: pods have 1 address of pool a: delete the pods first, or set enableValidatingResourcesDeletedWebhook: false in the ConfigMap spiderpool-conf to have it go when they do`,
	}}
	if diff := cmp.Diff(want, saidBy(c.ReviewDelete(pool))); diff != "" {
		t.Errorf("ReviewDelete (-want +got):\n%s", diff)
	}
	c.Remove(endpointWith("web-0", "a", "10.0.0.11/24"))
	if r := c.ReviewDelete(pool); !r.OK() {
		t.Errorf("not in use: %v", r.Errors)
	}
}

// TestBothAdmitted has objects that two replicas admitted at the same time:
// exactly one of each two is to blame, whoever is asked and in which order they
// came.
func TestBothAdmitted(t *testing.T) {
	t.Parallel()
	at := func(second int64) func(*v2beta1.SpiderIPPool) {
		return func(p *v2beta1.SpiderIPPool) { p.CreationTimestamp = metav1.NewTime(time.Unix(second, 0)) }
	}
	early := poolWith("z", "10.0.0.0/24", []string{"10.0.0.1-10.0.0.9"}, at(1))
	late := poolWith("a", "10.0.0.0/24", []string{"10.0.0.9"}, at(2))
	wide := poolWith("m", "10.0.0.0/16", []string{"10.0.7.9"}, at(2))
	for _, c := range []*Catalog{catalogOf(early, late, wide), catalogOf(wide, late, early)} {
		if r := c.Review(early, nil); !r.OK() {
			t.Errorf("the earliest loses: %v", r.Errors)
		}
		want := said{Errors: []string{`spec.ips[0]: Invalid value: "10.0.0.9": 10.0.0.9 is an address of pool z too: want each address in one pool`}}
		if diff := cmp.Diff(want, saidBy(c.Review(late, nil))); diff != "" {
			t.Errorf("the later (-want +got):\n%s", diff)
		}
		// Of the same second as late, with the larger UID.
		want = said{Errors: []string{`spec.subnet: Invalid value: "10.0.0.0/16": overlaps the subnet 10.0.0.0/24 of pool a: want the same subnet, or one apart`}}
		if diff := cmp.Diff(want, saidBy(c.Review(wide, nil))); diff != "" {
			t.Errorf("the latest (-want +got):\n%s", diff)
		}
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	c := NewCatalog()
	config := DefaultConfig()
	config.EnableIPv6 = false
	c.SetConfig(config)
	want := said{Errors: []string{
		`spec.subnet: Invalid value: "fd00::/64": is IPv6, which the cluster does not use: want the other family, or enableIPv6: true in the ConfigMap spiderpool-conf`,
	}}
	if diff := cmp.Diff(want, saidBy(c.Review(poolWith("a", "fd00::/64", nil), nil))); diff != "" {
		t.Errorf("Review (-want +got):\n%s", diff)
	}
	if r := c.Review(poolWith("a", "10.0.0.0/24", nil), nil); !r.OK() {
		t.Errorf("the other family: %v", r.Errors)
	}
}
