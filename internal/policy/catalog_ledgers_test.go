package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// ledgerWith is one of the ledgers of pool a.
func ledgerWith(name, part string, runs ...v1alpha1.Run) *v1alpha1.PoolLedger {
	return &v1alpha1.PoolLedger{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.PoolLedgerSpec{Pool: "a", Part: part, Runs: runs},
	}
}

// quarantined is a run that a pod had.
func quarantined(addresses, pod string) v1alpha1.Run {
	return v1alpha1.Run{Addresses: addresses, Quarantine: &v1alpha1.Quarantine{Reason: "in use before Railhead", Pod: pod}}
}

// noting is a pool of 10.0.0.1-.9 that says who has its addresses.
func noting(text string) *v2beta1.SpiderIPPool {
	return poolWith("a", "10.0.0.0/24", []string{"10.0.0.1-10.0.0.9"}, func(p *v2beta1.SpiderIPPool) {
		if text != "" {
			p.Status.AllocatedIPs = &text
		}
	})
}

// TestLedgersTakeOver wants what a pool's status names to count where no ledger
// is about it, and nowhere else: there the status is made of what counts.
func TestLedgersTakeOver(t *testing.T) {
	t.Parallel()
	c := catalogOf(noting(`{"10.0.0.1":{"pod":"ns/one"},"10.0.0.6":{"pod":"ns/six"}}`), endpointWith("two", "a", "10.0.0.2/24"))
	expect := func(when string, taken, held, kept string) {
		t.Helper()
		for what, got := range map[string]*netipx.IPSet{"taken " + taken: c.Taken("a"), "held " + held: c.Held("a"), "kept " + kept: c.Kept("a")} {
			word, _, _ := strings.Cut(what, " ")
			if said := word + " " + fmt.Sprint(FormatRanges(got)); said != what {
				t.Errorf("%s: %s, want %s", when, said, what)
			}
		}
		if got := c.Usage("a"); got != Count(c.Taken("a")) {
			t.Errorf("%s: usage %d", when, got)
		}
	}
	expect("without ledger", "[10.0.0.1-10.0.0.2 10.0.0.6]", "[]", "[]")
	first := ledgerWith("a", "10.0.0.0-10.0.0.3", quarantined("10.0.0.1", "ns/one"), v1alpha1.Run{Addresses: "10.0.0.2-10.0.0.3", Node: "node1"})
	c.Put(first)
	expect("with the first", "[10.0.0.1-10.0.0.2 10.0.0.6]", "[10.0.0.1-10.0.0.3]", "[10.0.0.2-10.0.0.3]")
	c.Put(ledgerWith("a", "10.0.0.0-10.0.0.3", v1alpha1.Run{Addresses: "10.0.0.3", Identity: "StatefulSet/ns/web/0"}))
	expect("one is gone", "[10.0.0.2 10.0.0.6]", "[10.0.0.3]", "[10.0.0.3]")
	c.Put(ledgerWith("a.part-1", "10.0.0.4-10.0.0.7"))
	expect("with both", "[10.0.0.2]", "[10.0.0.3]", "[10.0.0.3]")
	if diff := cmp.Diff("[10.0.0.2-10.0.0.3]", fmt.Sprint(FormatRanges(c.Used("a")))); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
	c.Remove(first)
	expect("without the first", "[10.0.0.1-10.0.0.2]", "[]", "[]")
	c.Put(ledgerWith("x", "nonsense", v1alpha1.Run{Addresses: "nonsense"}, quarantined("nonsense", "ns/x")))
	expect("with nonsense", "[10.0.0.1-10.0.0.2]", "[]", "[]")
	if one, two, none := c.TakenBy("a", netip.MustParseAddr("10.0.0.1")), c.TakenBy("a", netip.MustParseAddr("10.0.0.2")), c.TakenBy("a", netip.MustParseAddr("10.0.0.3")); one != "ns/one" || two != "ns/two" || none != "" {
		t.Errorf("they are taken by %q, %q and %q", one, two, none)
	}
}

// TestAllocations wants the status of a pool to name who has its addresses by
// endpoints and ledgers, and to keep by itself only what no ledger is about.
func TestAllocations(t *testing.T) {
	t.Parallel()
	whole := ledgerWith("a", "10.0.0.0-10.0.0.255")
	const two = `{"10.0.0.2":{"pod":"ns/two"}}`
	for _, tt := range []struct {
		name    string
		noted   string
		objects []metav1.Object
		total   int64
		want    string // empty: none
	}{
		{name: "nothing"},
		{name: "no ledger", noted: `{ "10.0.0.1": {"pod": "ns/one"} }`, want: `{ "10.0.0.1": {"pod": "ns/one"} }`},
		{name: "no ledger, and an endpoint", objects: []metav1.Object{endpointWith("two", "a", "10.0.0.2/24")}},
		{name: "an endpoint", objects: []metav1.Object{whole, endpointWith("two", "a", "10.0.0.2/24")}, want: two},
		{name: "an endpoint that was noted", noted: two, objects: []metav1.Object{whole, endpointWith("two", "a", "10.0.0.2/24")}, want: two},
		{name: "an endpoint that is gone", noted: two, objects: []metav1.Object{whole}},
		{name: "a quarantine", objects: []metav1.Object{ledgerWith("a", "10.0.0.0-10.0.0.255", quarantined("10.0.0.2", "ns/two"), quarantined("10.0.0.3", ""))}, want: two},
		{
			name: "an endpoint beside a quarantine", want: two,
			objects: []metav1.Object{ledgerWith("a", "10.0.0.0-10.0.0.255", quarantined("10.0.0.2", "ns/before")), endpointWith("two", "a", "10.0.0.2/24")},
		},
		{
			name: "a part", noted: `{"10.0.0.1":{"pod":"ns/gone"},"10.0.0.9":{"pod":"ns/nine","podUid":"u"}}`,
			objects: []metav1.Object{ledgerWith("a", "10.0.0.0-10.0.0.7"), endpointWith("two", "a", "10.0.0.2/24")},
			want:    `{"10.0.0.2":{"pod":"ns/two"},"10.0.0.9":{"pod":"ns/nine","podUid":"u"}}`,
		},
		{name: "a thousand", total: maxNoted, objects: []metav1.Object{whole, endpointWith("two", "a", "10.0.0.2/24")}, want: two},
		{
			name: "more", total: maxNoted + 1, noted: `{"10.0.0.2":{"pod":"ns/two"},"10.0.1.1":{"pod":"ns/x"}}`,
			objects: []metav1.Object{whole, endpointWith("two", "a", "10.0.0.2/24")}, want: `{"10.0.1.1":{"pod":"ns/x"}}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pool := noting(tt.noted)
			text, err := catalogOf(append(tt.objects, pool)...).Allocations(pool, tt.total)
			got := ""
			if text != nil {
				got = *text
			}
			if err != nil || got != tt.want {
				t.Errorf("%q, error %v, want %q", got, err, tt.want)
			}
		})
	}
	if _, err := NewCatalog().Allocations(noting("x"), 0); err == nil {
		t.Error("no error for what cannot be read")
	}
}

// TestTakenFollows holds the set of taken addresses, which is made of changes,
// against one that is made anew.
func TestTakenFollows(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	c, there := NewCatalog(), map[int]netip.Addr{}
	for step := range 2000 {
		pod := random.IntN(60)
		if addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(40))}); random.IntN(3) > 0 {
			c.Put(endpointWith(fmt.Sprint(pod), "a", addr.String()+"/24"))
			there[pod] = addr
		} else {
			c.Remove(endpointWith(fmt.Sprint(pod), "", ""))
			delete(there, pod)
		}
		if random.IntN(4) > 0 {
			continue
		}
		var build netipx.IPSetBuilder
		for _, addr := range there {
			build.Add(addr)
		}
		if want := built(&build); !want.Equal(c.Taken("a")) || Count(want) != c.Usage("a") {
			t.Fatalf("step %d: %v, want %v", step, FormatRanges(c.Taken("a")), FormatRanges(want))
		}
	}
}

// TestPoolLosesReserve accepts a change that takes addresses which nodes hold for
// no pod, and says that they are recalled.
func TestPoolLosesReserve(t *testing.T) {
	t.Parallel()
	stored := noting("")
	ledger := ledgerWith("a", "10.0.0.0-10.0.0.255",
		v1alpha1.Run{Addresses: "10.0.0.1-10.0.0.6", Node: "node1"}, quarantined("10.0.0.9", "ns/nine"))
	for _, tt := range []struct {
		name, ips string
		want      said
	}{
		{"free ones", "10.0.0.1-10.0.0.6", said{Errors: []string{
			`spec.ips: Forbidden: 10.0.0.9 is in use by pod ns/nine: delete the pod, or its SpiderEndpoint ns/nine if the pod is gone, or keep the address`,
		}}},
		{"those in reserve", "10.0.0.1-10.0.0.3,10.0.0.9", said{Warnings: []string{
			`spec.ips: takes 3 addresses back that nodes have in reserve or that pods keep over their lives, as they become free: 10.0.0.4-10.0.0.6`,
		}}},
		{"one of a pod", "10.0.0.2-10.0.0.9", said{Errors: []string{
			`spec.ips: Forbidden: 10.0.0.1 is in use by pod ns/one: delete the pod, or its SpiderEndpoint ns/one if the pod is gone, or keep the address`,
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changed := stored.DeepCopy()
			changed.Spec.IPs = strings.Split(tt.ips, ",")
			got := catalogOf(stored, ledger, endpointWith("one", "a", "10.0.0.1/24")).Review(changed, stored)
			if diff := cmp.Diff(tt.want, saidBy(got)); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

// BenchmarkTaken is one pod more or less in a pool of which ten thousand have addresses.
func BenchmarkTaken(b *testing.B) {
	c := NewCatalog()
	for i := range 10_000 {
		c.Put(endpointWith(fmt.Sprint(i), "a", fmt.Sprintf("10.0.%d.%d/16", i/250, i%250)))
	}
	more := endpointWith("more", "a", "10.1.0.0/16")
	b.ReportAllocs()
	for b.Loop() {
		c.Put(more)
		c.Taken("a")
		c.Remove(more)
		c.Taken("a")
	}
}
