package boards

import (
	"strings"
	"testing"

	"railhead/hack/dashboards/grafana"
)

func TestPagePlaces(t *testing.T) {
	t.Parallel()
	p := page{next: 1}
	header := p.header("row")
	var got []grafana.Panel
	for _, size := range []grafana.GridPos{{W: 12, H: 4}, {W: 8, H: 6}, {W: 8, H: 2}} {
		panel := grafana.Panel{GridPos: size}
		p.place(&panel)
		got = append(got, panel)
	}
	next := p.header("next")
	want := []grafana.GridPos{{W: 24, H: 1}, {W: 12, H: 4, X: 0, Y: 1}, {W: 8, H: 6, X: 12, Y: 1}, {W: 8, H: 2, X: 0, Y: 7}, {W: 24, H: 1, Y: 9}}
	for i, panel := range append([]grafana.Panel{header}, append(got, next)...) {
		if panel.GridPos != want[i] || panel.ID != i+1 {
			t.Errorf("panel %d has id %d at %+v, want %+v", i, panel.ID, panel.GridPos, want[i])
		}
	}
}

func TestDashboardErrors(t *testing.T) {
	t.Parallel()
	help := Help(nil)
	for want, p := range map[string]Panel{
		`its family "rdma_x" is not among those`: {Title: "p", Family: "rdma_x", Unit: count},
		"it has neither a family":                {Title: "p", Unit: count},
		"it has no unit":                         {Title: "p", About: "a"},
	} {
		b := Board{Title: "b", Rows: []Row{{"r", []Panel{{Title: "well", About: "a", Unit: count}, p}}}}
		d, err := b.Dashboard(help)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `dashboard "b", panel "p"`) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if len(d.Panels) != 3 {
			t.Errorf("%s: %d panels are left of three", want, len(d.Panels))
		}
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	help := func(string) (string, bool) { return "What it means", true }
	p := Panel{Family: "f", About: "And more."}
	if got, err := p.describe(help); got != "What it means. And more." || err != nil {
		t.Errorf("description %q, error %v", got, err)
	}
}
