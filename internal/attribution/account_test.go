package attribution

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	podA = &Pod{UID: "a", Namespace: "ai", Name: "a"}
	podB = &Pod{UID: "b", Namespace: "ai", Name: "b"}
)

// bytesOf is an Account whose counters "bytes" and "more bytes" count bytes.
func bytesOf() *Account[string] {
	return NewAccount(func(family string) bool { return family == "bytes" || family == "more bytes" })
}

// sample is one pass over port 1 of a device.
func sample(a *Account[string], device string, pod *Pod, method Method, bytes uint64) {
	a.Hold(device, pod, method)
	a.Observe(device, 1, 0, []Value[string]{{"bytes", bytes}})
	a.EndPass()
}

// totals are the totals of all lines by pod, method and counter.
func totals(a *Account[string]) map[string]uint64 {
	got := map[string]uint64{}
	for line := range a.Lines() {
		for _, v := range line.Values() {
			got[fmt.Sprintf("%s %s %s/%d %s", line.Pod.Name, line.Method, line.Device, line.Port, v.Family)] = v.Value
		}
	}
	return got
}

func wantTotals(t *testing.T, a *Account[string], want map[string]uint64) {
	t.Helper()
	if diff := cmp.Diff(want, totals(a)); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
}

func TestAccountExclusive(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	sample(a, "vf", nil, "", 1000)
	wantTotals(t, a, map[string]uint64{})
	sample(a, "vf", podA, Exclusive, 2000) // some of it may be from before
	wantTotals(t, a, map[string]uint64{"a exclusive vf/1 bytes": 0})
	sample(a, "vf", podA, Exclusive, 2500)
	sample(a, "vf", podA, Exclusive, 2500)
	sample(a, "vf", podA, Exclusive, 2600)
	wantTotals(t, a, map[string]uint64{"a exclusive vf/1 bytes": 600})
	sample(a, "vf", podB, Exclusive, 3000)
	sample(a, "vf", podB, Exclusive, 3001)
	wantTotals(t, a, map[string]uint64{"b exclusive vf/1 bytes": 1})
	sample(a, "vf", nil, "", 9000)
	wantTotals(t, a, map[string]uint64{})
	sample(a, "vf", podA, Exclusive, 9100)
	sample(a, "vf", podA, Exclusive, 9107)
	wantTotals(t, a, map[string]uint64{"a exclusive vf/1 bytes": 7})
}

func TestAccountSoleUser(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	step := func(bytes uint64, users ...*Pod) {
		var sole *Pod
		if len(users) == 1 {
			sole = users[0]
		}
		a.Hold("pf", sole, SoleUser)
		for _, pod := range users {
			a.Keep("pf", pod)
		}
		a.Observe("pf", 1, 0, []Value[string]{{"bytes", bytes}})
		a.EndPass()
	}
	step(100, podA)
	step(110, podA)
	for i := range uint64(2 * passesKept) { // long together
		step(200+100*i, podA, podB)
	}
	wantTotals(t, a, map[string]uint64{"a sole_user pf/1 bytes": 10})
	step(50000, podA)
	step(50007, podA)
	wantTotals(t, a, map[string]uint64{"a sole_user pf/1 bytes": 17})
	for range passesKept + 2 {
		step(60000)
	}
	wantTotals(t, a, map[string]uint64{})
}

// TestAccountGroups observes counters at different intervals: what changed
// hands in between is not counted in either.
func TestAccountGroups(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	errors := func(v uint64) { a.Observe("vf", 1, 1, []Value[string]{{"errors", v}, {"drops", 10 * v}}) }
	sample(a, "vf", podA, Exclusive, 100)
	errors(1)
	sample(a, "vf", podA, Exclusive, 101)
	errors(3)
	wantTotals(t, a, map[string]uint64{
		"a exclusive vf/1 bytes": 1, "a exclusive vf/1 errors": 2, "a exclusive vf/1 drops": 20,
	})
	sample(a, "vf", podB, Exclusive, 102)
	sample(a, "vf", podA, Exclusive, 103)
	sample(a, "vf", podA, Exclusive, 105)
	errors(100) // of the pod before, the other pod, and the pod again
	wantTotals(t, a, map[string]uint64{
		"a exclusive vf/1 bytes": 2, "a exclusive vf/1 errors": 0, "a exclusive vf/1 drops": 0,
	})
	a.Observe("vf", 1, 1, []Value[string]{{"drops", 1001}, {"new", 7}, {"errors", 102}}) // in another order
	wantTotals(t, a, map[string]uint64{
		"a exclusive vf/1 bytes": 2, "a exclusive vf/1 errors": 2, "a exclusive vf/1 drops": 1, "a exclusive vf/1 new": 0,
	})
}

func TestAccountReset(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	for _, bytes := range []uint64{1000, 1010, 3, 5, math.MaxInt64, 0, 1} {
		sample(a, "vf", podA, Exclusive, bytes)
	}
	wantTotals(t, a, map[string]uint64{"a exclusive vf/1 bytes": 10 + 2 + math.MaxInt64 - 5 + 1})
}

// TestAccountPod wants lines to have the newest of a pod, but nothing that is
// known of it lost.
func TestAccountPod(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	young := &Pod{UID: "a", Name: "a"}
	known := &Pod{UID: "a", Namespace: "ai", Name: "a", Workload: Workload{Kind: "Job"}}
	for _, step := range []struct{ now, want *Pod }{{young, young}, {podA, podA}, {known, known}, {young, known}} {
		sample(a, "vf", step.now, Exclusive, 1)
		for line := range a.Lines() {
			if line.Pod != step.want {
				t.Errorf("pod %+v, want %+v", line.Pod, step.want)
			}
		}
	}
	if n := len(slices.Collect(a.Lines())); n != 1 {
		t.Errorf("%d lines, want 1", n)
	}
}

func set(id uint32, pod *Pod, bytes uint64) CounterSet[string] {
	return CounterSet[string]{ID: id, Pod: pod, Values: []Value[string]{{"bytes", bytes}, {"errors", 1}}}
}

func TestAccountCounters(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	dump := func(sets ...CounterSet[string]) {
		a.ObserveCounters("pf", 1, sets)
		a.EndPass()
	}
	dump(set(1, podA, 500)) // it counted before we watched
	dump(set(1, podA, 510), set(2, podA, 7), set(3, podB, 5))
	wantTotals(t, a, map[string]uint64{
		"a qp_counter pf/1 bytes": 17, "a qp_counter pf/1 errors": 1,
		"b qp_counter pf/1 bytes": 5, "b qp_counter pf/1 errors": 1,
	})
	dump(set(2, nil, 9), set(3, podB, 5))                      // 1 has ended, and the process of 2
	dump(set(1, podB, 100), set(2, podA, 10), set(3, podB, 2)) // 1 is another's, 3 began again
	wantTotals(t, a, map[string]uint64{
		"a qp_counter pf/1 bytes": 20, "a qp_counter pf/1 errors": 1,
		"b qp_counter pf/1 bytes": 107, "b qp_counter pf/1 errors": 3,
	})
	dump(set(2, podB, 50)) // another's at once
	wantTotals(t, a, map[string]uint64{
		"a qp_counter pf/1 bytes": 20, "a qp_counter pf/1 errors": 1,
		"b qp_counter pf/1 bytes": 157, "b qp_counter pf/1 errors": 4,
	})
	dump(set(9, nil, 1000)) // nobody knows whose
	for range passesKept + 1 {
		dump()
	}
	wantTotals(t, a, map[string]uint64{})
}

// TestAccountCountsOnce has a pod be alone on a device with some of its queue
// pairs in a set: what the set counts is not counted again for the sole user,
// also where the set is read a little later or earlier than the port.
func TestAccountCountsOnce(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	pass := func(inSet, bytes uint64) {
		a.Hold("pf", podA, SoleUser)
		a.ObserveCounters("pf", 1, []CounterSet[string]{{ID: 1, Pod: podA, Values: []Value[string]{{"bytes", inSet}}}})
		a.Observe("pf", 1, 0, []Value[string]{{"bytes", bytes}, {"errors", bytes}})
		a.EndPass()
	}
	want := func(sole, apart, errors uint64) {
		t.Helper()
		wantTotals(t, a, map[string]uint64{
			"a sole_user pf/1 bytes": sole, "a sole_user pf/1 errors": errors, "a qp_counter pf/1 bytes": apart,
		})
	}
	pass(50, 1000)
	want(0, 0, 0)
	pass(60, 1015)
	want(5, 10, 15)
	pass(90, 1035) // of its 30 the port shows 20
	want(5, 40, 35)
	pass(90, 1055)
	want(15, 40, 55)
	if ratio, ok := a.Coverage("pf"); ratio != 1 || !ok {
		t.Errorf("coverage %v, %v, want 1", ratio, ok)
	}
}

// TestAccountWraps has a counter of 32 bits begin at zero again: its set is the
// same, so that what else it counts is not counted again.
func TestAccountWraps(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, now, gained, errors uint64 }{
		"it wraps":             {1<<32 - 10, 5, 15, 0},
		"it is far from there": {1 << 31, 5, 5, 3},
		"it comes far":         {1<<32 - 10, 1 << 31, 1 << 31, 3},
		"it is wide":           {1 << 33, 5, 5, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := bytesOf()
			for _, bytes := range []uint64{test.before, test.now} {
				a.ObserveCounters("pf", 1, []CounterSet[string]{{ID: 1, Pod: podA, Values: []Value[string]{{"errors", 3}, {"bytes", bytes}}}})
				a.EndPass()
			}
			wantTotals(t, a, map[string]uint64{"a qp_counter pf/1 bytes": test.gained, "a qp_counter pf/1 errors": test.errors})
		})
	}
}

func TestCoverage(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	want := func(ratio float64, ok bool) {
		t.Helper()
		if got, isOK := a.Coverage("pf"); got != ratio || isOK != ok {
			t.Errorf("coverage %v, %t, want %v, %t", got, isOK, ratio, ok)
		}
	}
	want(0, false)
	sample(a, "pf", podA, SoleUser, 1000)
	want(0, false) // nothing is known to have gone over it
	sample(a, "pf", podA, SoleUser, 1300)
	want(1, true)
	sample(a, "pf", nil, "", 1400)
	want(0.75, true)
	a.ObserveCounters("pf", 1, []CounterSet[string]{set(1, podA, 0)})
	sample(a, "pf", nil, "", 1400)
	a.ObserveCounters("pf", 1, []CounterSet[string]{set(1, podA, 50)})
	sample(a, "pf", nil, "", 1500)
	want(0.7, true)
	a.ObserveCounters("pf", 1, []CounterSet[string]{set(1, podA, 5000)}) // read a little later than the port
	sample(a, "pf", nil, "", 1600)
	want(1, true)
	for range coveragePasses {
		sample(a, "pf", nil, "", 1600)
	}
	want(0, false)
	sample(a, "pf", nil, "", 1700)
	want(0, true)
}

// TestCoverageOfSets reads counter sets at every third pass only: what they
// counted meanwhile is covered all the same, beside what a pod had alone.
func TestCoverageOfSets(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	var bytes, inSet uint64
	pass := func(i int, sole *Pod, apart uint64) {
		bytes, inSet = bytes+100, inSet+apart
		if i%3 == 0 {
			a.ObserveCounters("pf", 1, []CounterSet[string]{set(1, podA, inSet)})
		}
		sample(a, "pf", sole, SoleUser, bytes)
	}
	for i := range 2 * coveragePasses {
		pass(i, nil, 90)
	}
	if ratio, ok := a.Coverage("pf"); ratio != 0.9 || !ok {
		t.Errorf("coverage %v, %t, want 0.9", ratio, ok)
	}
	for i := range coveragePasses / 2 {
		pass(i, podA, 0)
	}
	if ratio, _ := a.Coverage("pf"); ratio < 0.8 || ratio > 1 {
		t.Errorf("coverage %v of what a pod had apart and then alone, want most", ratio)
	}
}

// TestAccountTurnsExclusive gives a pod for itself what it used before: it is
// there once.
func TestAccountTurnsExclusive(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	a.ObserveCounters("vf", 1, []CounterSet[string]{set(1, podA, 5)})
	sample(a, "vf", podA, SoleUser, 100)
	sample(a, "other", podA, SoleUser, 100)
	sample(a, "vf", podA, SoleUser, 110)
	sample(a, "vf", podA, Exclusive, 120)
	sample(a, "vf", podA, Exclusive, 125)
	wantTotals(t, a, map[string]uint64{"a exclusive vf/1 bytes": 5, "a sole_user other/1 bytes": 0})
}

// TestAccountForgets has 10,000 pods come and go, in each of the ways in which
// they can have a device.
func TestAccountForgets(t *testing.T) {
	t.Parallel()
	a := bytesOf()
	most := 0
	for i := range 10000 {
		pod := &Pod{UID: fmt.Sprint(i), Namespace: "ai", Name: fmt.Sprint(i)}
		a.Keep("pf", pod)
		a.ObserveCounters("pf", 1, []CounterSet[string]{set(uint32(i), pod, 1)})
		a.Hold("pf", pod, SoleUser)
		a.Observe("pf", 1, 0, []Value[string]{{"bytes", uint64(i)}})
		a.Hold(fmt.Sprintf("vf%d", i), pod, Exclusive)
		a.Observe(fmt.Sprintf("vf%d", i), 1, 0, []Value[string]{{"bytes", uint64(i)}})
		sample(a, "vf", pod, Exclusive, uint64(i))
		most = max(most, entries(a))
	}
	if most > 12*(passesKept+2) {
		t.Errorf("%d entries, want no more than the last %d passes need", most, passesKept)
	}
	for range passesKept + 2 {
		a.EndPass()
	}
	if n := entries(a); n != 0 {
		t.Errorf("%d entries of pods that are gone, want none", n)
	}
}

// entries counts all that an Account remembers.
func entries(a *Account[string]) int {
	return len(a.devices) + len(a.sources) + len(a.sets) + len(a.dumped) + len(a.lines) + len(a.users)
}

// FuzzAccount holds that no total ever falls while its line stays, and that
// what pods have of a device is never more than the device counted.
func FuzzAccount(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add([]byte{0x10, 0x91, 0x12, 0x90, 0x10, 0xff, 0x20, 0x31, 0x2f, 0x00, 0x01, 0x80})
	f.Fuzz(func(t *testing.T, script []byte) {
		a := bytesOf()
		holders := []*Pod{nil, podA, podB, {Namespace: "ai", Name: "by name"}}
		methods := []Method{Exclusive, SoleUser}
		var now, gained, shared uint64 // what the device counts, gained since it was first observed, and pods had of it
		before := map[*Line[string]]uint64{}
		for i, b := range script {
			was := now
			if isReset := b&0xf0 == 0xf0; isReset {
				now = uint64(b & 0x0f)
			} else {
				now += uint64(b >> 4)
			}
			if i > 0 && now > was {
				gained += now - was
			}
			a.Hold("d", holders[b&3], methods[b>>2&1])
			a.Observe("d", 1, 0, []Value[string]{{"bytes", now}})
			after := map[*Line[string]]uint64{}
			for line := range a.Lines() {
				after[line] = line.Values()[0].Value
				if after[line] < before[line] {
					t.Fatalf("step %d: the total of %s fell from %d to %d", i, line.Pod.Name, before[line], after[line])
				}
				shared += after[line] - before[line]
			}
			before = maps.Clone(after)
			if shared > gained {
				t.Fatalf("step %d: pods had %d, the device counted %d", i, shared, gained)
			}
			if b&8 != 0 {
				a.EndPass()
			}
			if ratio, ok := a.Coverage("d"); ok && (ratio < 0 || ratio > 1) {
				t.Fatalf("step %d: coverage %v", i, ratio)
			}
		}
	})
}

// FuzzAccountCounters holds that totals of counter sets never fall, whatever
// becomes of the sets.
func FuzzAccountCounters(f *testing.F) {
	f.Add([]byte{0x00, 0x11, 0x22, 0x33, 0x44, 0xf1, 0x05, 0x16})
	f.Fuzz(func(t *testing.T, script []byte) {
		a := bytesOf()
		holders := []*Pod{nil, podA, podB, podA}
		values := map[uint32]uint64{}
		before := map[*Line[string]]uint64{}
		for i, b := range script {
			id := uint32(b & 3)
			switch b >> 4 {
			case 0xf: // it ends
				delete(values, id)
			case 0xe: // it ends, and its number is given out again
				values[id] = 0
			default:
				values[id] += uint64(b >> 4)
			}
			var sets []CounterSet[string]
			for id, v := range values {
				sets = append(sets, CounterSet[string]{ID: id, Pod: holders[(uint32(b>>2)+id)&3], Values: []Value[string]{{"bytes", v}}})
			}
			a.ObserveCounters("d", 1, sets)
			for line := range a.Lines() {
				total := line.Values()[0].Value
				if total < before[line] {
					t.Fatalf("step %d: the total of %s fell from %d to %d", i, line.Pod.Name, before[line], total)
				}
				before[line] = total
			}
		}
	})
}

// BenchmarkObserve is a pass over 136 ports of 40 counters each.
func BenchmarkObserve(b *testing.B) {
	a := NewAccount(func(f int) bool { return f < 2 })
	values := make([]Value[int], 40)
	names := make([]string, 136)
	for i := range names {
		names[i] = fmt.Sprint("vf", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range values {
			values[i] = Value[int]{i, values[i].Value + 1000}
		}
		for _, name := range names {
			a.Hold(name, podA, Exclusive)
			a.Observe(name, 1, 0, values)
		}
		a.EndPass()
	}
}
