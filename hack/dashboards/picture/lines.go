package picture

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"

	"railhead/hack/dashboards/boards"
	"railhead/hack/dashboards/lab"
)

// axis is the room for the numbers at the left.
const axis = 62

// curve is a series on the way to a line.
type curve struct {
	name   string
	values []float64 // one a step; NaN where there is none
}

// curves lays the series of all queries on the steps of the view.
func curves(p *boards.Panel, answers [][]lab.Series, v View) []curve {
	var all []curve
	steps := int(v.Range/v.Step) + 1
	for i, answer := range answers {
		for _, s := range answer {
			c := curve{name: legend(p.Queries[i].Legend, s.Labels), values: make([]float64, steps)}
			for j := range c.values {
				c.values[j] = math.NaN()
			}
			for _, point := range s.Points {
				if j := int(math.Round(float64(point.Time.Sub(v.At.Add(-v.Range))) / float64(v.Step))); j >= 0 && j < steps {
					c.values[j] = point.Value
				}
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b curve) int { return strings.Compare(a.name, b.name) })
	return all
}

// legendLines is how much a legend may take below a graph.
const legendLines = 2

func drawLines(b *strings.Builder, p *boards.Panel, answers [][]lab.Series, v View, in box) {
	all := curves(p, answers, v)
	if len(all) == 0 {
		b.WriteString("<div class=none>No data</div>")
		return
	}
	if p.Stacked {
		stack(all)
	}
	top := niceTop(all)
	height := in.height - legendLines*15 - 4
	fmt.Fprintf(b, `<svg width="%d" height="%d">`, in.width, height)
	grid(b, p.Unit, top, v, box{in.width, height})
	for i := range slices.Backward(all) { // the first one on top, as what it is stacked below
		path, area := trace(all[i].values, top, box{in.width, height})
		opacity := 0.08
		if p.Stacked {
			opacity = 0.35
		}
		fmt.Fprintf(b, `<path d="%s" fill="%s" fill-opacity="%.2f"/><path d="%s" fill="none" stroke="%s"/>`, area, lineColor(i), opacity, path, lineColor(i))
	}
	b.WriteString("</svg>")
	legends(b, all, in.width)
}

// stack adds each curve to those before it.
func stack(all []curve) {
	for i := 1; i < len(all); i++ {
		for j, below := range all[i-1].values {
			switch {
			case math.IsNaN(all[i].values[j]):
				all[i].values[j] = below
			case !math.IsNaN(below):
				all[i].values[j] += below
			}
		}
	}
}

// niceTop is a round number above all values.
func niceTop(all []curve) float64 {
	highest := 0.0
	for _, c := range all {
		for _, v := range c.values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				highest = max(highest, v)
			}
		}
	}
	if highest == 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(highest)))
	for _, factor := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8} {
		if highest <= factor*unit {
			return factor * unit
		}
	}
	return 10 * unit
}

func grid(b *strings.Builder, unit string, top float64, v View, in box) {
	plot := in.height - 18
	const lines = 4
	for i := range lines + 1 {
		y := plot - i*(plot-6)/lines
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="#24282d"/><text x="%d" y="%d" text-anchor="end">%s</text>`,
			axis, in.width, y, y, axis-6, y+3, format(top*float64(i)/lines, unit))
	}
	for i := range lines {
		at := v.At.Add(-v.Range + v.Range*time.Duration(i)/lines)
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`, axis+(in.width-axis)*i/lines, in.height-4, at.UTC().Format("15:04"))
	}
}

// trace makes paths of a line and of the area below it. A gap ends a line.
func trace(values []float64, top float64, in box) (line, area string) {
	var l, a strings.Builder
	plot := float64(in.height - 18)
	from := -1
	position := func(i int) (x, y float64) {
		return axis + float64(i)*float64(in.width-axis-1)/float64(len(values)-1), plot - math.Min(values[i]/top, 1)*(plot-6)
	}
	end := func(to int) {
		if from < 0 {
			return
		}
		first, _ := position(from)
		last, _ := position(to)
		fmt.Fprintf(&a, "L%.1f %.1fL%.1f %.1fZ", last, plot, first, plot)
		from = -1
	}
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			end(i - 1)
			continue
		}
		x, y := position(i)
		command := "L"
		if from < 0 {
			from, command = i, "M"
		}
		fmt.Fprintf(&l, "%s%.1f %.1f", command, x, y)
		fmt.Fprintf(&a, "%s%.1f %.1f", command, x, y)
	}
	end(len(values) - 1)
	return l.String(), a.String()
}

// legends writes as many names as there is room for.
func legends(b *strings.Builder, all []curve, width int) {
	const glyph, mark = 6, 24 // of a letter, and of the colour before a name
	i := 0
	for range legendLines {
		b.WriteString("<div class=legend>")
		for room := width; i < len(all); i++ {
			room -= mark + glyph*len([]rune(all[i].name))
			if room < 0 && room != width-mark-glyph*len([]rune(all[i].name)) {
				break
			}
			fmt.Fprintf(b, `<i style="background:%s"></i>%s`, lineColor(i), html.EscapeString(all[i].name))
		}
		b.WriteString("</div>")
	}
}
