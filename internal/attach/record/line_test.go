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

// TestPlannedOnce writes a Plan with the first line of an attachment alone, has it
// with the last, and loses it with the first.
func TestPlannedOnce(t *testing.T) {
	t.Parallel()
	d := newDisk()
	s := open(t, d)
	a := numbered(1)
	a.State = Attaching
	keep(t, s, a)
	first := d.size()
	a.State = Attached
	keep(t, s, a, a)
	other := a
	other.Plan = new(*a.Plan)
	if n := strings.Count(string(d.data[File]), `"parent":"p0"`); n != 1 {
		t.Errorf("the plan is there %d times", n)
	}
	want := []Attachment{a}
	for name, s := range map[string]*Store{"written": s, "read": open(t, d.crash(0))} {
		if diff := differ(want, s.All()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if err := s.compact(); err != nil {
		t.Fatal(err)
	}
	if diff := differ(want, open(t, d.crash(0)).All()); diff != "" {
		t.Errorf("written anew (-want +got):\n%s", diff)
	}
	keep(t, s, other) // which may say something else
	if n := strings.Count(string(d.data[File]), `"parent":"p0"`); n != 2 {
		t.Errorf("the plans are there %d times", n)
	}

	d = newDisk()
	keep(t, open(t, d), a)
	s = open(t, d)
	known, _ := s.Get(a.ContainerID)
	keep(t, s, known)
	bad := holding(d.data[File])
	bad.data[File][first/2] ^= 4
	a.Plan, a.PlanLost = nil, true
	if all, damage := readAgain(t, bad); damage != journal.DamageCorrupt || differ([]Attachment{a}, all) != "" {
		t.Errorf("without its first line: %v %+v", damage, all)
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
	planned := newDisk()
	keep(f, open(f, planned), numbered(1))
	j, _, _, err := journal.Open[json.RawMessage](planned, File)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{`{"v":1,"id":"sandbox001","put":{"at":"2020-01-01T00:00:00Z"},"planned":true}`, `{"v":2,"id":"sandbox001","put":{"at":"2020-01-01T00:00:00Z"},"planned":true}`} {
		if _, err := j.Append(json.RawMessage(text)); err != nil {
			f.Fatal(err)
		}
		f.Add(planned.data[File])
	}
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
	plan, steps := eightRails(b)
	a.Report.Steps = steps
	s := open(b, newDisk())
	for b.Loop() {
		a.Plan = new(*plan) // or it would be there already
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
