package attribution

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
)

// bench is a Binder with the kernel that it works on.
type bench struct {
	*Binder
	t   *testing.T
	k   *fakekernel.Kernel
	log *bytes.Buffer
}

// newBench has processes 20 and 22 in one pod, 30 in another, 10 on the host.
func newBench(t *testing.T, policy CounterPolicy, port fakekernel.HCAPort) bench {
	t.Helper()
	a, _ := users(t)
	port.Counters = []rdmanl.CounterStatus{{Name: "out_of_buffer", Enabled: true}}
	port.QPNames = []string{"out_of_buffer"}
	port.QPValues = func(set rdmanl.QPCounter, dst []uint64) { dst[0] = uint64(100*set.ID) + uint64(len(set.QPNs)) }
	k := kernelOf(fakekernel.HCA{Ports: map[int]*fakekernel.HCAPort{1: &port}})
	var log bytes.Buffer
	b, err := NewBinder(policy, a, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return bench{b, t, k, &log}
}

func (b bench) addQP(number uint32, owner rdmanl.Owner) {
	b.k.ChangeHCA(hca, func(h *fakekernel.HCA) {
		h.AddQP(rdmanl.QP{Number: number, Port: 1, Type: "RC", State: "RTS", Owner: owner})
	})
}

func (b bench) removeQP(number uint32) {
	b.k.ChangeHCA(hca, func(h *fakekernel.HCA) { h.RemoveQP(number) })
}

func (b bench) reconcile() {
	b.t.Helper()
	if err := b.Reconcile(b.k.RDMA(), "mlx5_3", hca, 1); err != nil {
		b.t.Errorf("reconcile: %v", err)
	}
}

func (b bench) release() {
	b.t.Helper()
	if err := b.Release(b.k.RDMA(), "mlx5_3", hca, 1); err != nil {
		b.t.Errorf("release: %v", err)
	}
}

// wantMode checks the mode of the port, "auto by type" and so on.
func (b bench) wantMode(want string) {
	b.t.Helper()
	m, err := b.k.RDMA().CounterMode(hca, 1)
	got := m.Mode
	if m.ByType {
		got += " by type"
	}
	if m.ByPID {
		got += " by pid"
	}
	if got != want || err != nil {
		b.t.Errorf("mode %q: %v, want %q", got, err, want)
	}
}

// wantSets checks which queue pairs are bound together.
func (b bench) wantSets(want ...[]uint32) {
	b.t.Helper()
	counters, err := b.k.RDMA().QPCounters(hca, 1)
	if err != nil {
		b.t.Error(err)
	}
	var got [][]uint32
	for _, c := range counters {
		got = append(got, slices.Sorted(slices.Values(c.QPNs)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("sets (-want +got):\n%s", diff)
	}
}

func (b bench) read() []CounterSet[string] {
	b.t.Helper()
	sets, err := b.Read(b.k.RDMA(), "mlx5_3", hca, 1)
	if err != nil {
		b.t.Error(err)
	}
	return sets
}

func of(id uint32, pod *Pod, value uint64) CounterSet[string] {
	return CounterSet[string]{ID: id, Pod: pod, Values: []Value[string]{{"out_of_buffer", value}}}
}

func TestBinderPolicy(t *testing.T) {
	t.Parallel()
	if _, err := NewBinder("on", nil, nil); err == nil || !strings.Contains(err.Error(), `"on", want "off"`) {
		t.Errorf("error %v, want one that names the policies", err)
	}
}

func TestBinderOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, CountersOff, fakekernel.HCAPort{})
	b.reconcile()
	b.wantMode("none")
	b.release()
	if n := b.k.Asked(fakekernel.SetCounters); n != 0 {
		t.Errorf("counters were set %d times, want never", n)
	}
}

func TestBinderAuto(t *testing.T) {
	t.Parallel()
	b := newBench(t, CountersAuto, fakekernel.HCAPort{})
	b.addQP(1, by(20)) // before, so it is not bound
	b.reconcile()
	b.wantMode("auto by pid")
	b.addQP(2, by(20))
	b.addQP(3, by(21)) // a thread of the same pod
	b.addQP(4, by(30))
	b.addQP(5, by(10))
	b.addQP(6, by(99)) // has ended
	b.reconcile()
	some, other := b.a.options.Pods.Pod(someUID), b.a.options.Pods.Pod(otherUID)
	want := []CounterSet[string]{of(1, some, 101), of(2, some, 201), of(3, other, 301), of(5, nil, 501)}
	if diff := cmp.Diff(want, b.read()); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
	b.release()
	b.wantMode("manual") // what the kernel makes of it while queue pairs are bound
	for qpn := range uint32(7) {
		b.removeQP(qpn)
	}
	b.wantMode("none")
	if b.log.Len() != 0 {
		t.Errorf("logged, want nothing: %s", b.log)
	}
}

// TestBinderAutoRestored wants the mode back that was there before.
func TestBinderAutoRestored(t *testing.T) {
	t.Parallel()
	b := newBench(t, CountersAuto, fakekernel.HCAPort{})
	b.reconcile()
	b.release()
	b.wantMode("none")
	b.release() // nothing is left to do
	b.wantMode("none")
}

// TestBinderLeavesAlone has an administrator have set something before.
func TestBinderLeavesAlone(t *testing.T) {
	t.Parallel()
	byType := rdmanl.CounterMode{Mode: "auto", ByType: true}
	both := rdmanl.CounterMode{Mode: "auto", ByType: true, ByPID: true}
	pid := rdmanl.CounterMode{Mode: "auto", ByPID: true}
	manual := fakekernel.HCAPort{
		Mode:       rdmanl.CounterMode{Mode: "manual"},
		QPCounters: []rdmanl.QPCounter{{ID: 4, Port: 1, Mode: "manual", QPNs: []uint32{77}}},
	}
	for name, test := range map[string]struct {
		policy CounterPolicy
		port   fakekernel.HCAPort
		mode   string
		says   bool
	}{
		"auto, by type":         {CountersAuto, fakekernel.HCAPort{Mode: byType}, "auto by type", true},
		"auto, by type and pid": {CountersAuto, fakekernel.HCAPort{Mode: both}, "auto by type by pid", true},
		"auto, as wanted":       {CountersAuto, fakekernel.HCAPort{Mode: pid}, "auto by pid", false},
		"auto, manual":          {CountersAuto, manual, "manual", true},
		"bind, by pid":          {CountersBind, fakekernel.HCAPort{Mode: pid}, "auto by pid", true},
		"bind, manual":          {CountersBind, manual, "manual", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.policy, test.port)
			b.k.ChangeHCA(hca, func(h *fakekernel.HCA) {
				h.QPs = []rdmanl.QP{{Number: 77, Port: 1, Type: "RC", State: "RTS", Owner: by(10)}}
			})
			for range 3 {
				b.reconcile()
			}
			b.release()
			b.wantMode(test.mode)
			if n := b.k.Asked(fakekernel.SetCounters) + b.k.Asked(fakekernel.DeleteCounter); n != 0 {
				t.Errorf("something was changed %d times, want never", n)
			}
			said := strings.Count(b.log.String(), "administrator")
			if (said == 1) != test.says || said > 1 {
				t.Errorf("said %d times:\n%s", said, b.log)
			}
		})
	}
}

// TestBinderTakenOver has an administrator change the mode that we set.
func TestBinderTakenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, CountersAuto, fakekernel.HCAPort{})
	b.reconcile()
	b.k.ChangeHCA(hca, func(h *fakekernel.HCA) { h.Ports[1].Mode = rdmanl.CounterMode{Mode: "auto", AutoMask: 1, ByType: true} })
	b.release()
	b.wantMode("auto by type")
	b.reconcile()
	b.wantMode("auto by type")
}

func TestBinderBusy(t *testing.T) {
	t.Parallel()
	b := newBench(t, CountersAuto, fakekernel.HCAPort{})
	b.k.Refuse(fakekernel.SetCounters, unix.EBUSY)
	b.reconcile()
	b.reconcile()
	b.wantMode("none")
	if n := strings.Count(b.log.String(), "tried again"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, b.log)
	}
	b.k.Refuse(fakekernel.SetCounters, 0)
	b.reconcile()
	b.wantMode("auto by pid")
}

func TestBinderErrors(t *testing.T) {
	t.Parallel()
	for _, policy := range []CounterPolicy{CountersAuto, CountersBind} {
		b := newBench(t, policy, fakekernel.HCAPort{})
		b.addQP(1, by(20))
		b.k.Refuse(fakekernel.SetCounters, unix.EPERM)
		if err := b.Reconcile(b.k.RDMA(), "mlx5_3", hca, 1); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: error %v, want %v", policy, err, unix.EPERM)
		}
		b.k.Refuse(fakekernel.GetCounterMode, unix.EIO)
		if err := b.Reconcile(b.k.RDMA(), "mlx5_3", hca, 1); !errors.Is(err, unix.EIO) {
			t.Errorf("%s: error %v, want %v", policy, err, unix.EIO)
		}
		b.k.Refuse(fakekernel.GetQPCounters, unix.EIO)
		if _, err := b.Read(b.k.RDMA(), "mlx5_3", hca, 1); !errors.Is(err, unix.EIO) {
			t.Errorf("%s: error %v, want %v", policy, err, unix.EIO)
		}
	}
}

func TestBinderNotSupported(t *testing.T) {
	t.Parallel()
	b := newBench(t, CountersAuto, fakekernel.HCAPort{})
	b.k.Refuse(fakekernel.GetCounterMode, unix.EOPNOTSUPP)
	b.k.Refuse(fakekernel.GetQPCounters, unix.EOPNOTSUPP)
	b.reconcile()
	b.reconcile()
	if sets := b.read(); len(sets) != 0 {
		t.Errorf("sets %v, want none", sets)
	}
	if n := strings.Count(b.log.String(), "the driver does not"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, b.log)
	}
}

func TestBinderBind(t *testing.T) {
	t.Parallel()
	b := newBench(t, CountersBind, fakekernel.HCAPort{})
	b.addQP(1, by(20))
	b.addQP(2, by(30))
	b.addQP(3, by(22)) // another process of the first pod
	b.addQP(4, by(10))
	b.addQP(5, kernel("ib_core"))
	b.reconcile()
	b.wantMode("manual")
	b.wantSets([]uint32{1, 3}, []uint32{2})
	b.addQP(6, by(21))
	before := b.k.Asked(fakekernel.SetCounters)
	b.reconcile()
	b.wantSets([]uint32{1, 3, 6}, []uint32{2})
	if n := b.k.Asked(fakekernel.SetCounters) - before; n != 1 {
		t.Errorf("%d queue pairs were bound, want the new one alone", n)
	}
	some, other := b.a.options.Pods.Pod(someUID), b.a.options.Pods.Pod(otherUID)
	if diff := cmp.Diff([]CounterSet[string]{of(1, some, 103), of(2, other, 201)}, b.read()); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}

	b.removeQP(2) // and with it the set of its pod
	b.addQP(7, by(30))
	b.reconcile()
	b.wantSets([]uint32{1, 3, 6}, []uint32{7})

	b.release()
	b.wantSets()
	b.wantMode("none")
}

// TestBinderBindRace has a queue pair end between the dump and its binding, and
// one bad one among many.
func TestBinderBindRace(t *testing.T) {
	t.Parallel()
	b := newBench(t, CountersBind, fakekernel.HCAPort{})
	b.addQP(1, by(20))
	b.reconcile()
	b.removeQP(1) // with the set, which the Binder still believes in
	b.addQP(2, by(20))
	p := b.ports[counterPort{"mlx5_3", 1}]
	c := b.k.RDMA()
	if err := p.bindQP(c, 1, 2, unknownPod(someUID)); err != nil {
		t.Error(err)
	}
	b.wantSets([]uint32{2})
	if err := p.bindQP(c, 1, 77, unknownPod(otherUID)); err != nil {
		t.Errorf("a queue pair that has ended: %v, want no error", err)
	}
}

// TestBinderNewRegistration has the driver of the device be loaded again.
func TestBinderNewRegistration(t *testing.T) {
	t.Parallel()
	b := newBench(t, CountersBind, fakekernel.HCAPort{})
	b.addQP(1, by(20))
	b.reconcile()
	if p := b.port("mlx5_3", hca+1, 1); len(p.bound)+len(p.sets)+len(p.pods) != 0 {
		t.Errorf("%+v is left of the earlier registration", p)
	}
	if err := b.Release(b.k.RDMA(), "mlx5_3", hca, 1); err != nil {
		t.Error(err)
	}
	b.wantSets([]uint32{1}) // not ours any more
}

// TestBinderWaitsForNoOther has a device not answer: others are worked on.
func TestBinderWaitsForNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, CountersAuto, fakekernel.HCAPort{})
		other := kernelOf(fakekernel.HCA{Ports: map[int]*fakekernel.HCAPort{1: {Counters: []rdmanl.CounterStatus{{Name: "out_of_buffer", Enabled: true}}}}})
		b.k.Delay(fakekernel.GetCounterMode, time.Hour, hca)
		blocked := make(chan error, 1)
		go func() { blocked <- b.Reconcile(b.k.RDMA(), "mlx5_3", hca, 1) }()
		synctest.Wait()
		begun := time.Now()
		if err := b.Reconcile(other.RDMA(), "mlx5_4", hca, 1); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("another device waited %v", waited)
		}
		if err := <-blocked; err != nil {
			t.Error(err)
		}
	})
}
