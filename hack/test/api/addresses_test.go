package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// handPool makes a pool of the first addresses of 10.n.0.0/24, and waits until it serves.
func (s *Server) handPool(t *testing.T, name string, n, addresses int) {
	t.Helper()
	s.Make(t, Objects(t, fmt.Sprintf(`
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: %s}
spec: {subnet: 10.%d.0.0/24, ips: [10.%[2]d.0.1-10.%[2]d.0.%d]}
`, name, n, addresses))[0])
	s.awaitPool(t, name, func(p *v2beta1.SpiderIPPool) string { return conditionOf(p, "Ready") })
}

// conditionOf says what is missing to a reason of a pool's condition.
func conditionOf(p *v2beta1.SpiderIPPool, reason string) string {
	for _, c := range p.Status.Conditions {
		if c.Reason == reason {
			return ""
		}
	}
	return "reason " + reason + " of pool " + p.Name
}

// awaitPool waits for something of a pool.
func (s *Server) awaitPool(t *testing.T, name string, missing func(*v2beta1.SpiderIPPool) string) {
	t.Helper()
	Eventually(t, func() string {
		p := &v2beta1.SpiderIPPool{}
		if err := s.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
			return err.Error()
		}
		return missing(p)
	})
}

// handLease writes the lease of a node by hand, as its agent would.
func (s *Server) handLease(t *testing.T, node string, edit func(*v1alpha1.AddressLease)) {
	t.Helper()
	Eventually(t, func() string {
		n, lease := &corev1.Node{}, &v1alpha1.AddressLease{}
		if err := s.Get(t.Context(), client.ObjectKey{Name: node}, n); err != nil {
			return err.Error()
		}
		lease.Name = node
		if _, err := controllerutil.CreateOrUpdate(t.Context(), s.Client, lease, func() error {
			lease.Spec.NodeUID = n.UID
			edit(lease)
			return nil
		}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// wants has a node want that many addresses of a pool.
func wants(pool string, n int64) func(*v1alpha1.AddressLease) {
	return func(l *v1alpha1.AddressLease) { l.Spec.Wants = []v1alpha1.Want{{Pool: pool, Addresses: n}} }
}

// awaitLease waits for an answer to what a lease says now, and for something of it.
func (s *Server) awaitLease(t *testing.T, node string, missing func(*v1alpha1.AddressLease) string) *v1alpha1.AddressLease {
	t.Helper()
	lease := &v1alpha1.AddressLease{}
	Eventually(t, func() string {
		if err := s.Get(t.Context(), client.ObjectKey{Name: node}, lease); err != nil {
			return err.Error()
		}
		if what := missing(lease); what != "" {
			return fmt.Sprintf("%s; it is %+v", what, lease.Status)
		}
		return ""
	})
	return lease
}

// grants are a node's addresses of a pool.
func grants(l *v1alpha1.AddressLease, pool string) (addresses []string) {
	for _, p := range l.Status.Pools {
		for _, g := range p.Grants {
			if p.Pool == pool {
				addresses = append(addresses, g.Addresses...)
			}
		}
	}
	return addresses
}

// granted wants some address of a pool, and an answer to the latest request.
func granted(pool string) func(*v1alpha1.AddressLease) string {
	return func(l *v1alpha1.AddressLease) string {
		if l.Status.ObservedGeneration != l.Generation || len(grants(l, pool)) == 0 {
			return "a grant of " + pool
		}
		return ""
	}
}

// nothing wants no address of a pool.
func nothing(pool string) func(*v1alpha1.AddressLease) string {
	return func(l *v1alpha1.AddressLease) string {
		if len(grants(l, pool)) > 0 {
			return "the end of grants of " + pool
		}
		return ""
	}
}

// giveBack has a node give back all that it has, and want nothing, until that is over.
func (s *Server) giveBack(t *testing.T, node string) {
	t.Helper()
	s.handLease(t, node, func(l *v1alpha1.AddressLease) {
		l.Spec.Wants, l.Spec.Pins, l.Spec.Returns = nil, nil, nil
		for _, p := range l.Status.Pools {
			for _, g := range p.Grants {
				l.Spec.Returns = append(l.Spec.Returns, v1alpha1.Return{Pool: p.Pool, Epoch: g.Epoch, Addresses: g.Addresses})
			}
		}
	})
	s.awaitLease(t, node, func(l *v1alpha1.AddressLease) string {
		for _, p := range l.Status.Pools {
			if len(p.Grants) > 0 {
				return "the end of all grants"
			}
		}
		return ""
	})
	s.handLease(t, node, func(l *v1alpha1.AddressLease) { l.Spec.Returns = nil })
}

// runs are those of a pool's ledger, none if it has none.
func (s *Server) runs(t *testing.T, pool string) []v1alpha1.Run {
	t.Helper()
	ledger := &v1alpha1.PoolLedger{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: pool}, ledger); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return ledger.Spec.Runs
}

// TestAddressLeases has nodes ask for addresses, give them back and be fenced,
// with leases written by hand.
//
//nolint:tparallel // what nodes hold is there for what comes next
func TestAddressLeases(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	for _, name := range []string{"node1", "node2"} {
		s.node(t, name)
	}
	t.Run("round trip", s.testRoundTrip)
	t.Run("fenced", s.testFenced)
	t.Run("deleted pool", s.testDeletedPool)
	t.Run("smaller pool", s.testSmallerPool)
	t.Run("allocatedIPs", s.testAllocatedIPs)
	t.Run("lost ledger", s.testLostLedger)
}

func (s *Server) testRoundTrip(t *testing.T) {
	s.handPool(t, "trip", 1, 20)
	s.handLease(t, "node1", wants("trip", 3))
	lease := s.awaitLease(t, "node1", granted("trip"))
	if lease.Status.NodeUID != lease.Spec.NodeUID || !strings.HasPrefix(grants(lease, "trip")[0], "10.1.0.1-") {
		t.Errorf("status %+v", lease.Status)
	}
	s.handLease(t, "node2", wants("trip", 17))
	s.awaitLease(t, "node2", func(l *v1alpha1.AddressLease) string {
		if len(grants(l, "trip")) == 0 {
			return "what is left"
		}
		return ""
	})
	s.giveBack(t, "node2")
	s.giveBack(t, "node1")
	if left := s.runs(t, "trip"); len(left) > 0 {
		t.Errorf("after all was returned, the ledger has %+v", left)
	}
}

// testFenced has a node fenced by an administrator's word, and one by its taint.
func (s *Server) testFenced(t *testing.T) {
	s.handPool(t, "fence", 2, 20)
	for node, fence := range map[string]func(bool){
		"node1": func(on bool) {
			s.handLease(t, "node1", func(l *v1alpha1.AddressLease) {
				delete(l.Annotations, v1alpha1.AnnotationFenced)
				if on {
					metav1.SetMetaDataAnnotation(&l.ObjectMeta, v1alpha1.AnnotationFenced, string(l.Spec.NodeUID))
				}
			})
		},
		"node2": func(on bool) {
			n := &corev1.Node{}
			if err := s.Get(t.Context(), client.ObjectKey{Name: "node2"}, n); err != nil {
				t.Fatal(err)
			}
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
			if on {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
			}
			if err := s.Update(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		},
	} {
		s.handLease(t, node, wants("fence", 3))
		s.awaitLease(t, node, granted("fence"))
		fence(true)
		s.awaitLease(t, node, nothing("fence"))
		Eventually(t, func() string {
			if slices.ContainsFunc(s.runs(t, "fence"), func(run v1alpha1.Run) bool { return run.Node == node }) {
				return "the end of what " + node + " has, in the ledger"
			}
			return ""
		})
		fence(false)
		s.awaitLease(t, node, granted("fence"))
		s.giveBack(t, node)
	}
}

// testDeletedPool has a pool stay while a node holds addresses of it, which are
// revoked, and go with its ledger once they are back.
func (s *Server) testDeletedPool(t *testing.T) {
	s.handPool(t, "deleted", 3, 20)
	s.handLease(t, "node1", wants("deleted", 3))
	s.awaitLease(t, "node1", granted("deleted"))
	pool := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: "deleted"}}
	if err := s.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s.awaitLease(t, "node1", func(l *v1alpha1.AddressLease) string {
		for _, p := range l.Status.Pools {
			if p.Pool == "deleted" && len(p.Revoke) > 0 {
				return ""
			}
		}
		return "that the node is asked to give them back"
	})
	s.awaitPool(t, "deleted", func(p *v2beta1.SpiderIPPool) string {
		if !slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool {
			return strings.Contains(c.Message, "are given back that nodes hold")
		}) {
			return fmt.Sprintf("why it stays; it says %+v", p.Status.Conditions)
		}
		return ""
	})
	s.giveBack(t, "node1")
	Eventually(t, func() string {
		for _, o := range []client.Object{pool, &v1alpha1.PoolLedger{ObjectMeta: metav1.ObjectMeta{Name: "deleted"}}} {
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("the end of %T: %v", o, err)
			}
		}
		return ""
	})
}

// testSmallerPool has a pool lose addresses: those in reserve are recalled, with
// a warning, and those of pods are refused.
func (s *Server) testSmallerPool(t *testing.T) {
	s.handPool(t, "small", 4, 9)
	s.handLease(t, "node1", wants("small", 9))
	s.awaitLease(t, "node1", granted("small"))
	s.published(t, "tenant", "small", "10.4.0.1")
	Eventually(t, func() string { // the replica hears of both a moment later
		out := s.Kubectl(t, "", "patch", "sp", "small", "--type=merge", "-p", `{"spec":{"ips":["10.4.0.2-10.4.0.9"]}}`)
		if !out.Failed || !strings.Contains(out.Stderr, "10.4.0.1 is in use by pod default/tenant") {
			return "a refusal that names the pod, not " + out.Stdout + out.Stderr
		}
		return ""
	})
	out := s.Kubectl(t, "", "patch", "sp", "small", "--type=merge", "-p", `{"spec":{"ips":["10.4.0.1-10.4.0.4"]}}`)
	if out.Failed || !strings.Contains(out.Stderr, "takes 5 addresses back") {
		t.Errorf("kubectl says %+v", out)
	}
	s.awaitLease(t, "node1", func(l *v1alpha1.AddressLease) string {
		for _, p := range l.Status.Pools {
			if slices.Contains(p.Revoke, "10.4.0.5-10.4.0.9") {
				return ""
			}
		}
		return "the recall of what the pool lost"
	})
	s.giveBack(t, "node1")
}

// published makes the SpiderEndpoint of a pod of node1.
func (s *Server) published(t *testing.T, name, pool, address string) *v2beta1.SpiderEndpoint {
	t.Helper()
	e := endpointOn(name, "node1")
	e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: "u"}}
	e.Status.Current.IPs = []v2beta1.EndpointInterface{{Interface: "net1", IPv4: new(address + "/24"), IPv4Pool: &pool}}
	if err := s.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// testAllocatedIPs has the numbers of a pool, and who has its addresses, follow
// what is published.
func (s *Server) testAllocatedIPs(t *testing.T) {
	const count = 40
	s.handPool(t, "noted", 5, count)
	s.handLease(t, "node1", wants("noted", count))
	s.awaitLease(t, "node1", granted("noted"))
	var all []*v2beta1.SpiderEndpoint
	for i := range count {
		all = append(all, s.published(t, fmt.Sprintf("noted-%d", i), "noted", fmt.Sprintf("10.5.0.%d", i+1)))
	}
	s.awaitPool(t, "noted", func(p *v2beta1.SpiderIPPool) string {
		text := p.Status.AllocatedIPs
		if p.Status.AllocatedIPCount == nil || *p.Status.AllocatedIPCount != count || text == nil || strings.Count(*text, "podUid") != count ||
			!strings.Contains(*text, `"10.5.0.7":{"pod":"default/noted-6","podUid":"u"}`) {
			return fmt.Sprintf("what %d pods have; it says %+v", count, p.Status)
		}
		return ""
	})
	for _, e := range all {
		if err := s.Delete(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitPool(t, "noted", func(p *v2beta1.SpiderIPPool) string {
		if *p.Status.AllocatedIPCount != 0 || p.Status.AllocatedIPs != nil {
			return fmt.Sprintf("the end of what pods had; it says %+v", p.Status)
		}
		return ""
	})
	s.giveBack(t, "node1")
}

// testLostLedger has a ledger deleted by force: it is made again of what nodes hold.
func (s *Server) testLostLedger(t *testing.T) {
	s.handPool(t, "lost", 6, 20)
	s.handLease(t, "node1", wants("lost", 3))
	before := grants(s.awaitLease(t, "node1", granted("lost")), "lost")
	ledger := &v1alpha1.PoolLedger{}
	Eventually(t, func() string { // the controller may write it meanwhile, its finalizer too
		if err := s.Get(t.Context(), client.ObjectKey{Name: "lost"}, ledger); err != nil {
			return err.Error()
		}
		ledger.Finalizers = nil
		if err := s.Update(t.Context(), ledger); err != nil {
			return err.Error()
		}
		if err := s.Delete(t.Context(), ledger, client.Preconditions{ResourceVersion: &ledger.ResourceVersion}); err != nil {
			return err.Error()
		}
		return ""
	})
	s.handLease(t, "node2", wants("lost", 3))
	lease := s.awaitLease(t, "node2", granted("lost"))
	if after := grants(s.awaitLease(t, "node1", granted("lost")), "lost"); !slices.Equal(before, after) {
		t.Errorf("node1 has %q, and had %q", after, before)
	}
	if slices.ContainsFunc(grants(lease, "lost"), func(a string) bool { return slices.Contains(before, a) }) {
		t.Errorf("both nodes have some of %q", grants(lease, "lost"))
	}
	fresh := &v1alpha1.PoolLedger{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: "lost"}, fresh); err != nil || fresh.Spec.Epoch <= ledger.Spec.Epoch {
		t.Errorf("the ledger has epoch %d, and had %d; error %v", fresh.Spec.Epoch, ledger.Spec.Epoch, err)
	}
	s.giveBack(t, "node1")
	s.giveBack(t, "node2")
}

// TestGoneForGood has everybody go who held addresses: a pod of a StatefulSet, a
// node, a pod from before Railhead, and one whose endpoint a finalizer of
// Spiderpool holds, as when its namespace is deleted. What they had can be given
// to others, after half a minute, and what stays, stays.
func TestGoneForGood(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	for _, name := range []string{"gone1", "gone2"} {
		s.node(t, name)
	}
	s.handPool(t, "old", 14, 9)
	s.note(t, "old", `{"10.14.0.1":{"pod":"default/before","podUid":"x"},"10.14.0.2":{"pod":"default/there"}}`)
	s.idlePod(t, "there")
	s.handPool(t, "kept", 15, 9)
	set := s.statefulSet(t, "web", 2)
	pins := func(l *v1alpha1.AddressLease) {
		for ordinal := range 2 {
			l.Spec.Pins = append(l.Spec.Pins, v1alpha1.Pin{
				Identity: fmt.Sprintf("StatefulSet/default/web/%d", ordinal), Wants: []v1alpha1.Want{{Pool: "kept", Addresses: 1}},
			})
		}
	}
	s.handLease(t, "gone1", func(l *v1alpha1.AddressLease) { wants("old", 1)(l); pins(l) })
	lease := s.awaitLease(t, "gone1", granted("old"))
	if slices.ContainsFunc(grants(lease, "old"), func(a string) bool { return strings.HasPrefix(a, "10.14.0.1") || strings.HasPrefix(a, "10.14.0.2") }) {
		t.Errorf("gone1 was granted %q, which pods have", grants(lease, "old"))
	}
	s.awaitLease(t, "gone1", granted("kept"))
	s.giveBack(t, "gone1")
	if parked := s.runs(t, "kept"); len(parked) != 2 || parked[0].Identity == "" || parked[0].Node != "" {
		t.Errorf("of web/0 and web/1, the ledger keeps %+v", parked)
	}
	set.Spec.Replicas = new(int32(1))
	if err := s.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	left := s.leftEndpoint(t)
	s.handPool(t, "left", 16, 9)
	s.handLease(t, "gone2", wants("left", 2))
	s.awaitLease(t, "gone2", granted("left"))
	if err := s.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone2"}}); err != nil {
		t.Fatal(err)
	}
	gone := func(what string, is func() bool) {
		t.Helper()
		Eventually(t, func() string {
			if !is() {
				return what
			}
			return ""
		})
	}
	gone("the end of web/1, and not of web/0", func() bool {
		runs := s.runs(t, "kept")
		return len(runs) == 1 && runs[0].Identity == "StatefulSet/default/web/0"
	})
	gone("the end of default/before, and not of default/there", func() bool {
		runs := s.runs(t, "old")
		return len(runs) == 1 && runs[0].Addresses == "10.14.0.2" && runs[0].Quarantine.Pod == "default/there"
	})
	gone("the quarantine of what gone2 had", func() bool {
		runs := s.runs(t, "left")
		return len(runs) > 0 && !slices.ContainsFunc(runs, func(run v1alpha1.Run) bool { return run.Quarantine == nil })
	})
	gone("the end of the lease of gone2", func() bool {
		return apierrors.IsNotFound(s.Get(t.Context(), client.ObjectKey{Name: "gone2"}, &v1alpha1.AddressLease{}))
	})
	gone("the end of the endpoint", func() bool {
		return apierrors.IsNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(left), left))
	})
	s.awaitPool(t, "old", func(p *v2beta1.SpiderIPPool) string {
		if p.Status.AllocatedIPs == nil || *p.Status.AllocatedIPs != `{"10.14.0.2":{"pod":"default/there"}}` || *p.Status.AllocatedIPCount != 1 {
			return fmt.Sprintf("the one pod that is there; it says %+v", p.Status)
		}
		return ""
	})
}

// note has a pool say who has its addresses, as Spiderpool does.
func (s *Server) note(t *testing.T, pool, text string) {
	t.Helper()
	o := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: pool}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"allocatedIPs":%q}}`, text))
	if err := s.Status().Patch(t.Context(), o, patch); err != nil {
		t.Fatal(err)
	}
	s.awaitPool(t, pool, func(p *v2beta1.SpiderIPPool) string {
		if *p.Status.AllocatedIPCount == 0 {
			return "that they count"
		}
		return ""
	})
}

func (s *Server) idlePod(t *testing.T, name string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}
	if err := s.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) statefulSet(t *testing.T, name string, replicas int32) *appsv1.StatefulSet {
	t.Helper()
	labels := map[string]string{"app": name}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
			},
		},
	}
	if err := s.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return set
}

// leftEndpoint is one that Spiderpool left, and that somebody deleted.
func (s *Server) leftEndpoint(t *testing.T) *v2beta1.SpiderEndpoint {
	t.Helper()
	e := endpointOn("left", "gone1")
	e.Finalizers = []string{v2beta1.Finalizer}
	if err := s.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}
