package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// chrome is how many lines are no rows: three above the titles, the titles,
// and two below.
const chrome = 6

// room is how many rows there is place for.
func (s *screen) room() int { return max(1, s.height-chrome) }

// String renders the screen, as many lines as it is high.
func (s *screen) String() string {
	switch s.help {
	case helpKeys:
		return s.fill(s.keyLines())
	case helpColumns:
		return s.fill(s.columnLines())
	}
	rows := s.rows()
	lines := []string{s.titleLine(), s.sourceLine(), s.statusLine(rows)}
	lines = append(lines, s.table(rows)...)
	above := max(0, s.height-2)
	lines = append(lines[:min(len(lines), above)], make([]string, max(0, above-len(lines)))...)
	return s.fill(append(lines, s.style.dull.Styled(s.cut(s.detail(rows))), s.bottomLine()))
}

// fill makes lines as many as there is place for.
func (s *screen) fill(lines []string) string {
	lines = append(lines, make([]string, max(0, s.height-len(lines)))...)
	return strings.Join(lines[:max(0, s.height)], "\n")
}

func (s *screen) cut(text string) string { return ansi.Truncate(text, s.width, "…") }

func (s *screen) titleLine() string {
	title := strings.Replace("railhead top   devices   pods   workloads ", " "+string(s.view)+" ", "["+string(s.view)+"]", 1)
	clock := ""
	if s.frame != nil {
		clock = s.frame.At.Format(time.TimeOnly)
	}
	if s.isFrozen {
		clock = "FROZEN at " + clock
	}
	return s.style.title.Styled(s.cut(spread(title, clock, s.width)))
}

// sourceLine says where numbers come from, or why none come, and how they are
// shown.
func (s *screen) sourceLine() string {
	if s.failed != nil {
		away := s.now.Sub(s.since).Round(time.Second)
		text := fmt.Sprintf("AWAY for %s, trying again: %s", away, printable(s.failed.Error()))
		return s.style.levels[Critical].Styled(s.cut(text))
	}
	if s.frame == nil {
		return s.cut(printable(s.source))
	}
	how := "by " + s.order
	if s.isReverse {
		how += " reversed"
	}
	how += fmt.Sprintf(", events over %.0fs", s.frame.Seconds)
	return s.cut(spread(printable(s.source), how, s.width))
}

// spread puts one text to the left and one to the right.
func spread(left, right string, width int) string {
	gap := max(2, width-ansi.StringWidth(left)-ansi.StringWidth(right))
	return left + strings.Repeat(" ", gap) + right
}

// statusLine counts what is shown.
func (s *screen) statusLine(rows []line) string {
	if s.frame == nil {
		return s.cut("waiting for the first answer")
	}
	var total Rates
	counts := map[Severity]int{}
	shown := 0
	for i := range rows {
		if !rows[i].isFunction {
			total.plus(&rows[i].Rates)
			counts[rows[i].Severity]++
			shown++
		}
	}
	kind := string(s.view)
	if shown == 1 {
		kind = strings.TrimSuffix(kind, "s")
	}
	text := fmt.Sprintf("%d %s: %d critical, %d warning   rx %s tx %s %s", shown, kind, counts[Critical], counts[Warning],
		s.unit.throughput(total.Receive), s.unit.throughput(total.Transmit), s.unit)
	if s.filter != "" {
		text += "   filter " + printable(s.filter)
	}
	return s.cut(text)
}

// table renders the titles and the rows in sight.
func (s *screen) table(rows []line) []string {
	if s.frame == nil {
		return nil
	}
	fit, name := layout(s.view, s.width, s.longest(rows))
	lines := []string{s.style.header.Styled(s.cut(titles(fit, name)))}
	if len(rows) == 0 {
		return append(lines, "", s.cut("  "+s.emptiness()))
	}
	for i := s.top; i < min(len(rows), s.top+s.room()); i++ {
		lines = append(lines, s.row(&rows[i], fit, name, i == s.selected))
	}
	return lines
}

// emptiness says why there are no rows.
func (s *screen) emptiness() string {
	switch {
	case s.filter != "" && s.isPrinted:
		return "nothing here has " + printable(s.filter)
	case s.filter != "":
		return "nothing here has " + printable(s.filter) + "; esc clears the filter"
	case s.view == Devices && s.frame.isLocal:
		return "there are no RDMA devices, or they cannot be read; railhead check says why"
	case s.view == Devices:
		return "there are no RDMA devices, or the agent could not read them; railhead check says why"
	case s.frame.isLocal:
		return "no pod uses RDMA here"
	default:
		return "no pod uses RDMA here, or the agent does not know of pods"
	}
}

// longest is how long the longest name is.
func (s *screen) longest(rows []line) int {
	longest := 0
	for i := range rows {
		longest = max(longest, ansi.StringWidth(rows[i].name()))
	}
	return longest
}

// detail says more of the row under the cursor.
func (s *screen) detail(rows []line) string {
	if s.selected >= len(rows) {
		return ""
	}
	r := &rows[s.selected].Row
	facts := []string{r.Name}
	for _, f := range [][2]string{
		{"rail ", r.Rail},
		{"", strings.Trim(r.State+"/"+r.PhysicalState, "/")},
		{"", r.LinkLayer},
		{"", r.Driver},
		{"stale: ", r.Stale},
		{"", r.Workload},
		{"counted by ", strings.Join(r.Attribution, ",")},
		{"on ", strings.Join(r.Devices, ",")},
		{"pods ", strings.Join(r.Pods, ",")},
	} {
		if f[1] != "" {
			facts = append(facts, f[0]+f[1])
		}
	}
	if n := len(r.Functions); n > 0 {
		facts = append(facts, fmt.Sprintf("with %d functions (v)", n-1))
	}
	return printable(strings.Join(facts, "  "))
}

func (s *screen) bottomLine() string {
	if s.isTyping {
		return s.cut("/" + printable(s.filter) + "_  enter keeps, esc clears")
	}
	return s.cut("q quit  ? help  d p w view  / filter  s r sort  u unit  v functions  f freeze")
}
