package ipam

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation"
)

// bits256 is a set of addresses of one /24, as bytes of a fuzz input give it.
func bits256(data []byte) (bits [256]bool) {
	for i, b := range data {
		if i == 256 {
			break
		}
		bits[i] = b&1 == 1
	}
	return bits
}

func listOf(bits [256]bool) []netipx.IPRange {
	var list []netipx.IPRange
	for i, in := range bits {
		if addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}); in {
			list = append(list, netipx.IPRangeFrom(addr, addr))
		}
	}
	return Merged(list)
}

func randomBits(r *rand.Rand) (bits [256]bool) {
	for i := range bits {
		bits[i] = i > 0 && bits[i-1] == (r.IntN(5) > 0)
	}
	return bits
}

func TestListsAgreeWithBits(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		a, b := randomBits(r), randomBits(r)
		var common, without [256]bool
		overlap := false
		for i := range a {
			common[i], without[i] = a[i] && b[i], a[i] && !b[i]
			overlap = overlap || common[i]
		}
		la, lb := listOf(a), listOf(b)
		if got, want := FormatList(Common(la, lb)), FormatList(listOf(common)); !slices.Equal(got, want) {
			t.Fatalf("common of %v and %v: %v, want %v", FormatList(la), FormatList(lb), got, want)
		}
		if got, want := FormatList(Without(la, lb)), FormatList(listOf(without)); !slices.Equal(got, want) {
			t.Fatalf("%v without %v: %v, want %v", FormatList(la), FormatList(lb), got, want)
		}
		if Overlap(la, lb) != overlap {
			t.Fatalf("overlap of %v and %v: want %v", FormatList(la), FormatList(lb), overlap)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"10.0.0.1":                         1,
		"0.0.0.0-255.255.255.255":          1 << 32,
		"fd00::-fd00::ffff:ffff:ffff":      1 << 48,
		"fd00::-fd00::ffff:ffff:ffff:ffff": math.MaxInt64,
		"fd00::-fdff::":                    math.MaxInt64,
	} {
		r, err := ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Size(r); got != want {
			t.Errorf("%s has %d addresses, want %d", text, got, want)
		}
	}
}

func TestPartsAndNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ subnet, addr, part, name string }{
		{"10.1.0.0/30", "10.1.0.2", "10.1.0.0-10.1.0.3", "p"},
		{"10.0.0.0/8", "10.0.9.1", "10.0.8.0-10.0.15.255", "p.part-1"},
		{"10.0.0.0/8", "10.255.255.255", "10.255.248.0-10.255.255.255", "p.part-1fff"},
		{"fd00::/64", "fd00::ffff:ffff:ffff:ffff", "fd00::ffff:ffff:ffff:f800-fd00::ffff:ffff:ffff:ffff", "p.part-1fffffffffffff"},
		{"fd00::/32", "fd00:0:1::", "fd00:0:1::-fd00:0:1::7ff", "p.part-200000000000000000"},
		{"255.255.255.0/24", "255.255.255.255", "255.255.255.0-255.255.255.255", "p"},
	} {
		subnet, addr := netip.MustParsePrefix(c.subnet), netip.MustParseAddr(c.addr)
		part := PartOf(subnet, addr)
		if got := FormatRange(part); got != c.part {
			t.Errorf("part of %s in %s is %s, want %s", addr, subnet, got, c.part)
		}
		if got := LedgerName("p", subnet, part); got != c.name {
			t.Errorf("name of %s is %s, want %s", c.part, got, c.name)
		}
	}
	subnet := netip.MustParsePrefix("10.0.0.0/8")
	long := string(slices.Repeat([]byte("a."), 126)) + "a"
	one := LedgerName(long, subnet, PartOf(subnet, netip.MustParseAddr("10.1.0.0")))
	two := LedgerName(long, subnet, PartOf(subnet, netip.MustParseAddr("10.2.0.0")))
	if one == two || len(validation.IsDNS1123Subdomain(one)) > 0 {
		t.Errorf("long names %q and %q: want two subdomains", one, two)
	}
}

func FuzzParseRange(f *testing.F) {
	for _, text := range []string{"10.0.0.1", "10.0.0.1-10.0.0.9", "fd00::1-fd00::9", "::ffff:1.2.3.4", "fe80::1%eth0", "10.0.0.9-10.0.0.1", "-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRange(text)
		if err != nil {
			return
		}
		if again, err := ParseRange(FormatRange(r)); err != nil || again != r || Size(r) < 1 {
			t.Errorf("%q is %v, and that again %v: %v", text, r, again, err)
		}
	})
}

// Stock gives the lowest that are not excepted, and keeps the others.
func FuzzStock(f *testing.F) {
	f.Add([]byte{1, 1, 0, 1, 1}, []byte{0, 1, 1, 1}, uint8(2))
	f.Fuzz(func(t *testing.T, free, except []byte, n uint8) {
		have, not := bits256(free), bits256(except)
		given, left := [256]bool{}, have
		for i, rest := 0, int(n); i < 256 && rest > 0; i++ {
			if have[i] && !not[i] {
				given[i], left[i] = true, false
				rest--
			}
		}
		stock := StockOf(listOf(have))
		taken := Merged(stock.Take(int64(n), listOf(not)))
		if diff := cmp.Diff(FormatList(listOf(given)), FormatList(taken)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(FormatList(listOf(left)), FormatList(Merged(slices.Clone(stock.Ranges())))); diff != "" {
			t.Error(diff)
		}
		if stock.Count() != CountList(listOf(left)) {
			t.Errorf("%d are left, want %d", stock.Count(), CountList(listOf(left)))
		}
	})
}
