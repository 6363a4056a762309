package promql

import (
	"maps"
	"slices"
)

// set is a set of labels.
type set map[string]bool

func setOf(names ...string) set {
	s := make(set, len(names))
	for _, name := range names {
		s[name] = true
	}
	return s
}

func (s set) union(other set) set {
	all := maps.Clone(s)
	maps.Copy(all, other)
	return all
}

func (s set) without(other set) set {
	rest := maps.Clone(s)
	maps.DeleteFunc(rest, func(name string, _ bool) bool { return other[name] })
	return rest
}

func (s set) sorted() []string { return slices.Sorted(maps.Keys(s)) }
