package promql

import (
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"

	"railhead/internal/counters"
)

// metric is what is known of the series of a name.
type metric struct {
	counter bool
	labels  set
}

// Schema knows all metrics that a query may ask for.
type Schema struct {
	metrics map[string]metric
	parser  parser.Parser
}

// target are the labels that the scrape adds; cluster is there only where
// somebody configured it.
func target() set { return setOf("job", "instance", "cluster") }

// NewSchema makes a schema of the exporter's families.
func NewSchema(families []*counters.Family) *Schema {
	s := &Schema{metrics: map[string]metric{}, parser: parser.NewParser(parser.Options{})}
	share := scopeLabels(counters.Function).
		without(setOf("netdev")).
		union(setOf("pod_namespace", "pod_name", "owner_kind", "owner_namespace", "owner_name", "attribution"))
	pods := map[string]*counters.Family{}
	for _, f := range families {
		if f.Pod != "" {
			pods[f.Pod] = f
		}
	}
	for _, f := range families {
		labels := scopeLabels(f.Scope).union(setOf(f.Labels...))
		if of, ok := pods[f.Name]; ok {
			labels = share.union(setOf(of.Labels...))
		}
		s.add(f, labels.union(target()))
	}
	s.metrics["up"] = metric{labels: target()}
	s.metrics["ALERTS"] = metric{labels: target().union(setOf("alertname", "alertstate", "severity", "device", "port", "netdev", "owner_kind", "owner_namespace", "owner_name"))}
	return s
}

func (s *Schema) add(f *counters.Family, labels set) {
	switch f.Kind {
	case counters.Counter:
		s.metrics[f.Name+"_total"] = metric{counter: true, labels: labels}
	case counters.Histogram:
		s.metrics[f.Name+"_bucket"] = metric{counter: true, labels: labels.union(setOf("le"))}
		s.metrics[f.Name+"_sum"] = metric{counter: true, labels: labels}
		s.metrics[f.Name+"_count"] = metric{counter: true, labels: labels}
	default:
		s.metrics[f.Name] = metric{labels: labels}
	}
}

func scopeLabels(scope counters.Scope) set {
	switch scope {
	case counters.Function, counters.PhysicalPort:
		return setOf("device", "port", "netdev")
	case counters.WholeDevice:
		return setOf("device")
	default:
		return set{}
	}
}

// Record adds what a recording rule makes.
func (s *Schema) Record(name, query string) error {
	if _, ok := s.metrics[name]; ok {
		return fmt.Errorf("%s is there already", name)
	}
	labels, err := s.Labels(query)
	s.metrics[name] = metric{labels: setOf(labels...)}
	return err
}

// Labels returns the labels that the result of a query can have, and what is
// wrong with it: metrics and labels that are not there, rates of what is no
// counter, counters without a rate.
func (s *Schema) Labels(query string) ([]string, error) {
	expr, err := s.parser.ParseExpr(query)
	if err != nil {
		return nil, err
	}
	c := checker{schema: s}
	labels := c.labels(expr)
	return labels.sorted(), errors.Join(c.problems...)
}

// Names returns the metrics that a query asks for, in the order in which they
// stand there.
func (s *Schema) Names(query string) ([]string, error) {
	expr, err := s.parser.ParseExpr(query)
	if err != nil {
		return nil, err
	}
	var names []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, selector.Name)
		}
		return nil
	})
	return names, nil
}
