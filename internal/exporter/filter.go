package exporter

import (
	"fmt"
	"regexp"
)

// filter lets names through that match include and do not match exclude. Nil
// lets all through, or keeps none back.
type filter struct {
	include, exclude *regexp.Regexp
}

// Filter is a pair of regular expressions (RE2), each for a whole name. An
// empty Include lets all names through, an empty Exclude keeps none back.
type Filter struct {
	Include string
	Exclude string
}

// compile returns the filter, or an error that names the field.
func (f Filter) compile() (filter, error) {
	include, err := anchored(f.Include)
	if err != nil {
		return filter{}, fmt.Errorf("include: %w", err)
	}
	exclude, err := anchored(f.Exclude)
	if err != nil {
		return filter{}, fmt.Errorf("exclude: %w", err)
	}
	return filter{include: include, exclude: exclude}, nil
}

func anchored(expression string) (*regexp.Regexp, error) {
	if expression == "" {
		return nil, nil //nolint:nilnil // no expression is no error
	}
	if _, err := regexp.Compile(expression); err != nil { // on its own, so that the error shows it as it was written
		return nil, err
	}
	return regexp.Compile(`^(?:` + expression + `)$`)
}

func (f filter) matches(name string) bool {
	if f.include != nil && !f.include.MatchString(name) {
		return false
	}
	return f.exclude == nil || !f.exclude.MatchString(name)
}
