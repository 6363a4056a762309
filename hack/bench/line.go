package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"golang.org/x/perf/benchunit"
)

// line is what is printed of a budget.
type line struct {
	ours, other, ratio, budget string
	isMeasured, isMet          bool
}

// printTable prints a line for each budget, and returns how many are not met.
func printTable(out io.Writer, list []budget, found results) (missed int, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tOURS\tFLOOR OR PEER\tTAKES\tRATIO\tBUDGET\tMET")
	for _, b := range list {
		l := judge(b, found)
		met := "yes"
		switch {
		case !l.isMeasured:
			met = "not measured"
		case !l.isMet:
			met = "NO"
		}
		if met != "yes" {
			missed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.what, l.ours, b.against, l.other, l.ratio, l.budget, met)
	}
	return missed, w.Flush()
}

// judge holds what was measured against a budget. Beside a time or an amount
// stands how many times what it was measured against that is, if anything.
func judge(b budget, found results) line {
	var l line
	value, isMeasured := found.value(b)
	l.isMeasured, l.isMet = isMeasured, isMeasured && value <= b.atMost
	l.budget = "≤ " + b.figure.format(b.atMost)
	if !isMeasured {
		return l
	}
	switch b.figure {
	case allocated, core, resident, residentAll:
		l.ours = b.figure.format(value)
		return l
	}
	ours, _ := found.median(b.benchmark, "ours-sec")
	l.ours = cpu.format(ours)
	if b.figure == beside {
		l.ours += " (" + beside.format(value) + ")"
	}
	for _, other := range []string{"floor", "peer"} {
		if theirs, ok := found.median(b.benchmark, other+"-sec"); ok {
			ratio, _ := found.median(b.benchmark, "x-"+other)
			l.other, l.ratio = cpu.format(theirs), floors.format(ratio)
		}
	}
	return l
}

// value is what a budget is for.
func (r results) value(b budget) (float64, bool) {
	switch b.figure {
	case floors:
		return r.median(b.benchmark, "x-floor")
	case peers:
		return r.median(b.benchmark, "x-peer")
	case cpu:
		return r.median(b.benchmark, "ours-sec")
	case beside:
		ours, ok := r.median(b.benchmark, "ours-sec")
		floor, _ := r.median(b.benchmark, "floor-sec")
		return ours - floor, ok
	case allocated:
		return r.median(b.benchmark, "ours-B")
	case core:
		return r.median(b.benchmark, "%core")
	}
	kept, ok := r.median(b.benchmark, "kept-B")
	idle := idleWithout
	if b.figure == residentAll {
		idle = idleWith
	}
	process, isIdle := r.median(idle, "resident-B")
	return process + heapGrowth*kept, ok && isIdle
}

// format writes a value of a figure with its unit.
func (f figure) format(value float64) string {
	switch f {
	case floors, peers:
		return fmt.Sprintf("%.3g x", value)
	case cpu:
		return benchunit.Scale(value, benchunit.Decimal) + "s"
	case beside:
		return benchunit.Scale(value, benchunit.Decimal) + "s beside"
	case core:
		return fmt.Sprintf("%.2f %% of a core", value)
	}
	return benchunit.Scale(value, benchunit.Binary) + "B"
}
