package boards

import (
	"errors"
	"fmt"
	"strings"

	"railhead/hack/dashboards/grafana"
)

// Kind is how a panel draws its data.
type Kind string

// The kinds of panels, as Grafana calls them; a matrix is a table of its own.
const (
	Lines   Kind = "timeseries"
	Stat    Kind = "stat"
	Table   Kind = "table"
	History Kind = "status-history" // a line of coloured cells a series
	Matrix  Kind = "matrix"         // one label down, another across
)

// Units of panels, as Grafana calls them.
const (
	bitsPerSecond    = "bps"
	packetsPerSecond = "pps"
	perSecond        = "ops"
	ratio            = "percentunit"
	count            = "short"
	bytesUnit        = "bytes"
	bytesPerSecond   = "Bps"
	seconds          = "s"
	text             = "string"
)

// Panel is one question and how to draw the answer.
type Panel struct {
	Title   string
	Family  string // the metric family whose help begins the description
	About   string // what else to know; all of the description where there is no Family
	Kind    Kind   // Lines unless said
	Unit    string
	Width   int // of 24; 6 unless said
	Height  int // 7 unless said
	Stacked bool
	Steps   []grafana.Step // colours of values
	Queries []Query
	Columns []Column // of a Table, in order
	Down    string   // of a Matrix: the label of its lines
	Across  string   // of a Matrix: the label of its columns
	// Scenario is the simulated cluster in which the panel has data; one where
	// nothing is wrong unless said.
	Scenario string
}

// Query is one PromQL expression of a panel.
type Query struct {
	Legend string
	Expr   string
}

// Column is one of a table: a label, or the value of a query.
type Column struct {
	Title string
	Label string
	Value string // the letter of the query, where it is a value
	Unit  string
	Texts []grafana.Mapping
}

// draw makes Grafana's panel, at no place yet.
func (p *Panel) draw(help func(string) (string, bool)) (grafana.Panel, error) {
	about, err := p.describe(help)
	source := grafana.Prometheus()
	drawn := grafana.Panel{
		Type: string(p.kind()), Title: p.Title, Description: about, Datasource: &source,
		GridPos: grafana.GridPos{H: orElse(p.Height, 7), W: orElse(p.Width, 6)},
		Targets: p.targets(),
	}
	switch p.kind() {
	case Lines:
		p.drawLines(&drawn)
	case Stat:
		p.drawStat(&drawn)
	case History:
		p.drawHistory(&drawn)
	case Table:
		p.drawTable(&drawn)
	case Matrix:
		p.drawMatrix(&drawn)
	}
	if p.Unit == "" && p.kind() != Table {
		err = errors.Join(err, errors.New("it has no unit"))
	}
	return drawn, err
}

// describe says what a panel shows: what the family means, then what is said
// of the panel.
func (p *Panel) describe(help func(string) (string, bool)) (string, error) {
	if p.Family == "" {
		if p.About == "" {
			return "", errors.New("it has neither a family nor a description")
		}
		return p.About, nil
	}
	meaning, ok := help(p.Family)
	if !ok {
		return p.About, fmt.Errorf("its family %q is not among those of the exporter", p.Family)
	}
	if !strings.HasSuffix(meaning, ".") {
		meaning += "."
	}
	return strings.TrimSpace(meaning + " " + p.About), nil
}

func (p *Panel) kind() Kind {
	if p.Kind == "" {
		return Lines
	}
	return p.Kind
}

// targets lets tables and single numbers ask for now, and all else for the
// whole time range.
func (p *Panel) targets() []grafana.Target {
	now := p.kind() == Table || p.kind() == Matrix || p.kind() == Stat
	format := "time_series"
	if p.kind() == Table || p.kind() == Matrix {
		format = "table"
	}
	var targets []grafana.Target
	for i, q := range p.Queries {
		targets = append(targets, grafana.Target{
			RefID: letter(i), Datasource: grafana.Prometheus(), Expr: q.Expr, LegendFormat: q.Legend,
			EditorMode: "code", Format: format, Instant: now, Range: !now,
		})
	}
	return targets
}

// letter is how Grafana names the queries of a panel.
func letter(i int) string { return string(rune('A' + i)) }

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
