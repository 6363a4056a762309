package exporter

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"railhead/internal/counters"
	"railhead/internal/golden"
	"railhead/internal/inventory"
)

// rig is an exporter of a testNode, whose time the test makes pass.
type rig struct {
	t     *testing.T
	node  *testNode
	clock *clock
	e     *Exporter
	snap  *inventory.Snapshot
}

func newRig(t *testing.T, cards, vfs int, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, node: newTestNode(t, cards, vfs), clock: newClock()}
	r.node.counted.Store(1000)
	r.restart(change)
	return r
}

// restart makes a new exporter of the same node.
func (r *rig) restart(change func(*Config)) {
	r.e = newTestExporter(r.t, func(c *Config) {
		c.Node, c.Attributor, c.Now = r.node, r.node.attributor(), r.clock.now
		c.Metrics = Filter{Exclude: "(go|process)_.*|rdma_exporter_collect_duration_seconds|rdma_exporter_build_info"}
		if change != nil {
			change(c)
		}
	})
	r.changed()
}

// changed tells the exporter what the node has now.
func (r *rig) changed() { r.snap = r.node.snapshot(r.t) }

// sample lets time pass and samples.
func (r *rig) sample(d time.Duration, tiers ...counters.Tier) {
	if tiers == nil {
		tiers = []counters.Tier{counters.Traffic, counters.Errors, counters.Slow}
	}
	r.e.sample(r.t.Context(), r.snap, r.clock.pass(d), tiers)
}

func (r *rig) scrape() string { return get(r.t, r.e.Handler(), "/metrics", nil).text }

// value is that of the one series whose line begins as given; empty where there
// is none.
func (r *rig) value(series string) string {
	r.t.Helper()
	found := regexp.MustCompile("(?m)^"+regexp.QuoteMeta(series)+`\S* (\S+)$`).FindAllStringSubmatch(r.scrape(), -1)
	if len(found) > 1 {
		r.t.Fatalf("%d series begin with %s", len(found), series)
	}
	if len(found) == 0 {
		return ""
	}
	return found[0][1]
}

// want compares the values of series.
func (r *rig) want(values map[string]string) {
	r.t.Helper()
	for series, want := range values {
		if got := r.value(series); got != want {
			r.t.Errorf("%s %q, want %q", series, got, want)
		}
	}
}

// TestSample exposes a PF, a VF, and a VF that a pod has.
func TestSample(t *testing.T) {
	t.Parallel()
	for name, modes := range map[string][]Compat{
		"node.txt": nil, "node_spiderpool.txt": {Spiderpool}, "node_node_exporter.txt": {NodeExporter},
	} {
		r := newRig(t, 1, 2, func(c *Config) { c.Compat, c.NodeName = modes, "worker-1" })
		r.node.give(t, 0, 2, "pod-a")
		r.changed()
		r.sample(0)
		r.node.counted.Add(500)
		r.sample(5 * time.Second)
		r.clock.pass(1500 * time.Millisecond)
		text := regexp.MustCompile("(?m)^# HELP .*\n").ReplaceAllString(r.scrape(), "") // which are the business of counters
		golden.Equal(t, "testdata/"+name, text)
		seen := map[string]bool{}
		for line := range strings.Lines(text) {
			if series, _, _ := strings.Cut(line, "} "); !strings.HasPrefix(line, "#") && seen[series] {
				t.Errorf("%s: there twice: %s", name, line)
			} else {
				seen[series] = true
			}
		}
		if len(r.e.tiers) != 3 {
			t.Errorf("tiers %v", r.e.tiers)
		}
	}
}

// TestNamespacesAreLetGo holds no namespace of a pod between two samples.
func TestNamespacesAreLetGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, 3, nil)
	for vf := range 3 {
		r.node.give(t, 0, 1+vf, "pod-"+string(rune('a'+vf)))
	}
	r.changed()
	for range 4 {
		r.sample(5 * time.Second)
		for path, n := range r.node.holding {
			if n != 0 {
				t.Errorf("%s is held %d times after a sample", path, n)
			}
		}
	}
	if r.node.opened != 12 {
		t.Errorf("namespaces were opened %d times, want once for each of 3 pods and 4 samples", r.node.opened)
	}
}

// TestPodCountsFromZero gives a VF to one pod after another.
func TestPodCountsFromZero(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 1, nil)
	const device, a, b = `rdma_port_receive_bytes_total{device="mlx5_1"`,
		`rdma_pod_receive_bytes_total{pod_namespace="default",pod_name="a"`, `rdma_pod_receive_bytes_total{pod_namespace="default",pod_name="b"`
	r.sample(0)
	r.want(map[string]string{device: "1000", a: "", b: ""})
	r.node.give(t, 0, 1, "a")
	r.changed()
	r.sample(5 * time.Second)
	r.want(map[string]string{device: "1000", a: "0", b: ""})
	r.node.counted.Add(250)
	r.sample(5 * time.Second)
	r.want(map[string]string{device: "1250", a: "250", b: ""})
	r.node.take(t, 0)
	r.node.counted.Add(4)
	r.changed()
	r.sample(5 * time.Second)
	r.want(map[string]string{device: "1254", a: "", b: ""})
	r.node.give(t, 0, 1, "b")
	r.changed()
	r.node.counted.Add(30)
	r.sample(5 * time.Second)
	r.node.counted.Add(7)
	r.sample(5 * time.Second)
	r.want(map[string]string{device: "1291", a: "", b: "7", `rdma_exporter_pods{attribution="exclusive"`: "1"})
}

// TestRestart starts an exporter anew: the kernel's series go on, those of pods
// begin again.
func TestRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 1, nil)
	r.node.give(t, 0, 1, "a")
	r.changed()
	r.sample(0)
	r.node.counted.Add(100)
	r.sample(5 * time.Second)
	const device, pod = `rdma_port_receive_bytes_total{device="mlx5_1"`, `rdma_pod_receive_bytes_total{pod_namespace="default",pod_name="a"`
	r.want(map[string]string{device: "1100", pod: "100"})
	r.restart(nil)
	r.node.counted.Add(1)
	r.sample(5 * time.Second)
	r.want(map[string]string{device: "1101", pod: "0"})
	open := get(t, r.e.Handler(), "/metrics", http.Header{"Accept": {"application/openmetrics-text;version=1.0.0"}}).text
	if !strings.Contains(open, `attribution="exclusive"} 1700000010`+"\n") {
		t.Error("the pod's counters do not say that they began at the restart")
	}
}

// TestGone ends the series of a device with the snapshot that lacks it.
func TestGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, 1, nil)
	r.sample(0)
	if !strings.Contains(r.scrape(), `device="mlx5_3"`) {
		t.Fatal("mlx5_3 is not there")
	}
	s := *r.snap
	s.Devices = s.Devices[:len(s.Devices)-1]
	r.e.apply(&s)
	if text := r.scrape(); strings.Contains(text, `device="mlx5_3"`) || !strings.Contains(text, `device="mlx5_2"`) {
		t.Error("mlx5_3 is still there, or mlx5_2 is not")
	}
}

func TestDeviceFilter(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, 1, func(c *Config) { c.Devices = Filter{Include: "mlx5_[01]", Exclude: "mlx5_1"} })
	r.sample(0)
	if text := r.scrape(); !strings.Contains(text, `device="mlx5_0"`) || strings.Contains(text, `device="mlx5_1"`) || strings.Contains(text, `device="mlx5_2"`) {
		t.Errorf("other devices than mlx5_0 are there:\n%s", text)
	}
}
