package attachbench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// table is the lines that are printed.
type table struct {
	lines  [][7]string
	missed int
}

// limit is a budget: what a value has to be at most, or at least.
type limit struct {
	atMost, atLeast float64 // one of them; 0: not this one
	unit            string
}

func (l limit) String() string {
	sign, value := "≤", l.atMost
	if l.atLeast > 0 {
		sign, value = "≥", l.atLeast
	}
	return fmt.Sprintf("%s %s%s", sign, figure(value), l.unit)
}

func (l limit) met(value float64) bool {
	if l.atLeast > 0 {
		return value >= l.atLeast
	}
	return value <= l.atMost
}

// add adds a line without a budget.
func (t *table) add(what, ours, against, theirs, ratio string) {
	t.lines = append(t.lines, [7]string{what, ours, against, theirs, ratio})
}

// judge adds a budget to the last line.
func (t *table) judge(value float64, l limit) { t.judgeAt(-1, value, l) }

// judgeAt adds a budget to a line, counted from the end: -1 is the last.
func (t *table) judgeAt(from int, value float64, l limit) {
	met := "yes"
	if !l.met(value) {
		met = "NO"
		t.missed++
	}
	line := &t.lines[len(t.lines)+from]
	line[5], line[6] = l.String(), met
}

// print prints all lines.
func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tOURS\tAGAINST\tTAKES\tRATIO\tBUDGET\tMET")
	for _, l := range t.lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l[0], l[1], l[2], l[3], l[4], l[5], l[6])
	}
	return w.Flush()
}

// figure writes a number with three digits that count.
func figure(value float64) string {
	if value >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}

// String writes times.
func (c cost) String() string {
	return fmt.Sprintf("%s (%s CPU)", milliseconds(c.wall), milliseconds(c.cpu))
}

func milliseconds(d time.Duration) string {
	return figure(float64(d.Microseconds())/1e3) + " ms"
}

// median is the middle one of costs, of the clock and of CPU time.
func median(samples []sample, of func(sample) cost) cost {
	var walls, cpus []time.Duration
	for _, s := range samples {
		walls, cpus = append(walls, of(s).wall), append(cpus, of(s).cpu)
	}
	slices.SortFunc(walls, cmp.Compare)
	slices.SortFunc(cpus, cmp.Compare)
	return cost{walls[len(walls)/2], cpus[len(cpus)/2]}
}

// per is how many times another cost one is, of the clock and of CPU time.
func (c cost) per(other cost) (wall, cpu float64) {
	return float64(c.wall) / float64(max(other.wall, 1)), float64(c.cpu) / float64(max(other.cpu, 1))
}

func adding(s sample) cost   { return s.add }
func deleting(s sample) cost { return s.del }
