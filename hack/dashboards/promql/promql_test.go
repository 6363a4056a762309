package promql

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/counters"
)

func exampleSchema() *Schema {
	return NewSchema([]*counters.Family{
		{Name: "rdma_errors", Labels: []string{"reason"}, Pod: "rdma_pod_errors"},
		{Name: "rdma_pod_errors", Scope: counters.WholeNode},
		{Name: "rdma_speed", Kind: counters.Gauge},
		{Name: "rdma_info", Kind: counters.Info, Labels: []string{"rail"}},
		{Name: "rdma_took", Kind: counters.Histogram, Scope: counters.WholeNode, Labels: []string{"collector"}},
	})
}

func TestLabels(t *testing.T) {
	t.Parallel()
	tests := []struct {
		query string
		want  []string
	}{
		{`sum by (device) (rate(rdma_errors_total{reason="x"}[1m]))`, []string{"device"}},
		{`sum without (reason, job, cluster, port, netdev) (increase(rdma_errors_total[1m]))`, []string{"device", "instance"}},
		{`rdma_speed * on (device, port) rdma_speed`, []string{"device", "port"}},
		{`sum by (device) (rdma_speed) * on (device) group_left (rail) max by (device, rail) (rdma_info)`, []string{"device", "rail"}},
		{`max by (device, rail) (rdma_info) * on (device) group_right (rail) sum by (device) (rdma_speed)`, []string{"device", "rail"}},
		{`max by (device) (rdma_speed) and on (device) rdma_info`, []string{"device"}},
		{`max by (device) (rdma_speed) or max by (port) (rdma_speed)`, []string{"device", "port"}},
		{`label_replace(max by (device) (rdma_speed), "pf", "$1", "device", "(.+)")`, []string{"device", "pf"}},
		{`count_values by (device) ("value", rdma_speed)`, []string{"device", "value"}},
		{`sum by (le) (rate(rdma_took_bucket[1m]))`, []string{"le"}},
		{`topk(3, sum by (pod_name, reason) (rate(rdma_pod_errors_total[1m])))`, []string{"pod_name", "reason"}},
		{`2 * max by (device) (rdma_speed) > 1`, []string{"device"}},
		{`count(rdma_speed) or vector(0)`, nil},
	}
	for _, tt := range tests {
		got, err := exampleSchema().Labels(tt.query)
		if err != nil {
			t.Errorf("%s: %v", tt.query, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.query, diff)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, query, want string }{
		{"no PromQL", `sum by (`, "parse error"},
		{"no such metric", `rdma_sped`, `no metric "rdma_sped"`},
		{"a counter without its suffix", `rate(rdma_errors[1m])`, `no metric "rdma_errors"`},
		{"a counter alone", `rdma_errors_total`, "without a rate"},
		{"the rate of a gauge", `rate(rdma_speed[1m])`, "no counter"},
		{"a matcher of another family", `rdma_speed{rail="1"}`, `no label "rail"`},
		{"a pod's label on a device", `rdma_speed{pod_name="x"}`, `no label "pod_name"`},
		{"a group that is not there", `sum by (rail) (rdma_speed)`, `no label "rail"`},
		{"a label that was summed away", `sum by (rail) (max by (device) (rdma_info))`, `no label "rail"`},
		{"a join on what one side lacks", `rdma_speed * on (device, rail) rdma_info`, `no label "rail"`},
		{"a label that the other side lacks", `rdma_info * on (device) group_left (rail) rdma_speed`, `no label "rail"`},
		{"sides that never match", `rdma_info * max by (device) (rdma_speed)`, "never matches"},
		{"a replacement of nothing", `label_replace(rdma_speed, "x", "$1", "rail", "(.+)")`, `no label "rail"`},
	}
	for _, tt := range tests {
		if _, err := exampleSchema().Labels(tt.query); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	s := exampleSchema()
	if err := s.Record("device:speed", "max by (device) (rdma_speed)"); err != nil {
		t.Error(err)
	}
	got, err := s.Labels("device:speed")
	if err != nil || !slices.Equal(got, []string{"device"}) {
		t.Errorf("labels %q, error %v", got, err)
	}
	if err := s.Record("device:speed", "rdma_speed"); err == nil {
		t.Error("a second rule of that name was taken")
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	got, unknown := Expand(`x{a=~"$a", b="${b}"}[$__range] $1 $c $c`, map[string]string{"a": "A", "b": "B", "__range": "1h"})
	if want := `x{a=~"A", b="B"}[1h] $1 $c $c`; got != want {
		t.Errorf("expanded to %s, want %s", got, want)
	}
	if !slices.Equal(unknown, []string{"c"}) {
		t.Errorf("unknown are %q, want c", unknown)
	}
}
