// Package boards says what the dashboards show: rows of panels, each a question
// with its PromQL and what the answer means. It makes Grafana's JSON of them,
// and asks nothing itself.
//
// The queries use no recording rules, so that a dashboard works in any
// Prometheus that scrapes the agents. A series belongs to the device that
// counts it; rdma_port_info tells the physical port and rail of a device, and
// rdma_pod_device_info the pod.
package boards

import (
	"errors"
	"fmt"

	"railhead/hack/dashboards/grafana"
)

// Board is a dashboard.
type Board struct {
	File      string // the name of its file, without .json
	UID       string
	Title     string
	About     string
	Range     string // what it shows at first, "1h"
	Refresh   string // how often it asks again, "30s"
	Variables []grafana.Variable
	Rows      []Row
}

// Row is a part of a dashboard under a header.
type Row struct {
	Title  string
	Panels []Panel
}

// All returns the dashboards in the order in which a reader goes down: from the
// cluster to a node, a pod, a workload.
func All() []Board {
	return []Board{clusterBoard(), nodeBoard(), podBoard(), workloadBoard()}
}

// tag marks our dashboards, so that they link to each other.
const tag = "railhead"

// Dashboard makes Grafana's dashboard of a board. Help gives the sentence that
// says what a metric family means.
func (b *Board) Dashboard(help func(family string) (string, bool)) (*grafana.Dashboard, error) {
	d := &grafana.Dashboard{
		UID: b.UID, Title: b.Title, Description: b.About,
		Tags: []string{tag, "rdma"}, SchemaVersion: grafana.SchemaVersion,
		Editable: true, GraphTooltip: 1, Refresh: b.Refresh, Timezone: "browser",
		Time:        grafana.TimeRange{From: "now-" + b.Range, To: "now"},
		Templating:  grafana.Templating{List: append([]grafana.Variable{grafana.DatasourceVariable()}, b.Variables...)},
		Annotations: grafana.Annotations{List: []grafana.Annotation{}},
		Links: []grafana.Link{{
			Title: "RDMA dashboards", Type: "dashboards", Tags: []string{tag},
			AsDropdown: true, IncludeVars: true, KeepTime: true,
		}},
	}
	var problems []error
	page := page{next: 1}
	for _, row := range b.Rows {
		d.Panels = append(d.Panels, page.header(row.Title))
		for i := range row.Panels {
			p, err := row.Panels[i].draw(help)
			if err != nil {
				problems = append(problems, fmt.Errorf("dashboard %q, panel %q: %w", b.Title, row.Panels[i].Title, err))
			}
			page.place(&p)
			d.Panels = append(d.Panels, p)
		}
		page.endLine()
	}
	return d, errors.Join(problems...)
}
