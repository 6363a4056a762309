package promql

import (
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// checker walks one expression.
type checker struct {
	schema   *Schema
	inRate   bool // whether what is looked at is the argument of a rate
	problems []error
}

func (c *checker) complain(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf(format, args...))
}

// labels returns which labels the series of an expression can have.
func (c *checker) labels(expr parser.Expr) set {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return c.selector(e)
	case *parser.MatrixSelector:
		return c.labels(e.VectorSelector)
	case *parser.SubqueryExpr:
		return c.labels(e.Expr)
	case *parser.ParenExpr:
		return c.labels(e.Expr)
	case *parser.UnaryExpr:
		return c.labels(e.Expr)
	case *parser.StepInvariantExpr:
		return c.labels(e.Expr)
	case *parser.AggregateExpr:
		return c.aggregate(e)
	case *parser.Call:
		return c.call(e)
	case *parser.BinaryExpr:
		return c.binary(e)
	default: // numbers and strings
		return set{}
	}
}

func (c *checker) selector(e *parser.VectorSelector) set {
	m, ok := c.schema.metrics[e.Name]
	if !ok {
		c.complain("there is no metric %q", e.Name)
		return set{}
	}
	switch {
	case m.counter && !c.inRate:
		c.complain("%s is a counter and stands without a rate", e.Name)
	case !m.counter && c.inRate:
		c.complain("%s is no counter and has no rate", e.Name)
	}
	for _, matcher := range e.LabelMatchers {
		if matcher.Name != "__name__" {
			c.wants(m.labels, e.Name, matcher.Name)
		}
	}
	return m.labels
}

func (c *checker) wants(have set, of string, names ...string) {
	for _, name := range names {
		if !have[name] {
			c.complain("%s has no label %q, but %q", of, name, have.sorted())
		}
	}
}

func (c *checker) aggregate(e *parser.AggregateExpr) set {
	of := c.labels(e.Expr)
	grouping := setOf(e.Grouping...)
	switch {
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return of
	case e.Op == parser.COUNT_VALUES:
		name, ok := e.Param.(*parser.StringLiteral)
		if !ok {
			c.complain("count_values without the name of a label")
			return grouping
		}
		c.wants(of, e.Expr.String(), e.Grouping...)
		return grouping.union(setOf(name.Val))
	case e.Without:
		return of.without(grouping)
	default:
		c.wants(of, e.Expr.String(), e.Grouping...)
		return grouping
	}
}

func (c *checker) call(e *parser.Call) set {
	switch e.Func.Name {
	case "rate", "increase", "irate":
		c.inRate = true
		defer func() { c.inRate = false }()
		return c.labels(e.Args[0])
	case "label_replace":
		of := c.labels(e.Args[0])
		added, _ := e.Args[1].(*parser.StringLiteral)
		if source, ok := e.Args[3].(*parser.StringLiteral); ok && source.Val != "" {
			c.wants(of, e.Args[0].String(), source.Val)
		}
		return of.union(setOf(added.Val))
	case "vector":
		return set{}
	}
	all := set{}
	for _, arg := range e.Args {
		all = all.union(c.labels(arg))
	}
	return all
}

// binary knows how Prometheus makes the labels of a result from those of both
// sides.
func (c *checker) binary(e *parser.BinaryExpr) set {
	left, right := c.labels(e.LHS), c.labels(e.RHS)
	m := e.VectorMatching
	if m == nil || e.LHS.Type() == parser.ValueTypeScalar || e.RHS.Type() == parser.ValueTypeScalar {
		return left.union(right)
	}
	if m.On {
		c.wants(left, e.LHS.String(), m.MatchingLabels...)
		c.wants(right, e.RHS.String(), m.MatchingLabels...)
	} else if e.Op != parser.LOR && !slices.Equal(left.without(setOf(m.MatchingLabels...)).sorted(), right.without(setOf(m.MatchingLabels...)).sorted()) {
		c.complain("%s never matches: labels %q and %q", e, left.sorted(), right.sorted())
	}
	switch {
	case e.Op == parser.LOR:
		return left.union(right)
	case e.Op == parser.LAND || e.Op == parser.LUNLESS:
		return left
	case m.Card == parser.CardManyToOne:
		c.wants(right, e.RHS.String(), m.Include...)
		return left.union(setOf(m.Include...))
	case m.Card == parser.CardOneToMany:
		c.wants(left, e.LHS.String(), m.Include...)
		return right.union(setOf(m.Include...))
	case m.On:
		return setOf(m.MatchingLabels...)
	default:
		return left.without(setOf(m.MatchingLabels...))
	}
}
