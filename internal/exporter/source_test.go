package exporter

import (
	"errors"
	"testing"
)

// TestSources wants each source that is asked in the background to be told as a
// collector: also before it fails, and again when it is mended.
func TestSources(t *testing.T) {
	t.Parallel()
	var away error
	r := newRig(t, 1, 0, func(c *Config) {
		c.Sources = map[string]func() error{"kubernetes": func() error { return away }, "other": func() error { return nil }}
	})
	r.sample(0)
	for _, away = range []error{nil, errors.New("connection refused"), nil} {
		want := "1"
		if away != nil {
			want = "0"
		}
		r.want(map[string]string{
			`rdma_exporter_collector_success{collector="kubernetes"`: want,
			`rdma_exporter_collector_success{collector="other"`:      "1",
			`rdma_exporter_collector_success{collector="traffic"`:    "1",
		})
	}
}
