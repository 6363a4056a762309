package top

import (
	"slices"
	"strings"
)

// The pages of help; 0 is none.
const (
	helpKeys = 1 + iota
	helpColumns
	helpPages // how many there are, with none
)

const keysHelp = `d p w, tab   devices, pods, workloads
up down j k  move; pgup pgdown home end too
/            filter by name, rail, state, pod, workload; esc clears it
s, < >       sort by the next column, by the one before
r            reverse the order
u            bit/s or B/s
v            the PF, VFs and SFs on each port by themselves
f, space     freeze, and go on
q            quit

! critical: a port is not active, or a queue pair gave up
* warning: pauses of 1% and more, retransmissions, drops, errors
- is what a driver does not count, or what cannot be known yet

Throughput is that since the last sample, all else that of the last minute or
so: per second. What is worst comes first; among what is fine, the busiest.`

// keyLines are the first page.
func (s *screen) keyLines() []string {
	lines := []string{s.style.title.Styled(s.cut("railhead top: keys")), ""}
	for key := range strings.SplitSeq(keysHelp, "\n") {
		lines = append(lines, s.cut("  "+key))
	}
	return s.helpPage(lines, "any key: the columns")
}

// columnLines are the second page: what the columns on the screen mean.
func (s *screen) columnLines() []string {
	lines := []string{s.style.title.Styled(s.cut("railhead top: columns of " + string(s.view))), ""}
	fit, _ := layout(s.view, s.width, 0)
	for _, c := range columns {
		if c.help != "" && slices.Contains(fit, c) {
			lines = append(lines, s.cut("  "+pad(c.title, 11, true)+c.help))
		}
	}
	return s.helpPage(lines, "any key: back")
}

// helpPage puts the last line where the last line of the screen is.
func (s *screen) helpPage(lines []string, last string) []string {
	lines = lines[:min(len(lines), max(0, s.height-1))]
	lines = append(lines, make([]string, max(0, s.height-1-len(lines)))...)
	return append(lines, s.cut(last))
}
