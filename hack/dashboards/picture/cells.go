package picture

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"railhead/hack/dashboards/boards"
	"railhead/hack/dashboards/lab"
)

func drawStat(b *strings.Builder, p *boards.Panel, answer []lab.Series) {
	if len(answer) == 0 {
		b.WriteString("<div class=none>No data</div>")
		return
	}
	v := answer[0].Points[0].Value
	fmt.Fprintf(b, `<div class=stat style="color:%s">%s</div>`, colorOf(v, p.Steps), format(v, p.Unit))
}

// drawHistory draws a line of cells a series.
func drawHistory(b *strings.Builder, p *boards.Panel, answer []lab.Series, v View, in box) {
	v.Step = v.Range / 60 // cells that can be told apart
	all := curves(p, [][]lab.Series{answer}, v)
	if len(all) == 0 {
		b.WriteString("<div class=none>No data</div>")
		return
	}
	const names = 150
	plot := in.height - 16
	height := float64(plot) / float64(len(all))
	width := float64(in.width-names) / float64(len(all[0].values))
	fmt.Fprintf(b, `<svg width="%d" height="%d">`, in.width, in.height)
	for i, c := range all {
		y := float64(i) * height
		if every := int(math.Ceil(11 / height)); i%every == 0 {
			fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, names-6, y+height/2+3, html.EscapeString(c.name))
		}
		for j, value := range c.values {
			if !math.IsNaN(value) {
				fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`,
					names+float64(j)*width, y, width-0.5, max(height-1, 1), colorOf(value, p.Steps))
			}
		}
	}
	for i := range 4 {
		at := v.At.Add(-v.Range + v.Range*time.Duration(i)/4)
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`, names+(in.width-names)*i/4, in.height-3, at.UTC().Format("15:04"))
	}
	b.WriteString("</svg>")
}

func drawMatrix(b *strings.Builder, p *boards.Panel, answer []lab.Series) {
	cells := map[string]map[string]float64{}
	columns := map[string]bool{}
	for _, s := range answer {
		down, across := s.Labels[p.Down], s.Labels[p.Across]
		if cells[down] == nil {
			cells[down] = map[string]float64{}
		}
		cells[down][across] = s.Points[0].Value
		columns[across] = true
	}
	b.WriteString("<table class=matrix><tr><th></th>")
	for _, c := range slices.Sorted(maps.Keys(columns)) {
		fmt.Fprintf(b, "<th>%s</th>", html.EscapeString(c))
	}
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		fmt.Fprintf(b, "<tr><td>%s</td>", html.EscapeString(name))
		for _, c := range slices.Sorted(maps.Keys(columns)) {
			if v, ok := cells[name][c]; ok {
				fmt.Fprintf(b, `<td style="background:%s;color:#fff">%s</td>`, colorOf(v, p.Steps), format(v, p.Unit))
			} else {
				b.WriteString("<td></td>")
			}
		}
	}
	b.WriteString("</table>")
}

// drawTable merges the answers by their labels, as Grafana does, and writes as
// many lines as there is room for.
func drawTable(b *strings.Builder, p *boards.Panel, answers [][]lab.Series, in box) {
	b.WriteString("<table><tr>")
	for _, c := range p.Columns {
		fmt.Fprintf(b, "<th>%s</th>", html.EscapeString(c.Title))
	}
	const lineHeight = 21
	lines := merge(p, answers)
	for i, line := range lines {
		if (i+2)*lineHeight > in.height {
			break
		}
		b.WriteString("<tr>")
		for _, cell := range line {
			b.WriteString(cell)
		}
	}
	b.WriteString("</table>")
}

// merge makes lines of HTML: labels that all answers share tell which values
// belong together.
func merge(p *boards.Panel, answers [][]lab.Series) [][]string {
	type record struct {
		labels map[string]string
		values map[string]float64
	}
	records := map[string]*record{}
	keys := shared(answers)
	for i, answer := range answers {
		for _, s := range answer {
			values := make([]string, len(keys))
			for j, name := range keys {
				values[j] = s.Labels[name]
			}
			key := strings.Join(values, "\xff")
			r := records[key]
			if r == nil {
				r = &record{labels: map[string]string{}, values: map[string]float64{}}
				records[key] = r
			}
			maps.Copy(r.labels, s.Labels)
			r.values[string(rune('A'+i))] = s.Points[0].Value
		}
	}
	var lines [][]string
	for _, key := range slices.Sorted(maps.Keys(records)) {
		var line []string
		for _, c := range p.Columns {
			v, ok := records[key].values[c.Value]
			line = append(line, cell(c, records[key].labels[c.Label], v, ok))
		}
		lines = append(lines, line)
	}
	slices.SortStableFunc(lines, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return lines
}

// shared are the labels that tell lines apart: all of a single answer, and
// those that every answer has of several.
func shared(answers [][]lab.Series) []string {
	counts := map[string]int{}
	asked := 0
	for _, answer := range answers {
		if len(answer) == 0 {
			continue
		}
		asked++
		for name := range answer[0].Labels {
			counts[name]++
		}
		if len(answers) == 1 {
			for _, s := range answer {
				for name := range s.Labels {
					counts[name] = asked
				}
			}
		}
	}
	var names []string
	for name, n := range counts {
		if n == asked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func cell(c boards.Column, label string, value float64, hasValue bool) string {
	switch {
	case c.Value != "" && !hasValue:
		return "<td></td>"
	case c.Value != "":
		return "<td>" + html.EscapeString(format(value, c.Unit)) + "</td>"
	}
	for _, m := range c.Texts {
		if r, ok := m.Options[label]; ok {
			return `<td style="color:` + named(r.Color) + `">` + html.EscapeString(r.Text) + "</td>"
		}
	}
	return "<td>" + html.EscapeString(label) + "</td>"
}
