package record

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"railhead/internal/ipam/journal"
)

// TestLaterRelease keeps what a later release wrote, also when the file is written
// anew, and takes its removals.
func TestLaterRelease(t *testing.T) {
	t.Parallel()
	d := newDisk()
	j, _, _, err := journal.Open[json.RawMessage](d, File)
	if err != nil {
		t.Fatal(err)
	}
	later := []string{
		`{"v":2,"id":"x1","put":{"name":"p","at":"2020-01-01T00:00:00Z","new":{"a":1}},"also":7}`,
		`{"v":2,"id":"x2","put":{"name":["p"]}}`,
		`{"v":2,"id":"x3","put":{"name":"gone"}}`,
		`{"v":2,"id":"x3","removed":true,"why":"x"}`,
		`{"v":3,"settings":{"a":1}}`,
		`{"v":3,"id":"x4","moved":"x5"}`,
		`[3]`,
	}
	for _, text := range later {
		position, err := j.Append(json.RawMessage(text))
		if err != nil || j.Sync(position) != nil {
			t.Fatal(err)
		}
	}
	s := open(t, d)
	keep(t, s, numbered(1))
	if err := s.compact(); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, 4, 5, 6} {
		if !strings.Contains(string(d.data[File]), later[i]) {
			t.Errorf("%s is lost in\n%s", later[i], d.data[File])
		}
	}
	s = open(t, d)
	if got := ids(s.All()); !slices.Equal(got, []string{"x2", "x1", "sandbox001"}) {
		t.Errorf("there are %v", got)
	}
	if a, ok := s.Get("x1"); !ok || a.Newer != 2 || a.Name != "p" {
		t.Errorf("%t %+v", ok, a)
	}
	if a, ok := s.Get("x2"); !ok || a.Newer != 2 || a.Name != "" {
		t.Errorf("%t %+v", ok, a)
	}
	done(t)(s.Remove("x1"))
	if got := ids(open(t, d.crash(0)).All()); !slices.Equal(got, []string{"x2", "sandbox001"}) {
		t.Errorf("there are %v", got)
	}
}

// FuzzRead: whatever is in the file, reading it twice and writing it anew give the same.
func FuzzRead(f *testing.F) {
	d := newDisk()
	s := open(f, d)
	keep(f, s, numbered(1), numbered(2))
	done(f)(s.Remove("sandbox001"))
	f.Add(d.data[File])
	f.Add(d.data[File][10:])
	f.Add([]byte("00000001 ffffffff 1\n"))
	for _, text := range []string{`{"v":2,"id":"x","put":{"at":"2020-01-01T00:00:00Z"}}`, `{"v":1,"id":"x","put":null}`, `{"id":"x","put":3}`, `null`} {
		d := newDisk()
		j, _, _, _ := journal.Open[json.RawMessage](d, File)
		if _, err := j.Append(json.RawMessage(text)); err != nil {
			f.Fatal(err)
		}
		f.Add(d.data[File])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, damage := readAgain(t, holding(data))
		d := holding(data)
		s := open(t, d)
		if diff := differ(all, s.All()); diff != "" || s.Damage() != damage {
			t.Fatalf("%v, read %v: %s", s.Damage(), damage, diff)
		}
		if err := s.compact(); err != nil {
			t.Fatal(err)
		}
		if again, damage := readAgain(t, d); damage != journal.DamageNone || differ(all, again) != "" {
			t.Fatalf("written anew: %v %s", damage, differ(all, again))
		}
	})
}

// BenchmarkPut is what a pod of eight rails with addresses of both families costs
// beside the disk.
func BenchmarkPut(b *testing.B) {
	a := numbered(1)
	plan, done := eightRails(b)
	a.Plan, a.Report = plan, Describe(plan, done)
	s := open(b, newDisk())
	for b.Loop() {
		if _, err := s.Put(a); err != nil {
			b.Fatal(err)
		}
	}
	raw, err := json.Marshal(a)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(raw)), "bytes")
}
