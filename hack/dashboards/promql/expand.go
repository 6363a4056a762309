// Package promql understands the queries of dashboards and rules as far as it
// takes to find their mistakes before a Prometheus does: it replaces Grafana's
// variables, and knows which labels come out of an expression.
package promql

import (
	"maps"
	"regexp"
	"strings"
)

// variables are replaced in a query as Grafana does, $name and ${name}.
func variable() *regexp.Regexp {
	return regexp.MustCompile(`\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))`)
}

// Expand replaces Grafana's variables in a query. It returns the names of those
// that have no value too.
func Expand(query string, values map[string]string) (expanded string, unknown []string) {
	missing := map[string]bool{}
	expanded = variable().ReplaceAllStringFunc(query, func(found string) string {
		name := strings.Trim(found, "${}")
		value, ok := values[name]
		if !ok {
			missing[name] = true
			return found
		}
		return value
	})
	for name := range maps.Keys(missing) {
		unknown = append(unknown, name)
	}
	return expanded, unknown
}
