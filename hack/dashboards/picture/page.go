// Package picture draws dashboards as pages of HTML with the data that a
// Prometheus gives, much as Grafana would, for pictures in documents. It is no
// Grafana: it knows the panels that our dashboards have and nothing else.
package picture

import (
	"context"
	"fmt"
	"html"
	"regexp"
	"strings"
	"time"

	"railhead/hack/dashboards/boards"
	"railhead/hack/dashboards/grafana"
	"railhead/hack/dashboards/lab"
	"railhead/hack/dashboards/promql"
)

// View is what a page shows of a dashboard.
type View struct {
	Prometheus *lab.Prometheus
	At         time.Time         // the end of its time
	Range      time.Duration     // how much there is before it
	Step       time.Duration     // of lines
	Values     map[string]string // of the dashboard's variables; the others stand at All
}

// Sizes in pixels.
const (
	columnWidth = 56
	rowHeight   = 30
	gap         = 8
	headHeight  = 92
	pageWidth   = 24*columnWidth + 2*gap
)

// Page draws a dashboard and returns the HTML and its height in pixels.
func Page(ctx context.Context, board *boards.Board, dashboard *grafana.Dashboard, view View) (text string, height int, err error) {
	var b strings.Builder
	b.WriteString("<!doctype html><meta charset=utf-8><style>" + style + "</style>")
	header(&b, board, view)
	bottom := 0
	panels := definitions(board)
	for i, placed := range dashboard.Panels {
		at := placed.GridPos
		bottom = max(bottom, at.Y+at.H)
		fmt.Fprintf(&b, `<div class=%q style="left:%dpx;top:%dpx;width:%dpx;height:%dpx"><h2>%s</h2>`,
			class(placed), gap+at.X*columnWidth, headHeight+at.Y*rowHeight, at.W*columnWidth-gap, at.H*rowHeight-gap, html.EscapeString(placed.Title))
		if p := panels[i]; p != nil {
			inside := box{width: at.W*columnWidth - gap - 20, height: at.H*rowHeight - gap - 34}
			if err := draw(ctx, &b, p, board, view, inside); err != nil {
				return "", 0, fmt.Errorf("dashboard %q, panel %q: %w", board.Title, p.Title, err)
			}
		}
		b.WriteString("</div>\n")
	}
	return b.String(), headHeight + bottom*rowHeight + gap, nil
}

// definitions returns the definition of each panel, nil for headers of rows.
func definitions(board *boards.Board) []*boards.Panel {
	var all []*boards.Panel
	for i := range board.Rows {
		all = append(all, nil)
		for j := range board.Rows[i].Panels {
			all = append(all, &board.Rows[i].Panels[j])
		}
	}
	return all
}

func class(p grafana.Panel) string {
	if p.Type == "row" {
		return "row"
	}
	return "panel"
}

// header shows the title and the variables.
func header(b *strings.Builder, board *boards.Board, view View) {
	fmt.Fprintf(b, `<header><h1>%s</h1><span>%s to %s</span></header><nav>`, html.EscapeString(board.Title),
		view.At.Add(-view.Range).UTC().Format("15:04"), view.At.UTC().Format("15:04 MST"))
	for _, v := range board.Variables {
		value := view.Values[v.Name]
		if value == "" {
			value = "All"
		}
		fmt.Fprintf(b, "<span>%s</span><b>%s</b>", html.EscapeString(v.Label), html.EscapeString(value))
	}
	b.WriteString("</nav>")
}

// box is the room for a drawing, in pixels.
type box struct{ width, height int }

func draw(ctx context.Context, b *strings.Builder, p *boards.Panel, board *boards.Board, view View, in box) error {
	answers, err := view.ask(ctx, p, board)
	if err != nil {
		return err
	}
	switch p.Kind {
	case boards.Stat:
		drawStat(b, p, answers[0])
	case boards.Table:
		drawTable(b, p, answers, in)
	case boards.Matrix:
		drawMatrix(b, p, answers[0])
	case boards.History:
		drawHistory(b, p, answers[0], view, in)
	case boards.Lines, "":
		drawLines(b, p, answers, view, in)
	}
	return nil
}

// ask asks all queries of a panel.
func (v View) ask(ctx context.Context, p *boards.Panel, board *boards.Board) ([][]lab.Series, error) {
	values := map[string]string{"__rate_interval": "1m", "__range": fmt.Sprintf("%ds", int(v.Range.Seconds()))}
	for _, variable := range board.Variables {
		values[variable.Name] = ".*"
	}
	for name, value := range v.Values {
		values[name] = regexp.QuoteMeta(value)
	}
	var answers [][]lab.Series
	for _, q := range p.Queries {
		query, _ := promql.Expand(q.Expr, values)
		var series []lab.Series
		var err error
		if p.Kind == boards.Lines || p.Kind == "" || p.Kind == boards.History {
			series, err = v.Prometheus.QueryRange(ctx, query, v.At.Add(-v.Range), v.At, v.Step)
		} else {
			series, err = v.Prometheus.Query(ctx, query, v.At)
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, series)
	}
	return answers, nil
}

// legend is the name of a series, as the query's legend says it.
func legend(format string, of map[string]string) string {
	return strings.TrimSpace(regexp.MustCompile(`\{\{(\w+)\}\}`).ReplaceAllStringFunc(format, func(label string) string {
		return of[strings.Trim(label, "{}")]
	}))
}

const style = `
*{box-sizing:border-box;margin:0}
body{background:#111217;color:#ccccdc;font:12px Inter,"DejaVu Sans",sans-serif;position:relative;overflow:hidden}
header{position:absolute;left:16px;top:14px;right:16px;display:flex;justify-content:space-between;color:#8e8e9a}
h1{font-size:20px;font-weight:500;color:#ccccdc}
nav{position:absolute;left:16px;top:52px;display:flex;gap:4px}
nav span,nav b{background:#181b1f;padding:5px 9px;border:1px solid #2c3235;font-weight:400}
nav span{color:#6e9fff}
nav b{margin-right:10px}
.panel{position:absolute;background:#181b1f;border:1px solid #24282d;border-radius:2px;padding:6px 10px;overflow:hidden}
.row{position:absolute;padding:5px 4px;font-weight:500}
.row h2::before{content:"⌄ ";color:#8e8e9a}
h2{font-size:12px;font-weight:500;white-space:nowrap;overflow:hidden;text-overflow:ellipsis;height:20px}
.stat{font-size:34px;font-weight:500;text-align:center;line-height:68px}
svg{display:block}
svg text{font-size:10px;fill:#8e8e9a}
table{border-collapse:collapse;width:100%;font-size:11px}
th{color:#6e9fff;font-weight:500;text-align:left}
th,td{padding:3px 6px;border-bottom:1px solid #24282d;white-space:nowrap;overflow:hidden;text-overflow:ellipsis;max-width:330px}
.matrix td,.matrix th{text-align:center;padding:6px 4px;border:1px solid #181b1f}
.matrix td:first-child{text-align:left}
.legend{white-space:nowrap;overflow:hidden;font-size:10px;height:15px;line-height:15px}
.legend i{display:inline-block;width:10px;height:3px;margin:0 4px 3px 8px}
.none{color:#8e8e9a;text-align:center;padding-top:30px}
`
