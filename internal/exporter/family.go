package exporter

import (
	"strings"

	"railhead/internal/counters"
)

// family is a family as it is exposed.
type family struct {
	*counters.Family

	index    int    // counts the families as they came
	isLate   bool   // it came while devices were read
	isWanted bool   // the filter lets it through
	sample   string // the name of its samples: rdma_out_of_buffer_total
}

func newFamily(f *counters.Family, index int, filter filter) *family {
	sample := sampleName(f)
	return &family{Family: f, index: index, isWanted: filter.matches(sample), sample: sample}
}

func sampleName(f *counters.Family) string {
	if f.Kind == counters.Counter {
		return f.Name + "_total"
	}
	return f.Name
}

// appendMetadata writes what a format says of the family. It is written at each
// scrape, because most families are of drivers that the node does not have.
func (f *family) appendMetadata(b []byte, isOpen bool) []byte {
	name, kind, unit := f.sample, f.kind("untyped"), ""
	if isOpen {
		name, kind, unit = f.openMetadata()
	}
	if f.Help != "" {
		b = append(append(append(b, "# HELP "...), name...), ' ')
		b = append(appendHelp(b, f.Help, isOpen), '\n')
	}
	b = append(append(append(b, "# TYPE "...), name...), ' ')
	b = append(append(b, kind...), '\n')
	if unit != "" {
		b = append(append(append(b, "# UNIT "...), name...), ' ')
		b = append(append(b, unit...), '\n')
	}
	return b
}

// kind is what both formats call the kind of the family; unknown where they have
// no name for it. The text format knows neither units nor families of
// information.
func (f *family) kind(unknown string) string {
	switch f.Kind {
	case counters.Counter:
		return "counter"
	case counters.Gauge, counters.Info:
		return "gauge"
	}
	return unknown
}

// openMetadata is what OpenMetrics says of the family, whose name is that of its
// samples without _total or _info. It lets only a unit be told with which the
// name ends, and information only be called so that ends with _info.
func (f *family) openMetadata() (name, kind, unit string) {
	if short, ok := strings.CutSuffix(f.Name, "_info"); ok && f.Kind == counters.Info {
		return short, "info", ""
	}
	if unit = f.Unit; !strings.HasSuffix(f.Name, "_"+unit) {
		unit = ""
	}
	return f.Name, f.kind("unknown"), unit
}

// appendHelp writes a help text; only OpenMetrics escapes quotes in one.
func appendHelp(b []byte, help string, isOpen bool) []byte {
	for i := range len(help) {
		switch c := help[i]; {
		case c == '\\', c == '"' && isOpen:
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		default:
			b = append(b, c)
		}
	}
	return b
}
