package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
)

// comesAndGoes is a history of two series, of which one is not always there.
func comesAndGoes(t *testing.T) *History {
	t.Helper()
	h := NewHistory(time.Unix(1000, 0), 15*time.Second, func(name string) bool { return name != "unwanted" })
	target := map[string]string{"instance": "a"}
	for step, text := range []string{
		"# TYPE x_total counter\nx_total{d=\"q\\\"\"} 1\nunwanted 1\n",
		"x_total{d=\"q\\\"\"} 2.5\ny 1e+20\n",
		"y 7\n",
		"x_total{d=\"q\\\"\"} 4\ny 7\n",
	} {
		if err := h.add(step, target, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func TestInput(t *testing.T) {
	t.Parallel()
	want := []InputSeries{
		{Series: `x_total{d="q\"",instance="a"}`, Values: "1 2.5 stale 4"},
		{Series: `y{instance="a"}`, Values: "_ 1e+20 7 7"},
	}
	if diff := cmp.Diff(want, comesAndGoes(t).Input()); diff != "" {
		t.Error(diff)
	}
}

// TestEnds wants the mark of the end also where a series never comes back.
func TestEnds(t *testing.T) {
	t.Parallel()
	h := NewHistory(time.Unix(0, 0), time.Second, nil)
	h.Set(0, labels.FromStrings(metricName, "x"), 1)
	h.Set(3, labels.FromStrings(metricName, "y"), 1)
	if got, want := h.Input()[0].Values, "1 stale _ _"; got != want {
		t.Errorf("values %q, want %q", got, want)
	}
}

func TestNoMetrics(t *testing.T) {
	t.Parallel()
	h := NewHistory(time.Unix(0, 0), time.Second, nil)
	if err := h.add(0, map[string]string{"instance": "a"}, []byte("x{ 1\n")); err == nil || !strings.Contains(err.Error(), "what a serves") {
		t.Errorf("error %v, want one that names the node", err)
	}
}
