package overview

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam"
)

// TestRunsAreWhole wants each address of each run to be shown once, and those
// that pods use by themselves, for any uses.
func TestRunsAreWhole(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		ledger := &v1alpha1.PoolLedger{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.PoolLedgerSpec{Pool: "a", Epoch: 1, Part: "10.0.0.0-10.0.0.255"}}
		held := map[netip.Addr]string{}
		for next := r.IntN(4); next < 250; {
			last := min(next+r.IntN(20), 255)
			node := fmt.Sprintf("n%d", r.IntN(3))
			ledger.Spec.Runs = append(ledger.Spec.Runs, v1alpha1.Run{Addresses: fmt.Sprintf("%s-%s", host(next), host(last)), Epoch: 1, Node: node})
			for h := next; h <= last; h++ {
				held[host(h)] = node
			}
			next = last + 1 + r.IntN(5)
		}
		o := &Objects{Ledgers: []*v1alpha1.PoolLedger{ledger}, Endpoints: []*v2beta1.SpiderEndpoint{}}
		used := map[netip.Addr]bool{}
		for h := range 256 {
			if addr := host(h); held[addr] != "" && r.IntN(3) == 0 {
				e := endpoint(fmt.Sprintf("p%d", h), "a", addr.String()+"/24")
				e.Status.Current.Node = held[addr]
				o.Endpoints = append(o.Endpoints, e)
				used[addr] = true
			}
		}
		books, errs := Addresses(o)
		if len(errs) > 0 || len(books.Conflicts) > 0 {
			t.Fatal(errs, books.Conflicts)
		}
		checkWhole(t, books.Runs, held, used)
	}
}

// host is an address of 10.0.0.0/24.
func host(h int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(h)}) }

func checkWhole(t *testing.T, runs []AddressRun, held map[netip.Addr]string, used map[netip.Addr]bool) {
	t.Helper()
	seen := map[netip.Addr]bool{}
	for _, run := range runs {
		addresses, err := ipam.ParseRange(run.Addresses)
		if err != nil || ipam.Size(addresses) != run.Count {
			t.Fatalf("%s, %d addresses: %v", run.Addresses, run.Count, err)
		}
		for addr := range each(addresses) {
			switch {
			case seen[addr]:
				t.Fatalf("%s is shown twice", addr)
			case held[addr] != run.Node || run.Node == "":
				t.Fatalf("%s is shown on node %q, and is of %q", addr, run.Node, held[addr])
			case used[addr] != (run.State == StateUsed) || used[addr] != (run.Pod == fmt.Sprintf("ai/p%d", addr.As4()[3])):
				t.Fatalf("%s is shown as %s of pod %q; used: %v", addr, run.State, run.Pod, used[addr])
			}
			seen[addr] = true
		}
	}
	if len(seen) != len(held) {
		t.Fatalf("%d addresses are shown, and %d held", len(seen), len(held))
	}
}

func each(r netipx.IPRange) func(func(netip.Addr) bool) {
	return func(yield func(netip.Addr) bool) {
		for a := r.From(); a.Compare(r.To()) <= 0 && yield(a); a = a.Next() {
		}
	}
}

func TestPersisting(t *testing.T) {
	t.Parallel()
	of := func(kind ConflictKind, pool, addresses string) Conflict {
		return Conflict{Kind: kind, Pool: pool, Addresses: addresses}
	}
	first := []Conflict{of(ConflictLease, "a", "10.0.0.1-10.0.0.9"), of(ConflictNode, "a", "10.0.0.20"), of(ConflictLease, "b", "")}
	second := []Conflict{
		of(ConflictLease, "a", "10.0.0.9-10.0.0.12"), of(ConflictLease, "a", "10.0.0.20"), of(ConflictNode, "b", "10.0.0.20"), of(ConflictLease, "b", ""),
	}
	if diff := cmp.Diff([]Conflict{second[0], second[3]}, Persisting(first, second)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNoFalseConflicts has what looks like a conflict and is none.
func TestNoFalseConflicts(t *testing.T) {
	t.Parallel()
	at := func(node string, e *v2beta1.SpiderEndpoint) *v2beta1.SpiderEndpoint {
		e.Status.Current.Node = node
		return e
	}
	run := func(addresses string, change func(*v1alpha1.Run)) v1alpha1.Run {
		r := v1alpha1.Run{Addresses: addresses, Epoch: 1}
		change(&r)
		return r
	}
	o := &Objects{
		Ledgers: []*v1alpha1.PoolLedger{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.PoolLedgerSpec{Pool: "a", Epoch: 1, Part: "10.0.0.0-10.0.0.255", Runs: []v1alpha1.Run{
			run("10.0.0.1", func(r *v1alpha1.Run) { r.Quarantine = &v1alpha1.Quarantine{Reason: "node is gone", Pod: "ai/p1"} }),
			run("10.0.0.2", func(r *v1alpha1.Run) { r.Node, r.Target, r.Identity = "n1", "n2", "VirtualMachine/ai/vm" }),
			run("10.0.0.3", func(r *v1alpha1.Run) { r.Identity = "StatefulSet/ai/web/0" }),
		}}}},
		Endpoints: []*v2beta1.SpiderEndpoint{
			at("n1", endpoint("p1", "a", "10.0.0.1/24")),     // its node is gone, and it is not yet
			at("n2", endpoint("vm", "a", "10.0.0.2/24")),     // has moved already
			at("", endpoint("web-0", "a", "10.0.0.3/24")),    // comes back
			at("n3", endpoint("old", "none", "10.9.0.1/24")), // of before there were ledgers
		},
	}
	if books, errs := Addresses(o); len(books.Conflicts) > 0 || len(errs) > 0 {
		t.Errorf("conflicts %+v, errors %v", books.Conflicts, errs)
	}
}

// TestOnePodTwice: two interfaces of one pod may not have one address either.
func TestOnePodTwice(t *testing.T) {
	t.Parallel()
	e := endpoint("p", "a", "10.0.0.1/24", "b", "10.0.0.1/16")
	e.Status.Current.Node, e.Status.Current.IPs[0].Interface, e.Status.Current.IPs[1].Interface = "n1", "net1", "net2"
	books, _ := Addresses(&Objects{Endpoints: []*v2beta1.SpiderEndpoint{e}})
	want := []Conflict{{
		Kind: ConflictPods, Pool: "b", Addresses: "10.0.0.1", Nodes: []string{"n1"},
		Message: "SpiderEndpoint ai/p has it for net1 on node n1, and SpiderEndpoint ai/p for net2 on node n1",
	}}
	if diff := cmp.Diff(want, books.Conflicts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLongRun wants each run to be found that a long one of another ledger holds,
// and not only the first.
func TestLongRun(t *testing.T) {
	t.Parallel()
	ledger := func(name string, runs ...string) *v1alpha1.PoolLedger {
		l := &v1alpha1.PoolLedger{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PoolLedgerSpec{Pool: name, Epoch: 1, Part: "10.0.0.0-10.0.0.255"}}
		for _, addresses := range runs {
			l.Spec.Runs = append(l.Spec.Runs, v1alpha1.Run{Addresses: addresses, Epoch: 1, Node: "n-" + name})
		}
		return l
	}
	books, errs := Addresses(&Objects{Ledgers: []*v1alpha1.PoolLedger{
		ledger("long", "10.0.0.0-10.0.0.99"), ledger("short", "10.0.0.5", "10.0.0.50", "10.0.0.90-10.0.0.120", "10.0.0.130"),
	}})
	var got []string
	for _, c := range books.Conflicts {
		if c.Kind == ConflictLedgers {
			got = append(got, c.Addresses)
		}
	}
	if diff := cmp.Diff([]string{"10.0.0.5", "10.0.0.50", "10.0.0.90-10.0.0.99"}, got); diff != "" || len(errs) > 0 {
		t.Errorf("errors %v; -want +got:\n%s", errs, diff)
	}
}

// BenchmarkAddresses shows 10,000 pods with an address of each of 8 pools.
func BenchmarkAddresses(b *testing.B) {
	o := &Objects{}
	for p := range 8 {
		for part := range 5 {
			l := &v1alpha1.PoolLedger{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d.%d", p, part)}, Spec: v1alpha1.PoolLedgerSpec{
				Pool: fmt.Sprintf("p%d", p), Epoch: 1, Part: fmt.Sprintf("10.%d.%d.0-10.%d.%d.255", p, part*8, p, part*8+7),
			}}
			for c := range 8 {
				l.Spec.Runs = append(l.Spec.Runs, v1alpha1.Run{Addresses: fmt.Sprintf("10.%d.%d.0-10.%d.%d.249", p, part*8+c, p, part*8+c), Epoch: 1, Node: fmt.Sprintf("n%d", c)})
			}
			o.Ledgers = append(o.Ledgers, l)
		}
	}
	for pod := range 10_000 {
		var list []string
		for p := range 8 {
			list = append(list, fmt.Sprintf("p%d", p), fmt.Sprintf("10.%d.%d.%d/16", p, pod/250, pod%250))
		}
		e := endpoint(fmt.Sprintf("p%d", pod), list...)
		e.Status.Current.Node = fmt.Sprintf("n%d", pod/250%8)
		o.Endpoints = append(o.Endpoints, e)
	}
	for b.Loop() {
		if books, errs := Addresses(o); len(errs) > 0 || len(books.Conflicts) > 0 {
			b.Fatal(errs, len(books.Conflicts))
		}
	}
}
