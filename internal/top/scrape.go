package top

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Scrape is what a source told at one moment. It is immutable.
type Scrape struct {
	At time.Time

	asked    time.Time // what the next scrape has and this one has not was read later
	isFresh  bool      // all values were read for this scrape
	isAgents bool      // it has what railhead's agents tell of themselves
	passes   float64   // how often the agent has read the traffic of a card

	subjects map[subject]map[string][]point // by family
	values   map[string]float64             // of counters, by the key of their series
	ages     map[string]time.Duration       // how old the values of a device were
}

// subject is who a series is about: a port of a device, or a pod's share of one.
// The port is empty for what is about a whole device.
type subject struct {
	pod          podName // zero for a device itself
	device, port string
}

type podName struct{ namespace, name string }

// point is one series of a subject.
type point struct {
	key    string // tells it from all others, and is the same in every scrape
	labels map[string]string
	value  float64
}

// Parse reads metrics in the Prometheus text format. What top does not show is
// skipped, and so is a value that no counter or gauge can have here: infinite,
// negative or not a number.
func Parse(text []byte, at time.Time) (*Scrape, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the answer is not in the Prometheus text format: %w", err)
	}
	s := &Scrape{
		At:       at,
		asked:    at,
		subjects: map[subject]map[string][]point{},
		values:   map[string]float64{},
		ages:     map[string]time.Duration{},
	}
	for name := range shownFamilies() {
		if family := families[name]; family != nil {
			for _, m := range family.GetMetric() {
				s.add(name, m)
			}
		}
	}
	s.isAgents = families[buildInfo] != nil || len(s.values) > 0
	for _, m := range families[collectDuration].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "collector" && l.GetValue() == "traffic" {
				s.passes += float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return s, nil
}

func (s *Scrape) add(family string, m *dto.Metric) {
	value, ok := valueOf(m)
	if !ok {
		return
	}
	p := point{key: keyOf(family, m), labels: make(map[string]string, len(m.GetLabel())), value: value}
	for _, pair := range m.GetLabel() {
		p.labels[pair.GetName()] = pair.GetValue()
	}
	if _, isTwice := s.values[p.key]; isTwice {
		return
	}
	s.values[p.key] = value
	if family == sampleAge {
		s.ages[p.labels["device"]] = seconds(value)
		return
	}
	about := subject{
		pod:    podName{p.labels["pod_namespace"], p.labels["pod_name"]},
		device: p.labels["device"],
		port:   p.labels["port"],
	}
	if s.subjects[about] == nil {
		s.subjects[about] = map[string][]point{}
	}
	s.subjects[about][family] = append(s.subjects[about][family], p)
}

// valueOf returns the value of a counter or gauge.
func valueOf(m *dto.Metric) (value float64, ok bool) {
	switch {
	case m.Counter != nil:
		value = m.GetCounter().GetValue()
	case m.Gauge != nil:
		value = m.GetGauge().GetValue()
	case m.Untyped != nil:
		value = m.GetUntyped().GetValue()
	default:
		return 0, false
	}
	return value, value >= 0 && !math.IsInf(value, 0)
}

// keyOf names a series, however its labels are ordered.
func keyOf(family string, m *dto.Metric) string {
	pairs := slices.SortedFunc(slices.Values(m.GetLabel()), func(a, b *dto.LabelPair) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	var b strings.Builder
	b.WriteString(family)
	for _, p := range pairs {
		b.WriteString("\xff" + p.GetName() + "\xff" + p.GetValue()) // no UTF-8 has this byte
	}
	return b.String()
}

// seconds turns seconds into a duration; what is longer than a year counts as
// one.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(s, year) * float64(time.Second))
}

// sampledAt says when the values of a device were read from the kernel.
func (s *Scrape) sampledAt(device string) time.Time { return s.At.Add(-s.ages[device]) }

// about returns all subjects in the order of their names.
func (s *Scrape) about() []subject {
	return slices.SortedFunc(maps.Keys(s.subjects), func(a, b subject) int {
		return cmp.Or(
			compareNames(a.pod.namespace, b.pod.namespace), compareNames(a.pod.name, b.pod.name),
			compareNames(a.device, b.device), compareNames(a.port, b.port),
		)
	})
}

// get returns the first series of a family about a subject.
func (s *Scrape) get(about subject, family string) (point, bool) {
	if points := s.subjects[about][family]; len(points) > 0 {
		return points[0], true
	}
	return point{}, false
}
