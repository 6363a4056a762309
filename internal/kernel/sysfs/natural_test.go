package sysfs_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/sysfs"
)

func TestCompareNatural(t *testing.T) {
	t.Parallel()
	want := []string{
		"", "0", "00", "1", "10", "bnxt_re0", "eth0", "eth00", "eth0.5", "eth0.100", "eth1", "mlx5_", "mlx5_2", "mlx5_10",
		"mlx5_10a2", "mlx5_10a10", "mlx5_99999999999999999999998", "mlx5_99999999999999999999999", "rxe0", "\xff",
	}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, sysfs.CompareNatural)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// FuzzCompareNatural: an order of all names, in which only equal ones are
// equal.
func FuzzCompareNatural(f *testing.F) {
	f.Add("mlx5_2", "mlx5_10", "mlx5_02")
	f.Add("", "0", "a")
	f.Add("1a", "01b", "001a")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		ab, ba := sysfs.CompareNatural(a, b), sysfs.CompareNatural(b, a)
		if ab != -ba || (ab == 0) != (a == b) {
			t.Errorf("%q, %q: %d and %d the other way", a, b, ab, ba)
		}
		bc, ac := sysfs.CompareNatural(b, c), sysfs.CompareNatural(a, c)
		if ab <= 0 && bc <= 0 && ac > 0 {
			t.Errorf("%q ≤ %q ≤ %q but the first is after the last", a, b, c)
		}
	})
}
