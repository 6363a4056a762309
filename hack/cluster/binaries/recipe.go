package binaries

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// recipe makes the programs of a family.
type recipe interface {
	family() Family
	// inputs are everything that decides what comes out.
	inputs() []string
	// space is about how much disk making takes, in bytes.
	space() int64
	// fetch gets what the network has to be asked for, where that can be done apart. It may run beside others.
	fetch(ctx context.Context) error
	// make writes the programs into dir and returns their versions by name; scratch is emptied afterwards.
	make(ctx context.Context, dir, scratch string) (versions map[string]string, err error)
}

// recipes are those of the families, or of clusters if none is named, in the order
// in which they are made: what takes long comes last.
func (m *maker) recipes(families []Family) ([]recipe, error) {
	for _, f := range families {
		if !slices.Contains(allFamilies, f) {
			return nil, fmt.Errorf("family %q: want one of %s", f, strings.Join(names(allFamilies), ", "))
		}
	}
	if len(families) == 0 {
		families = ofClusters
	}
	var all []recipe
	for _, f := range allFamilies {
		if !slices.Contains(families, f) {
			continue
		}
		r, err := m.recipe(f)
		if err != nil {
			return nil, fmt.Errorf("programs of %s: %w", f, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (m *maker) recipe(f Family) (recipe, error) {
	if f == Debian {
		return &packages{dir: m.aptDir(), log: m.log}, nil
	}
	return newModule(m.golang, f, modules[f], m.log)
}

func names(families []Family) []string {
	var all []string
	for _, f := range families {
		all = append(all, string(f))
	}
	return all
}
