package top

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// titles is the line above the rows.
func titles(fit []*column, name int) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", markers))
	for i, c := range fit {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(pad(c.title, c.widthWith(name), c.isText))
	}
	return strings.TrimRight(b.String(), " ")
}

func (c *column) widthWith(name int) int {
	if c.key == nameKey {
		return name
	}
	return c.width
}

// name is what stands in the first column.
func (l *line) name() string {
	if !l.isFunction {
		return l.Name
	}
	return strings.TrimRight("  "+l.Name+" "+strings.ToUpper(l.Function)+" "+l.VF, " ")
}

// mark tells a bad row where there are no colours.
func (l *line) mark() string {
	switch l.Severity {
	case Critical:
		return "!"
	case Warning:
		return "*"
	default:
		return " "
	}
}

// row renders one row. Colours of cells could not be read under the cursor,
// and would tell too much of a row that is not of now.
func (s *screen) row(l *line, fit []*column, name int, isSelected bool) string {
	isOld := l.Stale != "" || s.failed != nil
	cursor := " "
	if isSelected {
		cursor = ">"
	}
	var b strings.Builder
	b.WriteString(cursor + s.colored(l.mark(), l.Severity, isSelected || isOld))
	for i, c := range fit {
		cell := c.cell(l, s.unit, name)
		if i > 0 {
			b.WriteByte(' ')
		}
		if c.level != nil {
			cell = s.colored(cell, c.level(&l.Row), isSelected || isOld)
		}
		b.WriteString(cell)
	}
	text := s.cut(strings.TrimRight(b.String(), " "))
	switch {
	case isSelected:
		return s.style.selected.Styled(text)
	case isOld:
		return s.style.dull.Styled(text)
	}
	return text
}

// cell returns a cell as wide as its column.
func (c *column) cell(l *line, u Unit, name int) string {
	text := c.text(&l.Row, u)
	if c.key == nameKey {
		text = l.name()
	}
	if text == "" {
		text = absent
	}
	return pad(printable(text), c.widthWith(name), c.isText)
}

func (s *screen) colored(text string, level Severity, isPlain bool) string {
	if isPlain || level == Fine {
		return text
	}
	return s.style.levels[level].Styled(text)
}

// pad makes text as wide as wanted, with what is cut off shown as "…".
func pad(text string, width int, isLeft bool) string {
	text = ansi.Truncate(text, width, "…")
	gap := strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if isLeft {
		return text + gap
	}
	return gap + text
}
