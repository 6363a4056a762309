package exporter

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"railhead/internal/counters"
	"railhead/internal/inventory"
	"railhead/internal/kernel/fakekernel"
)

// TestBlocked has a PF that does not answer for 30 s. Its series end in time,
// the other functions of its card are read a little later, and the other card
// as ever.
func TestBlocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, 1, func(c *Config) { c.Now = nil })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := workers{}
		defer w.stop()
		defer cancel()
		w.keep(ctx, r.e.apply(r.snap))
		synctest.Wait()
		if reason := r.e.notReady(); reason != "" {
			t.Fatalf("not ready: %s", reason)
		}
		sick, neighbour, far := `rdma_out_of_buffer_total{device="mlx5_0"`, `rdma_port_receive_bytes_total{device="mlx5_1"`, `rdma_port_receive_bytes_total{device="mlx5_3"`
		has := func(when string, wantSick, wantNeighbour, wantFar string) {
			t.Helper()
			synctest.Wait()
			for series, want := range map[string]string{sick: wantSick, neighbour: wantNeighbour, far: wantFar} {
				if got := r.value(series); got != want {
					t.Errorf("%s: %s %q, want %q", when, series, got, want)
				}
			}
		}
		time.Sleep(time.Minute)
		has("at first", "1000", "1000", "1000")
		blocked := time.Now()
		r.node.own.Delay(fakekernel.GetPort, 30*time.Second, 0)
		r.node.own.Delay(fakekernel.GetStatistics, 30*time.Second, 0)
		r.node.counted.Store(2000)
		for time.Since(blocked) < 45*time.Second {
			time.Sleep(time.Second)
			synctest.Wait()
			if since := time.Since(blocked); since > 7500*time.Millisecond && r.value(far) != "2000" {
				t.Fatalf("after %v the other card is not read", since)
			}
			if since := time.Since(blocked); since > 17500*time.Millisecond && r.value(neighbour) != "2000" {
				t.Fatalf("after %v the other function is not read", since)
			}
		}
		has("after 45 s", "", "2000", "2000")
		if got := r.value(`rdma_exporter_device_quarantined{device="mlx5_0",reason="blocked"`); got != "1" {
			t.Errorf("it is not told that the device blocks: %q", got)
		}
		if age, err := strconv.ParseFloat(r.value(`rdma_exporter_sample_age_seconds{device="mlx5_0"`), 64); err != nil || age < 25 {
			t.Errorf("sample age %v", age)
		}
		r.node.own.Delay(fakekernel.GetPort, 0)
		r.node.own.Delay(fakekernel.GetStatistics, 0)
		time.Sleep(12 * time.Minute)
		has("when it answers again", "2000", "2000", "2000")
		if got := r.value(`rdma_exporter_device_quarantined{device="mlx5_0",reason="blocked"`); got != "" {
			t.Error("it is still said to block")
		}
	})
}

// TestRefused has the firmware of a PF fail: what else it has is still read,
// and so are all others; the sick part is left alone ever longer.
func TestRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 1, nil)
	r.sample(0)
	r.node.own.Refuse(fakekernel.GetStatistics, syscall.EREMOTEIO, 0)
	asked := r.node.own.Asked(fakekernel.GetStatistics)
	const minutes = 60
	for range minutes * 4 {
		r.sample(15*time.Second, counters.Errors)
	}
	r.want(map[string]string{
		`rdma_out_of_buffer_total{device="mlx5_0"`:                                        "",
		`rdma_out_of_buffer_total{device="mlx5_1"`:                                        "1000",
		`rdma_rx_pause_total{device="mlx5_0"`:                                             "1000",
		`rdma_exporter_device_quarantined{device="mlx5_0",reason="EREMOTEIO"`:             "1",
		`rdma_exporter_read_errors_total{device="mlx5_0",source="rdma",errno="EREMOTEIO"`: "10",
		`rdma_exporter_collector_success{collector="errors"`:                              "0",
	})
	if asked = r.node.own.Asked(fakekernel.GetStatistics) - asked; asked != minutes*4+10 {
		t.Errorf("asked %d times, want %d: once each time for mlx5_1, and 10 times for mlx5_0", asked, minutes*4+10)
	}
	r.node.own.Refuse(fakekernel.GetStatistics, 0)
	for range 41 {
		r.sample(15*time.Second, counters.Errors)
	}
	r.want(map[string]string{
		`rdma_out_of_buffer_total{device="mlx5_0"`:                            "1000",
		`rdma_exporter_device_quarantined{device="mlx5_0",reason="EREMOTEIO"`: "",
		`rdma_exporter_collector_success{collector="errors"`:                  "1",
	})
}

// TestUsersRefused has the kernel not tell who uses a device: its counters are
// read all the same, and it is not asked for ever.
func TestUsersRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 1, nil)
	r.node.own.Refuse(fakekernel.GetPDs, syscall.EINVAL)
	for range 12 {
		r.sample(5*time.Second, counters.Traffic)
	}
	r.want(map[string]string{
		`rdma_port_receive_bytes_total{device="mlx5_1"`:                        "1000",
		`rdma_exporter_device_quarantined{device="mlx5_1",reason="EINVAL"`:     "1",
		`rdma_exporter_read_errors_total{device="mlx5_1",source="attribution"`: "4",
	})
}

// TestNamespaceGone samples a pod that ended before the inventory knows.
func TestNamespaceGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 1, nil)
	r.node.give(t, 0, 1, "a")
	r.changed()
	r.sample(0)
	r.node.take(t, 0)
	r.sample(5 * time.Second)
	if text := r.scrape(); strings.Contains(text, `rdma_port_receive_bytes_total{device="mlx5_1"`) || strings.Contains(text, "rdma_pod_receive_bytes_total{") {
		t.Error("series of a device that is gone are there")
	}
	r.want(map[string]string{`rdma_exporter_read_errors_total{`: "", `rdma_exporter_collector_success{collector="traffic"`: "1"})
}

// TestPodsComeAndGo gives a VF to 1,000 pods in sequence, 100 a second, and
// samples every 100 ms: no more is kept for the last than for the first. With
// RAILHEAD_NIGHTLY=1 it does so with 10,000.
func TestPodsComeAndGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 1, nil)
	pods := 1000
	if os.Getenv("RAILHEAD_NIGHTLY") == "1" {
		pods = 10_000
	}
	var first, last size
	for i := range pods {
		pod := fmt.Sprintf("pod-%d", i)
		r.node.give(t, 0, 1, pod)
		r.changed()
		r.sample(5 * time.Millisecond)
		r.node.counted.Add(3)
		r.sample(5*time.Millisecond, counters.Traffic)
		if i%1000 == 10 {
			r.want(map[string]string{
				`rdma_pod_receive_bytes_total{`: "3", `rdma_pod_device_info{pod_namespace="default",pod_name="` + pod + `"`: "1",
				`rdma_exporter_pods{attribution="exclusive"`: "1",
			})
		}
		if last = sizeOf(r.e); i == 10 {
			first = last
		}
		r.node.take(t, 0)
	}
	if first != last {
		t.Errorf("it keeps %+v at last, and %+v at first", last, first)
	}
}

// size is how much an exporter keeps.
type size struct{ nics, devices, sections, families, lines, shares, begun, status int }

func sizeOf(e *Exporter) size {
	s := size{nics: len(e.nics), sections: len(*e.store.sections.Load()), families: len(e.catalog.families()), status: len(e.status.unknown)}
	for _, n := range e.nics {
		for _, d := range n.list() {
			s.devices++
			for _, l := range d.lines {
				s.lines += len(l.list)
			}
			for _, share := range d.shares.of {
				s.begun++
				s.shares += len(share.lines)
			}
		}
	}
	return s
}

// TestNothingToRead has no devices, and a device that no tier is wanted of.
func TestNothingToRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 1, func(c *Config) { c.Metrics = Filter{Exclude: ".*"} })
	r.e.sample(t.Context(), &inventory.Snapshot{}, r.clock.now(), nil)
	r.sample(5 * time.Second)
	if asked := r.node.own.Asked(fakekernel.GetStatistics); asked != 0 {
		t.Errorf("statistics that nobody wants were asked for %d times", asked)
	}
	if text := r.scrape(); text != "" {
		t.Errorf("it exposes:\n%s", text)
	}
	if reason := r.e.notReady(); reason != "" {
		t.Errorf("not ready: %s", reason)
	}
}
