package record

import (
	"errors"
	"slices"
	"testing"

	"railhead/internal/ipam/journal"
)

// TestTornAtEveryByte stops the machine after each byte of the file.
func TestTornAtEveryByte(t *testing.T) {
	t.Parallel()
	d := newDisk()
	s := open(t, d)
	ends, want := []int{0}, [][]string{{}}
	note := func() { ends, want = append(ends, d.size()), append(want, ids(s.All())) }
	for n := 1; n <= 3; n++ {
		keep(t, s, small(n))
		note()
	}
	done(t)(s.Remove("sandbox001"))
	note()
	for size := range d.size() + 1 {
		n := 0
		for n+1 < len(ends) && ends[n+1] <= size {
			n++
		}
		torn := holding(d.data[File][:size])
		all, damage := readAgain(t, torn)
		if diff := differ(want[n], ids(all)); diff != "" || (damage == journal.DamageTail) != (size != ends[n]) {
			t.Fatalf("%d bytes, read: %v %s", size, damage, diff)
		}
		again := open(t, torn)
		if diff := differ(want[n], ids(again.All())); diff != "" || again.Damage() != damage {
			t.Fatalf("%d bytes: %v %s", size, again.Damage(), diff)
		}
		keep(t, again, numbered(5))
		if got := ids(open(t, torn.crash(0)).All()); !slices.Equal(got, append(want[n], "sandbox005")) {
			t.Fatalf("%d bytes, and one more: %v", size, got)
		}
	}
}

// small is the n-th attachment, which has not come far.
func small(n int) Attachment {
	a := numbered(n)
	return Attachment{ContainerID: a.ContainerID, At: a.At, State: Attaching}
}

// TestDamage spoils a byte of each line in turn: the others are there.
func TestDamage(t *testing.T) {
	t.Parallel()
	d := newDisk()
	s := open(t, d)
	starts := []int{}
	for n := 1; n <= 4; n++ {
		starts = append(starts, d.size())
		keep(t, s, numbered(n))
	}
	for spoilt, start := range starts[:3] {
		for _, at := range []int{0, 12, 100} {
			bad := holding(d.data[File])
			bad.data[File][start+at] ^= 4
			want := slices.Delete(ids(s.All()), spoilt, spoilt+1)
			if all, damage := readAgain(t, bad); damage != journal.DamageCorrupt || !slices.Equal(ids(all), want) {
				t.Errorf("line %d, read: %v %v", spoilt, damage, ids(all))
			}
			again := open(t, bad)
			if got := ids(again.All()); again.Damage() != journal.DamageCorrupt || !slices.Equal(got, want) {
				t.Errorf("line %d: %v %v", spoilt, again.Damage(), got)
			}
			keep(t, again, numbered(5))
			if mended := open(t, bad.crash(0)); mended.Damage() != journal.DamageNone || !slices.Equal(ids(mended.All()), append(want, "sandbox005")) {
				t.Errorf("line %d, mended: %v %v", spoilt, mended.Damage(), ids(mended.All()))
			}
		}
	}
}

// TestFullDisk: nothing new is attached, pods go, and all is told once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, half := range []bool{false, true} {
		d := newDisk()
		d.half = half
		s := open(t, d)
		keep(t, s, numbered(1), numbered(2), numbered(3))
		d.setFull(true)
		if _, err := s.Put(numbered(4)); !errors.Is(err, ErrDisk) {
			t.Fatalf("put on a full disk: %v", err)
		}
		if sync, err := s.Remove("sandbox001"); !errors.Is(err, ErrDisk) || sync() != nil {
			t.Fatalf("remove on a full disk: %v", err)
		}
		if sync, err := s.Remove("sandbox001"); err != nil || sync() != nil {
			t.Fatalf("remove again: %v", err)
		}
		if err := s.Close(); !errors.Is(err, ErrDisk) {
			t.Errorf("close: %v", err)
		}
		if got := ids(s.All()); !slices.Equal(got, []string{"sandbox002", "sandbox003"}) {
			t.Fatalf("there are %v", got)
		}
		if got := ids(open(t, d.crash(0)).All()); !slices.Equal(got, []string{"sandbox001", "sandbox002", "sandbox003"}) {
			t.Fatalf("after a crash: %v", got)
		}
		d.setFull(false)
		keep(t, s, numbered(5))
		if got := ids(open(t, d.crash(0)).All()); !slices.Equal(got, []string{"sandbox002", "sandbox003", "sandbox005"}) {
			t.Fatalf("with room again: %v", got)
		}
	}
}

// TestErrorsAndCrashes fails each operation in turn, alone, with the next and for
// good, and stops the machine afterwards with what was synced and some bytes more:
// what sync answered holds.
func TestErrorsAndCrashes(t *testing.T) {
	t.Parallel()
	for fail := range 30 {
		for _, more := range []int{0, 1, 1000} {
			d := newDisk()
			d.fail, d.more, d.half = fail, more, fail%2 == 0
			there, gone := work(t, d)
			for _, rest := range []int{0, 1, 700} {
				all := ids(open(t, d.crash(rest)).All())
				for _, id := range there {
					if !slices.Contains(all, id) {
						t.Fatalf("operation %d and %d more, %d bytes more: %s is lost of %v", fail, more, rest, id, all)
					}
				}
				for _, id := range gone {
					if slices.Contains(all, id) {
						t.Fatalf("operation %d and %d more, %d bytes more: %s is back in %v", fail, more, rest, id, all)
					}
				}
			}
		}
	}
}

// work puts and removes, and says what is on disk for sure and what is not.
func work(t *testing.T, d *disk) (there, gone []string) {
	t.Helper()
	s := open(t, d)
	for n := 1; n <= 6; n++ {
		a := numbered(n)
		if sync, err := s.Put(a); err == nil && sync() == nil {
			there = append(there, a.ContainerID)
		}
		if n%2 > 0 {
			continue
		}
		id := numbered(n - 1).ContainerID
		there = slices.DeleteFunc(there, func(other string) bool { return other == id })
		if sync, err := s.Remove(id); err == nil && sync() == nil {
			gone = append(gone, id)
		}
		if _, ok := s.Get(id); ok {
			t.Fatalf("%s is there after it was removed", id)
		}
	}
	return there, gone
}
