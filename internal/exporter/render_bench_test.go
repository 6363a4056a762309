package exporter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"railhead/internal/counters"
	"railhead/internal/versus"
)

// The node of the budget: about 10,000 series.
const (
	benchDevices  = 136
	benchFamilies = 75
)

// BenchmarkRender renders 10,200 series, beside client_golang with const metrics
// of as many labels: 3 as here, and 13 as the exporters that put every fact of a
// device on every series.
func BenchmarkRender(b *testing.B) {
	c, pages := benchPages(3)
	r := &renderer{}
	for _, isOpen := range []bool{false, true} {
		render := func() error {
			r.pages = append(r.pages[:0], pages...)
			r.out, r.runs = r.out[:0], r.runs[:0]
			r.render(c.families(), isOpen)
			if len(r.out) == 0 {
				return errors.New("nothing was rendered")
			}
			return nil
		}
		name := "text"
		if isOpen {
			name = "openmetrics"
		}
		for _, labels := range []int{3, 13} {
			registry := prometheus.NewRegistry()
			registry.MustRegister(newConstMetrics(benchFamilies, labels))
			b.Run(fmt.Sprintf("%s, client_golang with %d labels", name, labels), func(b *testing.B) {
				versus.Peer(b, render, func() error { return gather(registry) })
				b.ReportMetric(float64(bytes.Count(r.out, []byte("\n"))), "lines")
			})
		}
	}
}

// gather is what a scrape costs with client_golang.
func gather(registry *prometheus.Registry) error {
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	encoder := expfmt.NewEncoder(io.Discard, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

func benchLabels(device, n int) []counters.Label {
	labels := []counters.Label{
		{Name: "device", Value: "mlx5_" + strconv.Itoa(device)},
		{Name: "port", Value: "1"},
		{Name: "netdev", Value: "eth" + strconv.Itoa(device)},
	}
	for i := len(labels); i < n; i++ {
		labels = append(labels, counters.Label{Name: "label_" + strconv.Itoa(i), Value: "fc6a:1c03:00cd:" + strconv.Itoa(device)})
	}
	return labels
}

// benchPages returns three pages of each of the devices, one a tier.
func benchPages(labels int) (*catalog, []*page) {
	known := make([]*counters.Family, benchFamilies)
	for i := range known {
		known[i] = &counters.Family{Name: fmt.Sprintf("rdma_counter_number_%d", i), Help: "What it counts.", Unit: "packets"}
	}
	c := newCatalog(known, filter{})
	var pages []*page
	for d := range benchDevices {
		tier := make([]*page, 3)
		for i := range tier {
			tier[i] = &page{}
		}
		for i, f := range c.families() {
			p := tier[i*len(tier)/benchFamilies]
			p.rows = append(p.rows, row{newLine(f, benchLabels(d, labels), 1), uint64(d*i) * 1234567})
		}
		pages = append(pages, tier...)
	}
	return c, pages
}

// constMetrics makes its metrics anew for each scrape, as an exporter of the
// kernel's counters does with client_golang.
type constMetrics struct {
	descs  []*prometheus.Desc
	values [][]string // of the labels of each device
}

func newConstMetrics(families, labels int) *constMetrics {
	m := &constMetrics{}
	var names []string
	for _, l := range benchLabels(0, labels) {
		names = append(names, l.Name)
	}
	for i := range families {
		m.descs = append(m.descs, prometheus.NewDesc(fmt.Sprintf("rdma_counter_number_%d_total", i), "What it counts.", names, nil))
	}
	for d := range benchDevices {
		var values []string
		for _, l := range benchLabels(d, labels) {
			values = append(values, l.Value)
		}
		m.values = append(m.values, values)
	}
	return m
}

func (m *constMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range m.descs {
		descs <- d
	}
}

func (m *constMetrics) Collect(metrics chan<- prometheus.Metric) {
	for device, values := range m.values {
		for i, d := range m.descs {
			metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(device*i)*1234567, values...)
		}
	}
}
