package sysfs

import "strings"

// Param is a parameter NAME=VALUE, or NAME alone with an empty value, as it
// was written.
type Param struct {
	Name, Value string
}

// Params is a list of parameters, such as the kernel command line.
type Params []Param

// Lookup returns the value that counts: that of the last parameter of the
// name, in which the kernel takes - and _ for the same.
func (p Params) Lookup(name string) (value string, ok bool) {
	name = underscores(name)
	for _, param := range p {
		if underscores(param.Name) == name {
			value, ok = param.Value, true
		}
	}
	return value, ok
}

// parseParams parses parameters as the kernel does for its command line and
// for modules: double quotes keep spaces together, wherever they stand, and
// are dropped around a value and around the whole. Nothing escapes a quote.
func parseParams(s string) Params {
	var params Params
	for {
		s = strings.TrimLeft(s, paramSpace)
		if s == "" {
			return params
		}
		n := paramLen(s)
		params = append(params, parseParam(s[:n]))
		s = s[n:]
	}
}

const paramSpace = " \t\n\v\f\r"

// paramLen returns the length of the parameter that s begins with.
func paramLen(s string) int {
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(paramSpace, s[i]) >= 0:
			return i
		}
	}
	return len(s)
}

func parseParam(s string) Param {
	s = unquote(s)
	// A name has at least one byte: =x is the name of a flag.
	if i := strings.IndexByte(s, '='); i > 0 {
		return Param{Name: s[:i], Value: unquote(s[i+1:])}
	}
	return Param{Name: s}
}

func unquote(s string) string {
	inside, ok := strings.CutPrefix(s, `"`)
	if !ok {
		return s
	}
	return strings.TrimSuffix(inside, `"`)
}

func underscores(s string) string { return strings.ReplaceAll(s, "-", "_") }
