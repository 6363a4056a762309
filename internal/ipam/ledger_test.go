package ipam

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/railhead/v1alpha1"
)

func newTestLedger() *Ledger {
	subnet := netip.MustParsePrefix("10.0.0.0/24")
	return NewLedger("p", Pool{Name: "p", UID: "u"}, PartOf(subnet, subnet.Addr()))
}

// A ledger agrees with a map of addresses after any sequence of changes.
func FuzzLedger(f *testing.F) {
	f.Add([]byte{0, 3, 9, 1, 5, 2, 2, 4, 4, 3, 0, 255})
	f.Fuzz(func(t *testing.T, steps []byte) {
		ledger, model := newTestLedger(), map[byte]string{}
		for ; len(steps) >= 3; steps = steps[3:] {
			first, last := min(steps[1], steps[2]), max(steps[1], steps[2])
			apply(t, ledger, model, steps[0], first, last)
		}
		if err := ledger.Validate(); err != nil {
			t.Fatal(err)
		}
		again, err := LedgerOf(ledger.Object())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ledger.Object(), again.Object()); diff != "" {
			t.Error(diff)
		}
		for i := range 256 {
			run, held := again.At(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
			if got := run.Node + run.Identity; got != model[byte(i)] || held != (got != "") {
				t.Fatalf("10.0.0.%d is held by %q, want %q", i, got, model[byte(i)])
			}
		}
	})
}

func apply(t *testing.T, ledger *Ledger, model map[byte]string, step, first, last byte) {
	t.Helper()
	set := SetOf([]netipx.IPRange{netipx.IPRangeFrom(netip.AddrFrom4([4]byte{10, 0, 0, first}), netip.AddrFrom4([4]byte{10, 0, 0, last}))})
	holder := []Holder{{Node: "a"}, {Node: "b", Identity: "i"}, {Node: "c"}}[step%3]
	clash := false
	for i := int(first); i <= int(last); i++ {
		clash = clash || model[byte(i)] != ""
	}
	switch step / 3 % 3 {
	case 0:
		if err := ledger.Give(set, holder, ledger.Epoch+int64(step%2)); errors.Is(err, ErrHeld) != clash || (err != nil) != clash {
			t.Fatalf("give %v: %v, clash %v", FormatRanges(set), err, clash)
		}
	case 1:
		ledger.Take(set)
	case 2:
		ledger.Park(set)
	}
	for i := int(first); i <= int(last); i++ {
		switch held := model[byte(i)]; {
		case step/3%3 == 0 && !clash:
			model[byte(i)] = holder.Node + holder.Identity
		case step/3%3 == 1, step/3%3 == 2 && !strings.HasSuffix(held, "i"):
			delete(model, byte(i))
		case step/3%3 == 2:
			model[byte(i)] = "i"
		}
	}
}

func TestLedgerOfBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*v1alpha1.PoolLedgerSpec)
		want   string
	}{
		"part":     {func(s *v1alpha1.PoolLedgerSpec) { s.Part = "x" }, `ledger p: spec.part: "x": "x" is no address: want one such as "10.0.0.9" or "fd00::9"`},
		"order":    {func(s *v1alpha1.PoolLedgerSpec) { s.Runs[0], s.Runs[1] = s.Runs[1], s.Runs[0] }, "ledger p: run 10.0.0.1 is not behind 10.0.0.5: want runs in order that do not overlap"},
		"outside":  {func(s *v1alpha1.PoolLedgerSpec) { s.Runs[1].Addresses = "10.0.1.5" }, "ledger p: run 10.0.1.5 is not within the part 10.0.0.0-10.0.0.255"},
		"future":   {func(s *v1alpha1.PoolLedgerSpec) { s.Runs[1].Epoch = 9 }, "ledger p: run 10.0.0.5 has epoch 9, and the ledger 2: want none from later writes"},
		"holder":   {func(s *v1alpha1.PoolLedgerSpec) { s.Runs[1].Node = "" }, "ledger p: spec.runs[1]: has no holder: want a node, an identity or a quarantine"},
		"two":      {func(s *v1alpha1.PoolLedgerSpec) { s.Runs[1].Quarantine = &v1alpha1.Quarantine{} }, `ledger p: spec.runs[1]: is in quarantine and held by node "b", target "", identity "": want one of the two`},
		"unparsed": {func(s *v1alpha1.PoolLedgerSpec) { s.Runs[1].Addresses = "10.0.0.9-10.0.0.5" }, `ledger p: spec.runs[1]: "10.0.0.9-10.0.0.5": want "first-last" of one family and in order`},
	} {
		o := &v1alpha1.PoolLedger{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PoolLedgerSpec{
			Pool: "p", Part: "10.0.0.0-10.0.0.255", Epoch: 2,
			Runs: []v1alpha1.Run{{Addresses: "10.0.0.1", Epoch: 1, Node: "a"}, {Addresses: "10.0.0.5", Epoch: 2, Node: "b"}},
		}}
		c.change(&o.Spec)
		if _, err := LedgerOf(o); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Taking costs the same in a pool of any size.
func BenchmarkTake(b *testing.B) {
	for _, subnet := range []string{"10.0.0.0/30", "10.0.0.0/24", "10.0.0.0/8", "fd00::/64"} {
		free := []netipx.IPRange{netipx.RangeOfPrefix(netip.MustParsePrefix(subnet))}
		b.Run(subnet, func(b *testing.B) {
			for b.Loop() {
				if CountList(StockOf(free).Take(2, nil)) != 2 {
					b.Fatal("there are not 2")
				}
			}
		})
	}
}
