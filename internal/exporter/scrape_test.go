package exporter

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"railhead/internal/counters"
)

// newTestExporter returns an exporter without devices, at a moment of its own.
func newTestExporter(t *testing.T, change func(*Config)) *Exporter {
	t.Helper()
	config := Config{
		Intervals: DefaultIntervals(),
		Version:   "1.2.3",
		Now:       func() time.Time { return time.Unix(1_700_000_000, 0) },
	}
	if change != nil {
		change(&config)
	}
	e, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// withPages serves pages from a section.
func withPages(e *Exporter, c *catalog, pages []*page) {
	e.catalog = c
	for _, name := range []string{"rdma_exporter_sample_age_seconds"} {
		c.of(&counters.Family{Name: name})
	}
	var sections []*section
	for _, p := range pages {
		s := &section{}
		s.publish(map[part]*page{trafficPart: p})
		sections = append(sections, s)
	}
	e.store.arrange(sections)
}

// answer is what a handler says.
type answer struct {
	status int
	header http.Header
	text   string
}

func get(t *testing.T, h http.Handler, path string, header http.Header) answer {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	for name := range header {
		req.Header.Set(name, header.Get(name))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	var from io.Reader = w.Body
	if w.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		from = z
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return answer{w.Code, w.Header(), string(text)}
}

// TestNegotiation asks as clients do.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	e := newTestExporter(t, nil)
	c, pages := ofEveryKind()
	withPages(e, c, pages)
	tests := []struct {
		name             string
		accept, encoding string
		isOpen, isZipped bool
	}{
		{"curl", "*/*", "", false, false},
		{"nothing said", "", "identity", false, false},
		{"Prometheus 2", "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "gzip", true, true},
		{"Prometheus with native histograms", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2", "gzip", true, true},
		{"protobuf, else text", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;version=0.0.4;q=0.2", "", false, false},
		{"no gzip", "text/plain", "br, gzip;q=0", false, false},
		{"gzip among others", "text/plain", "deflate, GZIP;q=0.5", false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := get(t, e.Handler(), "/metrics", http.Header{"Accept": {tt.accept}, "Accept-Encoding": {tt.encoding}})
			text := r.text
			if isOpen := strings.HasPrefix(r.header.Get("Content-Type"), "application/openmetrics-text"); isOpen != tt.isOpen {
				t.Errorf("Content-Type %s", r.header.Get("Content-Type"))
			}
			if ends := strings.HasSuffix(text, "# EOF\n"); ends != tt.isOpen {
				t.Errorf("it ends with # EOF: %v", ends)
			}
			if isZipped := r.header.Get("Content-Encoding") == "gzip"; isZipped != tt.isZipped {
				t.Errorf("Content-Encoding %q", r.header.Get("Content-Encoding"))
			}
			if !strings.Contains(text, `rdma_port_receive_bytes_total{device="mlx5_0",port="1"} 1000`) || !strings.Contains(text, "rdma_exporter_build_info{") {
				t.Errorf("it lacks something:\n%s", text)
			}
		})
	}
}

// TestScrapeParses reads a whole scrape, with the exporter's own metrics, as
// Prometheus does.
func TestScrapeParses(t *testing.T) {
	t.Parallel()
	e := newTestExporter(t, nil)
	c, pages := ofEveryKind()
	withPages(e, c, pages)
	text := get(t, e.Handler(), "/metrics", nil).text
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(text)); err != nil {
		t.Error(err)
	}
}

// TestWriteText writes what a scrape gets.
func TestWriteText(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 1, nil)
	r.sample(0)
	var b strings.Builder
	if err := r.e.WriteText(&b); err != nil {
		t.Error(err)
	}
	if text := r.scrape(); b.String() != text || !strings.Contains(text, `rdma_port_receive_bytes_total{device="mlx5_1"`) {
		t.Errorf("it writes something else than a scrape gets (-scrape +written):\n%s", cmp.Diff(text, b.String()))
	}
	read, write := io.Pipe()
	_ = read.Close()
	if err := r.e.WriteText(write); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v, want that of the writer", err)
	}
}

// TestSelf holds the exporter's own metrics against the rules.
func TestSelf(t *testing.T) {
	t.Parallel()
	e := newTestExporter(t, nil)
	e.self.observe("traffic", time.Millisecond)
	text := get(t, e.Handler(), "/metrics", nil).text
	problems, err := promlint.New(bytes.NewReader([]byte(text))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, want := range []string{
		`rdma_exporter_build_info{goarch=`, `version="1.2.3"`,
		`rdma_exporter_collect_duration_seconds_bucket{collector="traffic",le="0.002"} 1`,
		"go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestMetricFilter leaves out what an administrator does not want, also of the
// exporter itself.
func TestMetricFilter(t *testing.T) {
	t.Parallel()
	e := newTestExporter(t, func(c *Config) { c.Metrics = Filter{Exclude: "go_.*|process_.*"} })
	text := get(t, e.Handler(), "/metrics", nil).text
	if strings.Contains(text, "go_") && strings.Contains(text, "\ngo_") || strings.Contains(text, "\nprocess_") {
		t.Errorf("what was left out is there:\n%s", text)
	}
}

// TestExpired serves nothing that is too old.
func TestExpired(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	e := newTestExporter(t, func(c *Config) { c.Now = func() time.Time { return now } })
	c, pages := ofEveryKind()
	pages[0].expires = now.Add(15 * time.Second)
	withPages(e, c, pages)
	has := func() (first, second bool) {
		text := get(t, e.Handler(), "/metrics", nil).text
		return strings.Contains(text, `{device="mlx5_0"`), strings.Contains(text, `{device="mlx5_1"`)
	}
	now = now.Add(15*time.Second - 1)
	if first, second := has(); !first || !second {
		t.Errorf("before its time: %v, %v", first, second)
	}
	now = now.Add(1)
	if first, second := has(); first || !second {
		t.Errorf("after its time: %v, %v", first, second)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	e := newTestExporter(t, nil)
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/":        {http.StatusOK, "Railhead"},
		"/healthz": {http.StatusOK, "ok"},
		"/readyz":  {http.StatusServiceUnavailable, "the devices are not known yet"},
		"/metrics": {http.StatusOK, "rdma_exporter_build_info"},
		"/other":   {http.StatusNotFound, ""},
	} {
		r := get(t, e.Handler(), path, nil)
		if r.status != want.status || !strings.Contains(r.text, want.text) {
			t.Errorf("%s: %d: %.200s", path, r.status, r.text)
		}
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap"} {
		if r := get(t, e.Handler(), path, nil); r.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.status)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		"device filter: include":                    func(c *Config) { c.Devices.Include = "(" },
		"metric filter: exclude":                    func(c *Config) { c.Metrics.Exclude = ")" },
		`interval of tier "slow"`:                   func(c *Config) { c.Intervals[counters.Slow] = 0 },
		`mode "prometheus": it may be "spiderpool"`: func(c *Config) { c.Compat = []Compat{"prometheus"} },
	} {
		config := Config{Intervals: DefaultIntervals()}
		change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestTiers reads only tiers that have something to export.
func TestTiers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		config Config
		want   int
	}{
		{"all", Config{}, 3},
		{"nothing", Config{Metrics: Filter{Exclude: ".*"}}, 0},
		{"traffic", Config{Metrics: Filter{Include: "rdma_port_receive_bytes_total|rdma_exporter_.*"}}, 1},
		{"what a pod has", Config{Metrics: Filter{Include: "rdma_pod_retransmit_timeouts_total"}}, 1},
		{"what another exporter has", Config{Metrics: Filter{Include: "node_infiniband_port_data_received_bytes_total"}, Compat: []Compat{NodeExporter}}, 1},
		{"what only another exporter has", Config{Metrics: Filter{Include: "rdma_device_tos_total"}, Compat: []Compat{Spiderpool}}, 1},
	}
	for _, tt := range tests {
		e := newTestExporter(t, func(c *Config) { c.Metrics, c.Compat = tt.config.Metrics, tt.config.Compat })
		if len(e.tiers) != tt.want {
			t.Errorf("%s: tiers %v, want %d", tt.name, e.tiers, tt.want)
		}
	}
}

// pieces is a writer that keeps what it is given, and fails after some pieces.
type pieces struct {
	sizes []int
	text  strings.Builder
	most  int
}

func (p *pieces) Write(b []byte) (int, error) {
	if p.most > 0 && len(p.sizes) == p.most {
		return 0, io.ErrClosedPipe
	}
	p.sizes = append(p.sizes, len(b))
	return p.text.Write(b)
}

// TestPieces writes a long exposition piece by piece, so that it is never whole in
// memory, and nothing more to a client that went away.
func TestPieces(t *testing.T) {
	t.Parallel()
	e := newTestExporter(t, func(c *Config) { c.Metrics = Filter{Exclude: "(go|process)_.*|rdma_exporter_.*"} })
	c, long := benchPages(3)
	withPages(e, c, long)
	var whole, part pieces
	if err := e.WriteText(&whole); err != nil {
		t.Fatal(err)
	}
	r := &renderer{pages: long}
	r.render(c.families(), false)
	if whole.text.String() != string(r.out) {
		t.Error("the pieces together are another text")
	}
	if most := slices.Max(whole.sizes); len(whole.sizes) < 10 || most > pieceSize+1<<10 {
		t.Errorf("%d pieces of up to %d bytes, want many of little more than %d", len(whole.sizes), most, pieceSize)
	}
	part.most = 2
	if err := e.WriteText(&part); !errors.Is(err, io.ErrClosedPipe) || len(part.sizes) != 2 {
		t.Errorf("error %v after %d pieces, want that of the writer after 2", err, len(part.sizes))
	}
}
