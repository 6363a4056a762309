package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/ipam/journal"
)

const name = "j"

func open(t *testing.T, d journal.Disk) (*journal.Journal[string], []string, journal.Damage) {
	t.Helper()
	j, all, damage, err := journal.Open[string](d, name)
	if err != nil {
		t.Fatal(err)
	}
	return j, all, damage
}

func add(t *testing.T, j *journal.Journal[string], all ...string) {
	t.Helper()
	for _, r := range all {
		position, err := j.Append(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(position); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRealDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	d, err := journal.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	j, all, damage := open(t, d)
	if len(all) != 0 || damage != journal.DamageNone {
		t.Fatal(all, damage)
	}
	add(t, j, "a", "b\nc")
	if err := j.Compact([]string{"ab"}); err != nil {
		t.Fatal(err)
	}
	add(t, j, "d")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := journal.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, all, damage = open(t, again)
	if diff := cmp.Diff([]string{"ab", "d"}, all); diff != "" || damage != journal.DamageNone {
		t.Error(damage, diff)
	}
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != j.Size() {
		t.Error(info, err)
	}
}

func TestFileIsReadable(t *testing.T) {
	d := newDisk()
	j, _, _ := open(t, d)
	add(t, j, "first", "second")
	lines := strings.Split(strings.TrimSpace(string(d.data[name])), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], ` "first"`) {
		t.Errorf("got %q", d.data[name])
	}
}

func TestTornAtEveryByte(t *testing.T) {
	d := newDisk()
	j, _, _ := open(t, d)
	ends := []int{0}
	var want []string
	for i := range 4 {
		r := strings.Repeat("x\n", i) + fmt.Sprint(i)
		add(t, j, r)
		want, ends = append(want, r), append(ends, len(d.data[name]))
	}
	whole := d.data[name]
	for size := range len(whole) + 1 {
		n := 0
		for n+1 < len(ends) && ends[n+1] <= size {
			n++
		}
		torn := newDisk()
		torn.data[name] = append([]byte(nil), whole[:size]...)
		j, all, damage := open(t, torn)
		if diff := cmp.Diff(want[:n], all, cmp.Transformer("nil", func(s []string) string { return fmt.Sprint(s) })); diff != "" {
			t.Fatalf("%d bytes: %s", size, diff)
		}
		if (damage == journal.DamageTail) != (size != ends[n]) || damage == journal.DamageCorrupt {
			t.Fatalf("%d bytes: damage %v", size, damage)
		}
		add(t, j, "next")
		if _, all, damage = open(t, torn); len(all) != n+1 || damage != journal.DamageNone {
			t.Fatalf("%d bytes, and one record more: %q, %v", size, all, damage)
		}
	}
}

func TestEveryFlippedBit(t *testing.T) {
	d := newDisk()
	j, _, _ := open(t, d)
	add(t, j, "one", "two", "three")
	whole := d.data[name]
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for i := range whole {
		for bit := range 8 {
			bad := newDisk()
			bad.data[name] = append([]byte(nil), whole...)
			bad.data[name][i] ^= 1 << bit
			j, all, damage := open(t, bad)
			if damage == journal.DamageNone || len(all) > 2 || i < last-1 && damage != journal.DamageCorrupt {
				t.Fatalf("byte %d, bit %d: %q, %v", i, bit, all, damage)
			}
			if damage == journal.DamageCorrupt {
				if _, err := j.Append("x"); !errors.Is(err, journal.ErrBroken) {
					t.Fatalf("byte %d, bit %d: append: %v", i, bit, err)
				}
			}
			if err := j.Compact([]string{"new"}); err != nil {
				t.Fatal(err)
			}
			add(t, j, "x")
		}
	}
}

// TestErrorsAndCrashes fails each operation in turn, alone, with the next, and
// for good, and stops the machine after it with what was synced and any part
// of the rest. What Sync answered is there, in order, and nothing else is.
func TestErrorsAndCrashes(t *testing.T) {
	for fail := range 24 {
		for _, more := range []int{0, 1, 1000} {
			for _, half := range []bool{false, true} {
				t.Run(fmt.Sprintf("operation %d and %d more, half %t", fail, more, half), func(t *testing.T) {
					d := newDisk()
					d.fail, d.more, d.half = fail, more, half
					said, tried := work(d)
					for rest := range 60 {
						_, all, damage := open(t, d.crash(name, rest))
						if damage == journal.DamageCorrupt || !within(said, all, tried) {
							t.Fatalf("%d bytes more: %q after %q of %q, %v", rest, all, said, tried, damage)
						}
					}
				})
			}
		}
	}
}

// work appends eight records with a compaction after the fourth, and returns those
// that are on disk and those that may be.
func work(d *disk) (said, tried []string) {
	j, _, _, err := journal.Open[string](d, name)
	if err != nil {
		return nil, nil
	}
	for i := range 8 {
		r := fmt.Sprint("record ", i)
		position, err := j.Append(r)
		if err == nil {
			tried = append(tried, r)
			if err = j.Sync(position); err == nil {
				said = append(said, r)
			}
		}
		if err != nil || i == 4 {
			if j.Compact(tried) == nil {
				said = append([]string(nil), tried...)
			}
		}
	}
	return said, tried
}

// within says whether all begins with all of said, and is part of tried in order.
func within(said, all, tried []string) bool {
	for _, r := range all {
		for len(tried) > 0 && tried[0] != r {
			tried = tried[1:]
		}
		if len(tried) == 0 {
			return false
		}
		if len(said) > 0 && said[0] == r {
			said = said[1:]
		}
		tried = tried[1:]
	}
	return len(said) == 0
}

func TestCallersShareASync(t *testing.T) {
	d := &slowDisk{disk: newDisk(), gate: make(chan struct{})}
	j, _, _ := open(t, d)
	var wait sync.WaitGroup
	var positions []int64
	for i := range 100 {
		position, err := j.Append(fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		positions = append(positions, position)
	}
	for _, position := range positions {
		wait.Go(func() {
			if err := j.Sync(position); err != nil {
				t.Error(err)
			}
		})
	}
	close(d.gate)
	wait.Wait()
	if d.syncs != 1 {
		t.Errorf("%d syncs for 100 records that were all there before the first", d.syncs)
	}
}

// slowDisk syncs once its gate is open.
type slowDisk struct {
	*disk
	gate  chan struct{}
	syncs int
}

func (d *slowDisk) Sync(name string) error {
	<-d.gate
	d.syncs++
	return d.disk.Sync(name)
}

func FuzzOpen(f *testing.F) {
	d := newDisk()
	j, _, _, err := journal.Open[json.RawMessage](d, name)
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range []string{`{"a":1}`, `"x"`} {
		if _, err := j.Append(json.RawMessage(r)); err != nil {
			f.Fatal(err)
		}
	}
	whole := d.data[name]
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte("00000001 ffffffff 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newDisk()
		d.data[name] = append([]byte(nil), data...)
		_, all, damage, err := journal.Open[json.RawMessage](d, name)
		if err != nil {
			t.Fatal(err)
		}
		// What was read is what was there: written again it gives the same bytes.
		again := newDisk()
		j, _, _, _ := journal.Open[json.RawMessage](again, name)
		size := 0
		for _, r := range all {
			size += len("00000000 00000000 ") + len(r) + 1
			if !bytes.Contains(data, r) {
				t.Fatalf("record %q is not in %q", r, data)
			}
			if _, err := j.Append(r); err != nil {
				t.Fatal(err)
			}
		}
		if damage == journal.DamageNone && size != len(data) || damage == journal.DamageTail && size != len(d.data[name]) {
			t.Fatalf("%d bytes of records in %d, %v", size, len(data), damage)
		}
	})
}
