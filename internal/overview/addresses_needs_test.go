package overview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// booksObjects are of pool a, of which n1 holds 10.0.0.1 to .8 and an identity
// there .9. Pod ai/p on n1 has .1.
func booksObjects() *Objects {
	return &Objects{
		Pools: []*v2beta1.SpiderIPPool{poolObject("a", "10.0.0.0/24", "10.0.0.1-10.0.0.200")},
		Ledgers: []*v1alpha1.PoolLedger{ledgerObject("a", "10.0.0.0-10.0.0.255",
			v1alpha1.Run{Addresses: "10.0.0.1-10.0.0.8", Epoch: 2, Node: "n1"},
			v1alpha1.Run{Addresses: "10.0.0.9", Epoch: 3, Node: "n1", Identity: "StatefulSet/ai/web/0"})},
		Leases: []*v1alpha1.AddressLease{{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Generation: 4},
			Status: v1alpha1.AddressLeaseStatus{ObservedGeneration: 4, Pools: []v1alpha1.LeasedPool{{Pool: "a", Grants: []v1alpha1.Grant{
				{Epoch: 2, Addresses: []string{"10.0.0.1-10.0.0.8"}}, {Epoch: 3, Addresses: []string{"10.0.0.9"}, Identity: "StatefulSet/ai/web/0"},
			}}}},
		}},
		Endpoints: []*v2beta1.SpiderEndpoint{endpointOn("n1", "p", "a", "10.0.0.1/24")},
	}
}

func endpointOn(node, pod string, addresses ...string) *v2beta1.SpiderEndpoint {
	e := endpoint(pod, addresses...)
	e.Status.Current.Node = node
	for i := range e.Status.Current.IPs {
		e.Status.Current.IPs[i].Interface = fmt.Sprintf("net%d", i+1)
	}
	return e
}

// TestNeeds has what n1 needs, and what is said of it.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*v1alpha1.AddressLease)
		want   string // wants, recalled, short, why
	}{
		"nothing is said": {func(*v1alpha1.AddressLease) {}, "0 0 0 "},
		"no lease of it":  {func(l *v1alpha1.AddressLease) { l.Name = "n0" }, "- - - "},
		"enough":          {func(l *v1alpha1.AddressLease) { l.Spec.Wants = []v1alpha1.Want{{Pool: "a", Addresses: 8}} }, "8 0 0 "},
		"short": {func(l *v1alpha1.AddressLease) {
			l.Spec.Wants = []v1alpha1.Want{{Pool: "a", Addresses: 11}}
			l.Status.Pools[0].Short = "all is held"
		}, "11 0 3 all is held"},
		"a pin that it has": {func(l *v1alpha1.AddressLease) {
			l.Spec.Pins = []v1alpha1.Pin{{Identity: "StatefulSet/ai/web/0", Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
		}, "1 0 0 "},
		"a pin that it has not": {func(l *v1alpha1.AddressLease) {
			l.Spec.Wants = []v1alpha1.Want{{Pool: "a", Addresses: 2}}
			l.Spec.Pins = []v1alpha1.Pin{{Identity: "StatefulSet/ai/web/1", Wants: []v1alpha1.Want{{Pool: "a", Addresses: 2}}}}
		}, "4 0 2 "},
		"exact ones": {func(l *v1alpha1.AddressLease) {
			l.Spec.Exact = []v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.0.0.7-10.0.0.11"}}}
		}, "2 0 2 "},
		"recalled": {func(l *v1alpha1.AddressLease) {
			l.Status.Pools[0].Recall, l.Status.Pools[0].Revoke = 2, []string{"10.0.0.4-10.0.0.6"}
		}, "0 5 0 "},
		"fenced": {func(l *v1alpha1.AddressLease) {
			l.Spec.Wants = []v1alpha1.Want{{Pool: "a", Addresses: 9}}
			l.Status.Reason = "node is fenced"
		}, "9 0 1 see leases"},
		"not answered": {func(l *v1alpha1.AddressLease) {
			l.Spec.Wants, l.Generation = []v1alpha1.Want{{Pool: "a", Addresses: 9}}, 5
		}, "9 0 1 not answered yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := booksObjects()
			tt.change(o.Leases[0])
			books, errs := Addresses(o)
			if len(errs) > 0 || len(books.Nodes) != 1 || len(books.Conflicts) > 0 && o.Leases[0].Name == "n1" {
				t.Fatalf("%+v, %v", books, errs)
			}
			n := &books.Nodes[0]
			if got := strings.Join([]string{number(n.Wants), number(n.Recalled), number(n.Short), n.Why}, " "); got != tt.want {
				t.Errorf("wants, recalled, short, why: %q, want %q", got, tt.want)
			}
		})
	}
}

// TestNeedsOfNobody: a node may want of a pool of which it holds nothing.
func TestNeedsOfNobody(t *testing.T) {
	t.Parallel()
	o := booksObjects()
	o.Leases = append(o.Leases, &v1alpha1.AddressLease{
		ObjectMeta: metav1.ObjectMeta{Name: "n2", Generation: 1}, Spec: v1alpha1.AddressLeaseSpec{Wants: []v1alpha1.Want{{Pool: "a", Addresses: 3}}},
		Status: v1alpha1.AddressLeaseStatus{ObservedGeneration: 1, Reason: "node is fenced"},
	})
	books, _ := Addresses(o)
	want := NodeAddresses{
		Pool: "a", Node: "n2", Held: new(int64(0)), Used: new(int64(0)), Reserve: new(int64(0)), Pinned: new(int64(0)), Quarantined: new(int64(0)),
		Wants: new(int64(3)), Recalled: new(int64(0)), Short: new(int64(3)), Why: "see leases",
	}
	if diff := cmp.Diff(want, books.Nodes[1]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHeldOnce: an address that contradictions name twice is one address.
func TestHeldOnce(t *testing.T) {
	t.Parallel()
	o := booksObjects()
	o.Endpoints = append(o.Endpoints, endpointOn("n1", "q", "a", "10.0.0.1/24"), endpointOn("n2", "r", "a", "10.0.0.9/24"))
	o.Ledgers = append(o.Ledgers, ledgerObject("a", "10.0.0.0-10.0.0.255", v1alpha1.Run{Addresses: "10.0.0.6-10.0.0.10", Epoch: 2, Node: "n1"}))
	books, errs := Addresses(o)
	if len(errs) > 0 || len(books.Conflicts) == 0 {
		t.Errorf("errors %v, conflicts %v", errs, books.Conflicts)
	}
	n := &books.Nodes[0]
	if got := strings.Join([]string{n.Node, number(n.Held), number(n.Used), number(n.Reserve), number(n.Pinned)}, " "); got != "n1 10 2 8 1" {
		t.Errorf("held, used, reserve and pinned of %s, want n1 10 2 8 1", got)
	}
}

// TestFreeAddressOfPod: what a pod has and no ledger is about is a conflict, if
// it is of a pool.
func TestFreeAddressOfPod(t *testing.T) {
	t.Parallel()
	const says = "SpiderEndpoint ai/x has it for net1 on node n1, and "
	const nobody = says + "no PoolLedger of the pool is about it: it is held by no node"
	for name, tt := range map[string]struct {
		address string
		change  func(*Objects)
		want    string
	}{
		"in a part that no ledger is about": {"10.0.0.150", func(o *Objects) { o.Ledgers[0].Spec.Part = "10.0.0.0-10.0.0.127" }, nobody},
		"of before Railhead, which a ledger will take over": {"10.0.0.150", func(o *Objects) {
			o.Ledgers[0].Spec.Part, o.Endpoints[1].Annotations = "10.0.0.0-10.0.0.127", nil
		}, ""},
		"without any ledger":   {"10.0.0.150", func(o *Objects) { o.Ledgers, o.Leases = []*v1alpha1.PoolLedger{}, nil; o.Endpoints = o.Endpoints[1:] }, nobody},
		"that its ledger has":  {"10.0.0.150", func(*Objects) {}, says + "by PoolLedger a (epoch 9) it is free"},
		"of no pool":           {"10.0.0.250", func(o *Objects) { o.Ledgers[0].Spec.Part = "10.0.0.0-10.0.0.127" }, ""},
		"pools unread":         {"10.0.0.150", func(o *Objects) { o.Ledgers[0].Spec.Part, o.Pools = "10.0.0.0-10.0.0.127", nil }, ""},
		"of a ledger left out": {"10.0.0.150", func(o *Objects) { o.Ledgers[0].Spec.Part, o.LedgersLeftOut = "10.0.0.0-10.0.0.127", true }, ""},
		"maybe of a broken ledger": {"10.0.0.150", func(o *Objects) {
			o.Ledgers[0].Spec.Part = "10.0.0.0-10.0.0.127"
			o.Ledgers = append(o.Ledgers, ledgerObject("a", "nonsense"))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := booksObjects()
			x := endpointOn("n1", "x", "a", tt.address+"/24")
			x.Annotations = map[string]string{v1alpha1.AnnotationSandbox: "s"}
			o.Endpoints = append(o.Endpoints, x)
			tt.change(o)
			books, _ := Addresses(o)
			var got []string
			for _, c := range books.Conflicts {
				got = append(got, c.Message)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBrokenLedgerIsNotZero: of a pool with a ledger that cannot be understood no
// number is given that needs it, nor is a lease said to contradict it.
func TestBrokenLedgerIsNotZero(t *testing.T) {
	t.Parallel()
	o := booksObjects()
	o.Ledgers[0].Spec.Runs[1].Addresses = "10.0.0.9-10.0.0.1"
	o.Leases[0].Spec.Wants = []v1alpha1.Want{{Pool: "a", Addresses: 9}}
	books, errs := Addresses(o)
	if len(errs) != 1 || !strings.HasSuffix(errs[0].Error(), "; who has which addresses of pool a is not known") {
		t.Errorf("errors %v", errs)
	}
	want := []NodeAddresses{{Pool: "a", Node: "n1", Used: new(int64(1)), Wants: new(int64(9)), Recalled: new(int64(0))}}
	if diff := cmp.Diff(want, books.Nodes); diff != "" || len(books.Conflicts) > 0 {
		t.Errorf("conflicts %+v; -want +got:\n%s", books.Conflicts, diff)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	o := booksObjects()
	lease := func(name string, generation, answered int64, reason string) *v1alpha1.AddressLease {
		return &v1alpha1.AddressLease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation},
			Status:     v1alpha1.AddressLeaseStatus{ObservedGeneration: answered, Reason: reason},
		}
	}
	o.Leases = append(o.Leases, lease("n4", 5, 4, "node is fenced"), lease("n3", 5, 5, "no effect"), lease("n2", 5, 4, ""))
	books, _ := Addresses(o)
	want := []LeaseNotice{{Node: "n2", Generation: 5, Answered: 4}, {Node: "n3", Reason: "no effect"}, {Node: "n4", Reason: "node is fenced"}}
	if diff := cmp.Diff(want, books.Leases); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestStillUnanswered: a spec that was written between two looks has not waited.
func TestStillUnanswered(t *testing.T) {
	t.Parallel()
	first := []LeaseNotice{{Node: "slow", Generation: 5, Answered: 4}, {Node: "busy", Generation: 5, Answered: 4}, {Node: "both", Generation: 5, Answered: 4}}
	second := []LeaseNotice{
		{Node: "slow", Generation: 6, Answered: 4},
		{Node: "busy", Generation: 6, Answered: 5},
		{Node: "new", Generation: 1},
		{Node: "both", Generation: 6, Answered: 5, Reason: "no effect"},
	}
	want := []LeaseNotice{second[0], {Node: "both", Reason: "no effect"}}
	if diff := cmp.Diff(want, StillUnanswered(first, second)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestIdentities: what is to be an identity and is none is named where it is.
func TestIdentities(t *testing.T) {
	t.Parallel()
	const want = `: "Nonsense" is no identity: want "StatefulSet/namespace/name/ordinal" or "VirtualMachine/namespace/name"`
	o := booksObjects()
	o.Ledgers[0].Spec.Runs[1].Identity = "Nonsense"
	o.Leases[0].Spec.Pins = []v1alpha1.Pin{{Identity: "VirtualMachine/ai/vm"}, {Identity: "Nonsense"}}
	o.Leases[0].Status.Pools[0].Grants[1].Identity = "Nonsense"
	o.Endpoints[0].Annotations = map[string]string{v1alpha1.AnnotationIdentity: "Nonsense"}
	_, errs := Addresses(o)
	var got []string
	for _, err := range errs {
		got = append(got, strings.TrimSuffix(err.Error(), want))
	}
	places := []string{
		"PoolLedger a: spec.runs[1].identity", "AddressLease n1: spec.pins[1].identity", "AddressLease n1: status.pools[0].grants[1].identity",
		"SpiderEndpoint ai/p: metadata.annotations[railhead.io/identity]",
	}
	if diff := cmp.Diff(places, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
