package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// large is the exposition of 8 PFs with 16 VFs each, one in a pod each.
func large(grown int) string {
	var b strings.Builder
	device := func(name, labels string) {
		labels = fmt.Sprintf("{device=%q,port=\"1\"%s}", name, labels)
		for _, q := range quantities {
			fmt.Fprintf(&b, "%s%s %d\n", q.terms[0][0].add[0], labels, grown)
		}
	}
	for pf := range 8 {
		device(fmt.Sprintf("mlx5_%d", pf), "")
		for vf := range 16 {
			name := fmt.Sprintf("mlx5_%d", 8+16*pf+vf)
			device(name, "")
			fmt.Fprintf(&b, "rdma_port_info{device=%q,port=\"1\",function=\"vf\",vf_index=\"%d\",pf_device=\"mlx5_%d\"} 1\n", name, vf, pf)
			fmt.Fprintf(&b, "rdma_pod_receive_bytes_total{pod_namespace=\"train\",pod_name=\"worker-%d\",device=%q,port=\"1\"} %d\n", 16*pf+vf, name, grown)
		}
	}
	return b.String()
}

// BenchmarkFrame makes a screen of an answer: read, compared and rendered. What
// reading the text alone takes is the floor.
func BenchmarkFrame(b *testing.B) {
	before, after := large(1), large(1000)
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			parser := expfmt.NewTextParser(model.UTF8Validation)
			if _, err := parser.TextToMetricFamilies(strings.NewReader(after)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("screen", func(b *testing.B) {
		b.ReportAllocs()
		first := parse(b, before, 0)
		for b.Loop() {
			history := History{Window: DefaultWindow, scrapes: []*Scrape{first}}
			history.Add(parse(b, after, 10*time.Second))
			s := newScreen("bench", newStyle(true), firstChoice)
			s.resize(160, 50)
			s.show(history.Frame())
			_ = s.String()
		}
	})
}
