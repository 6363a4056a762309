package exporter

import (
	"cmp"
	"slices"

	"railhead/internal/attribution"
	"railhead/internal/counters"
)

// lines are the rendered series of a tier of a device. A reader gives the same
// series in the same order each time, as long as all its questions are answered,
// so they are rendered and put in order once. The zero value has none.
type lines struct {
	series []*counters.Series // as they were read last
	list   []line             // in the order of exposition
	values []int32            // of each line: which of the series it has the value of
	pod    *attribution.Pod   // that the labels tell, in a compatibility mode
	parent string             // likewise
}

// rows are the samples of a subject as they are exposed.
func (l *lines) rows(e *Exporter, samples []counters.Sample, s subject) []row {
	if parent := nameOf(firstNetdev(s.parent)); !l.areOf(samples) || l.pod != s.pod || l.parent != parent {
		*l = lines{pod: s.pod, parent: parent}
		l.render(e, samples, s)
	}
	rows := make([]row, len(l.list))
	for i := range rows {
		rows[i] = row{&l.list[i], samples[l.values[i]].Value}
	}
	return rows
}

func (l *lines) areOf(samples []counters.Sample) bool {
	return slices.EqualFunc(l.series, samples, func(known *counters.Series, sample counters.Sample) bool { return known == sample.Series })
}

// render makes the lines of samples.
func (l *lines) render(e *Exporter, samples []counters.Sample, s subject) {
	l.series = make([]*counters.Series, len(samples))
	l.list = make([]line, 0, len(samples))
	shared := texts{}
	for i := range samples {
		l.series[i] = samples[i].Series
		l.list = e.appendLines(l.list, samples[i].Series, s, shared)
		for len(l.values) < len(l.list) {
			l.values = append(l.values, int32(i))
		}
	}
	l.sort()
}

// sort brings the lines into the order of exposition.
func (l *lines) sort() {
	order := make([]int, len(l.list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l.list[a].family.index, l.list[b].family.index) })
	list, values := make([]line, len(order)), make([]int32, len(order))
	for to, from := range order {
		list[to], values[to] = l.list[from], l.values[from]
	}
	l.list, l.values = list, values
}

// appendLines appends the lines that expose a series: its own unless the filter
// keeps it back, and those of compatibility modes.
func (e *Exporter) appendLines(dst []line, series *counters.Series, s subject, shared texts) []line {
	f := e.catalog.of(series.Family)
	labels := series.Labels
	if e.spiderpool && isSpiderpool(f.Family) {
		if !isFirstPort(s, labels) {
			return dst // they have no label that would tell ports apart
		}
		labels = e.spiderpoolLabels(series, s)
	}
	if f.isWanted {
		dst = append(dst, line{family: f, labels: shared.of(labels), scale: scaleOf(series)})
	}
	if e.spiderpool {
		dst = e.appendSpiderpoolClass(dst, series, s)
	}
	if e.nodeExporter {
		dst = e.appendNodeExporterLines(dst, series, shared)
	}
	return dst
}

func scaleOf(s *counters.Series) float64 { return cmp.Or(s.Scale, 1) }
