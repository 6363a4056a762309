package top

import "github.com/charmbracelet/x/ansi"

// style is how text looks. Without colour nothing is added to it: what colours
// tell is told by marks too.
type style struct {
	levels                        map[Severity]ansi.Style
	title, header, selected, dull ansi.Style
}

// newStyle uses the terminal's own sixteen colours, which suit its background.
func newStyle(hasColor bool) style {
	if !hasColor {
		return style{}
	}
	plain := ansi.NewStyle()
	return style{
		levels: map[Severity]ansi.Style{
			Watch:    plain.ForegroundColor(ansi.Cyan),
			Warning:  plain.ForegroundColor(ansi.Yellow),
			Critical: plain.Bold().ForegroundColor(ansi.Red),
		},
		title:    plain.Bold(),
		header:   plain.Bold(),
		selected: plain.Reverse(true),
		dull:     plain.Faint(),
	}
}
