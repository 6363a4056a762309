package lab

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// History is what all series of a cluster were, at equal distances of time.
type History struct {
	Start time.Time
	Step  time.Duration
	Steps int
	keep  func(name string) bool
	lines map[string]*line
}

// line is one series; where it was not there, its value is absent.
type line struct {
	labels labels.Labels
	values []float64
}

// metricName is the label that the name of a series is.
const metricName = "__name__"

// absent is no value: a NaN that no exporter makes.
func absent() float64 { return math.Float64frombits(0x7ff8_0000_0000_00aa) }

func isAbsent(v float64) bool { return math.Float64bits(v) == math.Float64bits(absent()) }

// NewHistory returns an empty one. It keeps the metrics that keep says, or all.
func NewHistory(start time.Time, step time.Duration, keep func(name string) bool) *History {
	return &History{Start: start, Step: step, keep: keep, lines: map[string]*line{}}
}

// add adds a scrape of a target at a step.
func (h *History) add(step int, target map[string]string, text []byte) error {
	h.Steps = max(h.Steps, step+1)
	parser := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("what %s serves: %w", target["instance"], err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := parser.Series()
		var of labels.Labels
		parser.Labels(&of)
		h.Set(step, withTarget(of, target), value)
	}
}

func withTarget(of labels.Labels, target map[string]string) labels.Labels {
	b := labels.NewBuilder(of)
	for name, value := range target {
		b.Set(name, value)
	}
	return b.Labels()
}

// Set sets the value of a series at a step.
func (h *History) Set(step int, of labels.Labels, value float64) {
	if h.keep != nil && !h.keep(of.Get(metricName)) {
		return
	}
	h.Steps = max(h.Steps, step+1)
	key := of.String()
	l := h.lines[key]
	if l == nil {
		l = &line{labels: of}
		h.lines[key] = l
	}
	for len(l.values) < step {
		l.values = append(l.values, absent())
	}
	l.values = append(l.values[:step], value)
}

func (h *History) sorted() []*line {
	var all []*line
	for _, key := range slices.Sorted(maps.Keys(h.lines)) {
		all = append(all, h.lines[key])
	}
	return all
}

// Input returns the series in the notation of promtool's unit tests: the series
// and its values, with a mark where it ended.
func (h *History) Input() []InputSeries {
	var all []InputSeries
	for _, l := range h.sorted() {
		all = append(all, InputSeries{Series: seriesOf(l.labels), Values: h.notation(l)})
	}
	return all
}

// seriesOf writes a series as both formats have it: name{label="value",…}.
func seriesOf(l labels.Labels) string {
	var b strings.Builder
	l.Range(func(of labels.Label) {
		if of.Name != metricName {
			fmt.Fprintf(&b, ",%s=%q", of.Name, of.Value)
		}
	})
	return l.Get(metricName) + "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// InputSeries is a series of promtool's unit tests.
type InputSeries struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

func (h *History) notation(l *line) string {
	words := make([]string, 0, h.Steps)
	for i := range h.Steps {
		switch {
		case i < len(l.values) && !isAbsent(l.values[i]):
			words = append(words, number(l.values[i]))
		case i > 0 && i <= len(l.values) && !isAbsent(l.values[i-1]):
			words = append(words, "stale")
		default:
			words = append(words, "_")
		}
	}
	return strings.Join(words, " ")
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
