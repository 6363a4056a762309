package exporter

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"railhead/internal/counters"
	"railhead/internal/golden"
)

func label(name, value string) counters.Label { return counters.Label{Name: name, Value: value} }

// ofEveryKind is a catalog and pages with families of each kind, series that
// come and go in several pages, odd label values, scales and a creation time.
func ofEveryKind() (*catalog, []*page) {
	received := &counters.Family{Name: "rdma_port_receive_bytes", Unit: "bytes", Help: "RDMA bytes received."}
	paused := &counters.Family{Name: "rdma_pause_duration_seconds", Unit: "seconds", Help: "Time paused."}
	pod := &counters.Family{Name: "rdma_pod_receive_bytes", Unit: "bytes", Help: `A pod's share of "bytes".`}
	speed := &counters.Family{Name: "rdma_port_speed_bytes_per_second", Kind: counters.Gauge, Unit: "bytes_per_second", Help: "Speed\nof the link, with a \\."}
	info := &counters.Family{Name: "rdma_device_info", Kind: counters.Info, Help: "A device."}
	odd := &counters.Family{Name: "rdma_vendor_thing", Kind: counters.Unknown, Help: "A counter that only the driver knows."}
	c := newCatalog([]*counters.Family{received, info, speed, pod, paused}, filter{})
	on := func(f *counters.Family, scale float64, labels ...counters.Label) *line {
		return newLine(c.of(f), labels, scale)
	}
	since := func(l *line, at int64) *line {
		l.since = at
		return l
	}
	one, two := label("device", "mlx5_0"), label("device", "mlx5_1")
	first := &page{rows: []row{
		{on(received, 4, one, label("port", "1"), label("netdev", "")), 250},
		{on(info, 1, one, label("board_id", "MT_\"0\"\\\n€\xff")), 1},
		{since(on(pod, 1, label("pod_name", "a"), one), 1700000000500), 7},
		{since(on(pod, 1, label("pod_name", "b"), one), 1700000001000), 0},
		{on(paused, 1e-6, one), 15},
		{on(odd, 1, one), math.MaxUint64},
	}}
	second := &page{rows: []row{
		{on(received, 4, two, label("port", "1")), 1},
		{on(speed, 1, two), 12500000000},
		{on(paused, 1e-6, two), 2_500_000},
	}}
	return c, []*page{first, second}
}

func rendered(c *catalog, pages []*page, isOpen bool) []byte {
	r := &renderer{pages: pages}
	r.render(c.families(), isOpen)
	return r.out
}

func TestRender(t *testing.T) {
	t.Parallel()
	c, pages := ofEveryKind()
	golden.Equal(t, "testdata/every_kind.txt", rendered(c, pages, false))
	golden.Equal(t, "testdata/every_kind.openmetrics", append(rendered(c, pages, true), "# EOF\n"...))
}

// TestRenderAgain wants the same from buffers that were used, and nothing of
// earlier pages in them.
func TestRenderAgain(t *testing.T) {
	t.Parallel()
	c, pages := ofEveryKind()
	want := rendered(c, pages, false)
	var pool renderers
	for range 3 {
		r := pool.get()
		r.pages = append(r.pages, pages...)
		r.render(c.families(), false)
		if diff := cmp.Diff(string(want), string(r.out)); diff != "" {
			t.Error(diff)
		}
		pool.put(r)
		if len(r.out)+len(r.pages)+len(r.runs) != 0 {
			t.Errorf("a renderer went back with %d bytes, %d pages, %d runs", len(r.out), len(r.pages), len(r.runs))
		}
	}
}

// TestRenderLate exposes families that came while devices were read, by name
// behind those of the table.
func TestRenderLate(t *testing.T) {
	t.Parallel()
	c := newCatalog([]*counters.Family{{Name: "z", Kind: counters.Gauge}, {Name: "y", Kind: counters.Gauge}}, filter{})
	p := &page{}
	for _, name := range []string{"d", "y", "b", "c", "z"} {
		p.rows = append(p.rows, row{newLine(c.of(&counters.Family{Name: name, Kind: counters.Gauge}), nil, 1), 1})
	}
	var names []string
	for line := range strings.Lines(string(rendered(c, []*page{p}, false))) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, strings.Fields(line)[0])
		}
	}
	if diff := cmp.Diff([]string{"z", "y", "b", "c", "d"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestFamilies holds all families of the table against the rules of Prometheus
// (promtool check metrics), and against its parser.
func TestFamilies(t *testing.T) {
	t.Parallel()
	out := exposition(nil)
	problems, err := promlint.New(bytes.NewReader(out)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.Contains(p.Metric, "_bits_") { // a ratio of bits in error, which is what links are judged by, is one of bits
			continue
		}
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestCompatFamilies parses the families of other exporters too, which are as
// they are.
func TestCompatFamilies(t *testing.T) {
	t.Parallel()
	modes := []Compat{Spiderpool, NodeExporter}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := parser.TextToMetricFamilies(bytes.NewReader(exposition(modes)))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rdma_vport_speed_mbps_total", "rdma_device_tos_total", "node_infiniband_info", "node_infiniband_port_data_received_bytes_total"} {
		if parsed[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if parsed["rdma_vport_speed_mbps"] != nil {
		t.Error("rdma_vport_speed_mbps is there beside its counter")
	}
}

// exposition has one series of each family.
func exposition(modes []Compat) []byte {
	c := newCatalog(families(modes), filter{})
	p := &page{}
	for _, f := range c.families() {
		if f.Kind != counters.Histogram {
			p.rows = append(p.rows, row{newLine(f, []counters.Label{label("device", "mlx5_0")}, 1), 1})
		}
	}
	return rendered(c, []*page{p}, false)
}

// FuzzLabel reads what was written with the parser of Prometheus.
func FuzzLabel(f *testing.F) {
	for _, value := range []string{"mlx5_0", "", "a\"b\\c\nd", "€", "\xff\xfe", "a\x00b", "}", ",", " "} {
		f.Add(value, uint64(math.MaxUint64), 1e-6)
	}
	f.Fuzz(func(t *testing.T, value string, sample uint64, scale float64) {
		if math.IsNaN(scale) || math.IsInf(scale, 0) || scale <= 0 || scale > 1e9 || scale < 1e-12 {
			t.Skip("no kernel counts in such a unit")
		}
		c := newCatalog(nil, filter{})
		l := newLine(c.of(&counters.Family{Name: "x", Kind: counters.Gauge, Help: value}), []counters.Label{label("a", value), label("b", "")}, scale)
		parser := expfmt.NewTextParser(model.LegacyValidation)
		parsed, err := parser.TextToMetricFamilies(bytes.NewReader(rendered(c, []*page{{rows: []row{{l, sample}}}}, false)))
		if err != nil {
			t.Fatal(err)
		}
		metric := parsed["x"].GetMetric()[0]
		got := ""
		for _, l := range metric.GetLabel() {
			if l.GetName() != "a" {
				t.Errorf("label %s=%q", l.GetName(), l.GetValue())
			}
			got = l.GetValue()
		}
		if want := string([]rune(value)); got != want { // with U+FFFD for each byte that is not UTF-8
			t.Errorf("label %q, want %q", got, want)
		}
		want := float64(sample) * scale
		if whole := math.Round(scale); whole == scale && sample > math.MaxUint64/uint64(scale) {
			return // more than any counter of the kernel can count in the unit
		}
		if value := metric.GetGauge().GetValue(); math.Abs(value-want) > 1e-6*want {
			t.Errorf("value %v, want %v", value, want)
		}
	})
}
