package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchunit"
)

// heapGrowth is how much larger the process of an agent is for each byte that is
// kept: a quarter until the garbage collector comes, which cmd/railhead sets, what
// is free between objects, and the tenth that Go's runtime does not give back. It
// was measured with one to four agents of denseNode in one process, after ten
// simulated minutes: 1.6.
const heapGrowth = 1.6

// printTable prints a line for each budget, and returns how many are not met.
func printTable(out io.Writer, list []budget, found *results) (missed int, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tOURS\tFLOOR OR PEER\tTAKES\tRATIO\tBUDGET\tMET")
	for _, b := range list {
		value, isMeasured := found.value(b)
		met := "yes"
		switch {
		case !isMeasured:
			met = "NOT MEASURED"
		case b.atMost == b.atLeast && b.against != "":
			met = "" // a figure to look at
		case b.atLeast > 0 && value < b.atLeast, b.atLeast == 0 && value > b.atMost:
			met = "NO"
		}
		if met == "NO" || !isMeasured {
			missed++
		}
		ours, theirs, ratio := found.columns(b, value, isMeasured)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.what, ours, b.against, theirs, ratio, b.limit(), met)
	}
	if err := w.Flush(); err != nil {
		return missed, err
	}
	for _, reason := range found.skipped {
		fmt.Fprintln(out, "NOT MEASURED: "+reason)
	}
	return missed, nil
}

// limit writes the budget.
func (b budget) limit() string {
	switch {
	case b.atLeast > 0:
		return "≥ " + format(b.atLeast, b.unit)
	case b.atMost == 0 && b.against != "":
		return ""
	}
	return "≤ " + format(b.atMost, b.unit)
}

// value is what a budget is for.
func (r *results) value(b budget) (float64, bool) {
	value, ok := r.median(b.benchmark, b.unit)
	if b.plusKept == "" {
		return value, ok
	}
	kept, isKept := r.median(b.plusKept, "kept-B")
	return value + heapGrowth*kept, ok && isKept
}

// columns are ours, what it was measured against, and how many times that it is.
func (r *results) columns(b budget, value float64, isMeasured bool) (ours, theirs, ratio string) {
	if !isMeasured {
		return "", "", ""
	}
	step, isRatio := ratioOf(b.unit)
	oursUnit := b.unit
	switch {
	case isRatio && strings.HasSuffix(b.unit, "-wall"):
		oursUnit = step + "ours-wall-sec"
	case isRatio || strings.HasPrefix(b.unit, "beside-"):
		oursUnit = step + "ours-sec"
	}
	own, ok := r.median(b.benchmark, oursUnit)
	if !ok { // a ratio of what is not told
		return format(value, b.unit), "", ""
	}
	ours = format(own, oursUnit)
	if b.plusKept != "" {
		ours = format(value, b.unit)
	}
	if strings.HasPrefix(b.unit, "beside-") {
		ours += " (" + format(value, b.unit) + " beside)"
	}
	for _, other := range []string{"floor", "peer"} {
		unit := strings.Replace(oursUnit, "ours-", other+"-", 1)
		if unit == oursUnit {
			unit = other + "-" + oursUnit
		}
		if their, ok := r.median(b.benchmark, unit); ok {
			if !isRatio {
				value = own / their
			}
			return ours, format(their, oursUnit), format(value, "x-")
		}
	}
	return ours, "", ""
}

// ratioOf says whether a unit is of a ratio, and of which step.
func ratioOf(unit string) (step string, isRatio bool) {
	before, _, isRatio := strings.Cut(unit, "x-")
	if !isRatio {
		return "", false
	}
	return before, before == "" || strings.HasSuffix(before, "-")
}

// format writes a value with its unit.
func format(value float64, unit string) string {
	_, isRatio := ratioOf(unit)
	switch {
	case isRatio:
		return fmt.Sprintf("%.3g x", value)
	case strings.HasSuffix(unit, "-sec"):
		return benchunit.Scale(value, benchunit.Decimal) + "s"
	case strings.HasSuffix(unit, "-B"):
		return benchunit.Scale(value, benchunit.Binary) + "B"
	case unit == "%core":
		return fmt.Sprintf("%.2f %% of a core", value)
	case value >= 100:
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%.3g %s", value, unit)
}
