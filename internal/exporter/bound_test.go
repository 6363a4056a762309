package exporter

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
)

// The UIDs of pods, and the processes and threads in them. Process 10 is the
// host's.
const (
	uidA, uidB             = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
	onHost                 = 10
	pidA, threadOfA        = 100, 101
	pidB, secondOfB, ended = 200, 201, 300
)

// boundRig is a rig of a card whose driver counts queue pairs apart. A set of
// counters gains 1 for each queue pair in it at each tick, and the device as
// many as all of them and 1 more.
type boundRig struct {
	*rig
	log strings.Builder
}

func newBoundRig(t *testing.T, policy attribution.CounterPolicy, vfs int) *boundRig {
	t.Helper()
	b := &boundRig{}
	b.rig = newRig(t, 1, vfs, func(c *Config) {
		binder, err := attribution.NewBinder(policy, c.Attributor, slog.New(slog.NewTextHandler(&b.log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		c.Binder, c.Logger = binder, slog.New(slog.NewTextHandler(&b.log, nil))
	})
	addThread(t, b.node.dir, pidA, pidA, uidA)
	addThread(t, b.node.dir, threadOfA, pidA, uidA)
	addThread(t, b.node.dir, pidB, pidB, uidB)
	addThread(t, b.node.dir, secondOfB, secondOfB, uidB)
	addThread(t, b.node.dir, onHost, onHost, "")
	b.counting()
	return b
}

// counting makes the port count. What a queue pair has counted is the time
// since it began.
func (b *boundRig) counting() {
	begun := map[uint32]uint64{}
	value := func(qpn uint32) uint64 {
		if _, ok := begun[qpn]; !ok {
			begun[qpn] = b.node.counted.Load()
		}
		return b.node.counted.Load() - begun[qpn]
	}
	b.change(func(h *fakekernel.HCA) {
		p := h.Ports[1]
		p.Counters = append(p.Counters, rdmanl.CounterStatus{Name: "out_of_sequence", Enabled: true}, rdmanl.CounterStatus{Name: "req_rnr_retries_exceeded", Enabled: true})
		p.QPNames = []string{"out_of_buffer", "out_of_sequence", "req_rnr_retries_exceeded", "rdma_rx_bytes", "unheard_of"}
		p.QPValues = func(set rdmanl.QPCounter, dst []uint64) {
			clear(dst)
			for _, qpn := range set.QPNs {
				for i := range dst {
					dst[i] += value(qpn)
				}
			}
		}
	})
}

func (b *boundRig) change(change func(*fakekernel.HCA)) { b.node.own.ChangeHCA(0, change) }

// open has processes and threads open the device.
func (b *boundRig) open(pids ...int) {
	b.change(func(h *fakekernel.HCA) {
		for _, pid := range pids {
			h.Contexts = append(slices.Clip(h.Contexts), rdmanl.Context{Owner: rdmanl.Owner{PID: pid}})
		}
	})
}

// addPairs adds a queue pair of each process; they are numbered as the processes.
func (b *boundRig) addPairs(pids ...int) {
	b.change(func(h *fakekernel.HCA) {
		for _, pid := range pids {
			h.AddQP(rdmanl.QP{Number: uint32(pid), Port: 1, Type: "RC", State: "RTS", Owner: rdmanl.Owner{PID: pid}})
		}
	})
}

// tick lets time pass and everything count, and samples.
func (b *boundRig) tick(by uint64) {
	b.node.counted.Add(by)
	b.sample(15 * time.Second)
}

func (b *boundRig) mode() string {
	b.t.Helper()
	c := b.node.own.RDMA()
	defer c.Close()
	m, err := c.CounterMode(0, 1)
	if err != nil {
		b.t.Fatal(err)
	}
	return m.Mode
}

// changes is how often something was changed on a device.
func (b *boundRig) changes() int {
	return b.node.own.Asked(fakekernel.SetCounters) + b.node.own.Asked(fakekernel.DeleteCounter)
}

// share is a pod's share in what the device has.
func share(family, uid, method string) string {
	return fmt.Sprintf(`rdma_pod_%s{pod_name=%q,device="mlx5_0",port="1",attribution=%q`, family, uid, method)
}

// TestBound has two pods on one device, the queue pairs of which are counted
// apart: from zero, by the driver's names and those for all drivers.
func TestBound(t *testing.T) {
	t.Parallel()
	for _, policy := range []attribution.CounterPolicy{attribution.CountersAuto, attribution.CountersBind} {
		b := newBoundRig(t, policy, 0)
		b.open(onHost, pidA, pidB, secondOfB)
		b.tick(1000)
		b.addPairs(onHost, threadOfA, pidB, secondOfB, ended)
		b.tick(0) // binds them, where that takes the exporter
		b.tick(7)
		b.sample(0, counters.Traffic) // bytes are told with the traffic
		b.want(map[string]string{
			share("out_of_buffer_total", uidA, "qp_counter"):                  "7",
			share("out_of_buffer_total", uidB, "qp_counter"):                  "14",
			share("out_of_sequence_total", uidA, "qp_counter"):                "7",
			share("retries_exceeded_total", uidA, "qp_counter"):               "7",
			share("receive_bytes_total", uidB, "qp_counter"):                  "14",
			`rdma_exporter_pods{attribution="qp_counter"`:                     "2",
			`rdma_exporter_pods{attribution="shared"`:                         "0",
			`rdma_pod_device_info{pod_name="` + uidA + `",device="mlx5_0"`:    "1",
			`rdma_exporter_collector_success{collector="errors"`:              "1",
			`rdma_exporter_read_errors_total{`:                                "",
			share("out_of_buffer_total", uidA, string(attribution.SoleUser)):  "",
			share("out_of_buffer_total", uidA, string(attribution.Exclusive)): "",
		})
		if n := strings.Count(b.scrape(), `rdma_pod_out_of_buffer_total{`); n != 2 {
			t.Errorf("%s: %d pods have a share, want 2: none is the host's", policy, n)
		}
		b.change(func(h *fakekernel.HCA) { h.Contexts = h.Contexts[:2] })
		b.tick(1)
		if strings.Contains(b.scrape(), uidB) {
			t.Errorf("%s: the series of a pod are there that has left the device", policy)
		}
		b.e.Release()
		for _, pid := range []int{onHost, threadOfA, pidB, secondOfB, ended} {
			b.change(func(h *fakekernel.HCA) { h.RemoveQP(uint32(pid)) })
		}
		if mode := b.mode(); mode != "none" {
			t.Errorf("%s: the mode is %q at the end, want it as it was", policy, mode)
		}
		if b.log.Len() != 0 {
			t.Errorf("%s: logged, want nothing: %s", policy, &b.log)
		}
	}
}

// TestBoundAddsUp wants what a pod has by all methods to be what the device
// counted while the pod was alone.
func TestBoundAddsUp(t *testing.T) {
	t.Parallel()
	b := newBoundRig(t, attribution.CountersAuto, 0)
	b.open(pidA)
	b.addPairs(threadOfA) // before queue pairs are counted apart
	b.tick(1000)
	b.tick(10)
	b.want(map[string]string{share("out_of_buffer_total", uidA, "sole_user"): "10"})
	b.addPairs(pidA)
	b.tick(0)
	b.tick(3)
	b.tick(4)
	b.sample(0, counters.Traffic)
	b.want(map[string]string{
		share("out_of_buffer_total", uidA, "sole_user"):  "10",
		share("out_of_buffer_total", uidA, "qp_counter"): "7",
		share("receive_bytes_total", uidA, "qp_counter"): "7",
		`rdma_out_of_buffer_total{device="mlx5_0"`:       "2017",
	})
}

// TestBoundByOthers reads what an administrator had bound, and changes nothing.
func TestBoundByOthers(t *testing.T) {
	t.Parallel()
	for _, policy := range []attribution.CounterPolicy{attribution.CountersOff, attribution.CountersAuto, attribution.CountersBind} {
		b := newBoundRig(t, policy, 0)
		b.change(func(h *fakekernel.HCA) { h.Ports[1].Mode = rdmanl.CounterMode{Mode: "auto", ByType: true, ByPID: true} })
		b.open(pidA, pidB)
		b.tick(1000)
		b.addPairs(threadOfA, pidB)
		b.tick(0)
		b.tick(5)
		b.want(map[string]string{share("out_of_buffer_total", uidA, "qp_counter"): "5", share("out_of_buffer_total", uidB, "qp_counter"): "5"})
		b.e.Release()
		if n, mode := b.changes(), b.mode(); n != 0 || mode != "auto" {
			t.Errorf("%s: changed something %d times, and the mode is %q", policy, n, mode)
		}
	}
}

// TestBoundOff changes nothing where nobody has.
func TestBoundOff(t *testing.T) {
	t.Parallel()
	b := newBoundRig(t, attribution.CountersOff, 1)
	b.open(pidA, pidB)
	b.addPairs(pidA, pidB)
	for range 3 {
		b.tick(5)
	}
	b.e.Release()
	if n, mode := b.changes(), b.mode(); n != 0 || mode != "none" {
		t.Errorf("changed something %d times, and the mode is %q", n, mode)
	}
	b.want(map[string]string{`rdma_exporter_pods{attribution="shared"`: "2", share("out_of_buffer_total", uidA, "qp_counter"): ""})
}

// TestBoundExclusive gives a VF to a pod, where nothing is to be told apart: it
// is left as it is there.
func TestBoundExclusive(t *testing.T) {
	t.Parallel()
	b := newBoundRig(t, attribution.CountersAuto, 1)
	b.node.give(t, 0, 1, "a")
	b.changed()
	b.tick(5)
	pod := b.node.pods[b.node.path("a")]
	if n := pod.Asked(fakekernel.SetCounters) + pod.Asked(fakekernel.GetQPCounters); n != 0 {
		t.Errorf("the pod's device was asked %d times about queue pairs that are counted apart", n)
	}
	b.e.Release()
	if n := b.node.opened; n != 1 {
		t.Errorf("the pod's namespace was opened %d times, want once for the sample", n)
	}
}

// TestBoundRefused may not change the device: its counters and users are told
// all the same.
func TestBoundRefused(t *testing.T) {
	t.Parallel()
	b := newBoundRig(t, attribution.CountersAuto, 0)
	b.node.own.Refuse(fakekernel.SetCounters, unix.EPERM)
	b.open(pidA)
	for range 8 {
		b.tick(10)
	}
	b.want(map[string]string{
		`rdma_out_of_buffer_total{device="mlx5_0"`:                                           "1080",
		share("out_of_buffer_total", uidA, "sole_user"):                                      "70",
		`rdma_exporter_read_errors_total{device="mlx5_0",source="qp_counters",errno="EPERM"`: "4",
		`rdma_exporter_collector_success{collector="errors"`:                                 "0",
		`rdma_exporter_collector_success{collector="attribution"`:                            "1",
	})
}

// TestReleaseIsBounded has a device not answer at the end: the other card is put
// back, and nobody waits for ever.
func TestReleaseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, 0, nil)
		binder, err := attribution.NewBinder(attribution.CountersAuto, r.node.attributor(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		r.restart(func(c *Config) { c.Binder = binder })
		r.sample(0)
		for device := range uint32(2) {
			if got := modeOf(t, r.node.own, device); got != "auto" {
				t.Fatalf("device %d: mode %q", device, got)
			}
		}
		r.node.own.Delay(fakekernel.GetCounterMode, time.Hour, 0)
		begun := time.Now()
		r.e.Release()
		if took := time.Since(begun); took != releasePatience {
			t.Errorf("it took %v, want %v", took, releasePatience)
		}
		if got := modeOf(t, r.node.own, 1); got != "none" {
			t.Errorf("the other device: mode %q, want none", got)
		}
		r.node.own.Delay(fakekernel.GetCounterMode, 0)
		r.sample(15*time.Second, counters.Errors)
		if got := modeOf(t, r.node.own, 1); got != "none" {
			t.Errorf("a sample after the end: mode %q, want none", got)
		}
		time.Sleep(2 * time.Hour)
	})
}

func modeOf(t *testing.T, k *fakekernel.Kernel, device uint32) (mode string) {
	t.Helper()
	k.Look(func(f fakekernel.Facts) { mode = f.HCAs[device].Ports[1].Mode.Mode })
	return mode
}

// addThread writes what proc has of a thread of a process, which is the host's
// where there is no pod.
func addThread(t *testing.T, dir string, tid, pid int, uid string) {
	t.Helper()
	dir = fmt.Sprintf("%s/proc/%d", dir, tid)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cgroup := "0::/system.slice/sshd.service\n"
	if uid != "" {
		cgroup = "0::/kubepods/besteffort/pod" + uid + "/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
	}
	writeFile(t, dir, "stat", fmt.Sprintf("%d (python) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0\n", tid))
	writeFile(t, dir, "status", fmt.Sprintf("Name:\tpython\nTgid:\t%d\n", pid))
	writeFile(t, dir, "cgroup", cgroup)
}
