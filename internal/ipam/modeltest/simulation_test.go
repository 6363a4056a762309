package modeltest

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/api/railhead/v1alpha1"
)

func bare(seed uint64) *world {
	w := newWorld(seed, 1, planted{})
	w.calm = true
	return w
}

func TestDiskLosesWhatWasNotSynced(t *testing.T) {
	kept, torn, whole := 0, 0, 0
	for seed := range uint64(200) {
		d := newDisk(bare(seed))
		for _, err := range []error{d.Append("j", []byte("safe")), d.Sync("j"), d.Append("j", []byte("not safe"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		d.loseCache()
		data, err := d.Read("j")
		if err != nil || len(data) < 4 || string(data[:4]) != "safe" {
			t.Fatalf("seed %d: read %q, %v", seed, data, err)
		}
		switch string(data) {
		case "safe":
			kept++
		case "safenot safe":
			whole++
		default:
			torn++
		}
	}
	if kept == 0 || torn == 0 || whole == 0 {
		t.Errorf("unsynced bytes were lost %d times, torn %d times and kept %d times", kept, torn, whole)
	}
}

func TestDiskSaysWhatIsNotThere(t *testing.T) {
	d := newDisk(bare(1))
	_, err := d.Read("j")
	for _, err := range []error{err, d.Sync("j"), d.Truncate("j", 0)} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is not fs.ErrNotExist", err)
		}
	}
	d.full = true
	if err := d.Append("j", []byte("x")); err == nil {
		t.Error("a full disk takes more")
	}
}

func TestAPIServerComparesVersions(t *testing.T) {
	a := newAPIServer()
	l := &v1alpha1.AddressLease{}
	l.Name = "n"
	first, err := a.createLease(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.createLease(l); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	spec := first.DeepCopy()
	spec.Spec.Session = "s"
	spec.Status.ObservedGeneration = 7
	second, err := a.updateLease(spec)
	if err != nil || second.Generation != 2 || second.Status.ObservedGeneration != 0 || second.ResourceVersion == first.ResourceVersion {
		t.Errorf("updated to %+v, %v", second, err)
	}
	if _, err := a.updateLease(spec); !apierrors.IsConflict(err) {
		t.Errorf("an old version was written: %v", err)
	}
	same, err := a.updateLeaseStatus(second)
	if err != nil || same.ResourceVersion != second.ResourceVersion {
		t.Errorf("a write of nothing made version %s of %s, %v", same.ResourceVersion, second.ResourceVersion, err)
	}
	a.leases.remove("n")
	if _, err := a.updateLease(second); !apierrors.IsNotFound(err) {
		t.Errorf("written after its end: %v", err)
	}
}

func TestWatchLags(t *testing.T) {
	w := bare(1)
	v := newWatch(&w.api.leases, w.rng, 0)
	for _, n := range []string{"a", "b"} {
		l := &v1alpha1.AddressLease{}
		l.Name = n
		if _, err := w.api.createLease(l); err != nil {
			t.Fatal(err)
		}
	}
	w.api.leases.remove("a")
	var seen [][]string
	for range 4 {
		seen = append(seen, sorted(v.live))
		v.advance(1)
	}
	want := [][]string{nil, {"a"}, {"a", "b"}, {"b"}}
	if !slices.EqualFunc(seen, want, slices.Equal) {
		t.Errorf("a watch showed %v, not %v", seen, want)
	}
}

// TestSameSeedSameRun is what replaying rests on.
func TestSameSeedSameRun(t *testing.T) {
	for seed := range uint64(20) {
		a, b := again(seed, 0), again(seed, 0)
		for i := range a.trace {
			if i >= len(b.trace) || a.trace[i] != b.trace[i] {
				t.Fatalf("seed %d: event %d differs:\n%s\n%s", seed, i, a.trace[i], b.trace[min(i, len(b.trace)-1)])
			}
		}
	}
}
