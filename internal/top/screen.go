package top

import (
	"slices"
	"time"
	"unicode/utf8"
)

// screen is all that is seen, apart from the terminal it is seen on.
type screen struct {
	width, height int
	source        string
	style         style

	frame  *Frame    // what is shown; nil before the first
	latest *Frame    // what would be, if it were not frozen
	failed error     // of the last scrape
	since  time.Time // of the last answer; of the first question where there was none
	now    time.Time // of the last answer or error

	view          View
	order         string
	isReverse     bool
	unit          Unit
	filter        string
	isTyping      bool // a filter
	isFrozen      bool
	isPrinted     bool // once, with nobody to press keys
	hasFunctions  bool // those on a PF are shown too
	help          int  // its page; 0 for none
	selected, top int  // rows
}

// How large a terminal is that does not say.
const (
	usualWidth  = 80
	usualHeight = 24
)

func newScreen(source string, style style, choice Choice) *screen {
	return &screen{
		width: usualWidth, height: usualHeight, source: source, style: style,
		view: choice.View, order: choice.Order, unit: choice.Unit, filter: choice.Filter,
	}
}

// Choice is how the table is shown at first.
type Choice struct {
	View   View
	Order  string // key of a column, or Worst
	Unit   Unit
	Filter string // words that a row must have; empty for all rows
}

// show takes another frame.
func (s *screen) show(f *Frame) {
	s.latest, s.since, s.now, s.failed = f, f.At, f.At, nil
	if !s.isFrozen {
		s.frame = f
	}
	s.clamp()
}

// fail notes that the source did not answer. What was shown stays.
func (s *screen) fail(err error, at time.Time) {
	s.failed, s.now = err, at
}

// resize takes the size of the terminal.
func (s *screen) resize(width, height int) {
	s.width, s.height = width, height
	s.clamp()
}

// press does what a key stands for, and tells whether that was the end. The
// text is what was typed; empty for a key that types nothing.
func (s *screen) press(key, text string) (isEnd bool) {
	if key == "ctrl+c" {
		return true
	}
	defer s.clamp()
	switch {
	case s.isTyping:
		s.typeFilter(key, text)
		return false
	case s.help > 0:
		s.help = (s.help + 1) % helpPages
		return false
	}
	if move, ok := s.moves()[key]; ok {
		s.selected += move
		return false
	}
	return s.command(key)
}

// command does what is neither typing nor moving.
func (s *screen) command(key string) (isEnd bool) {
	switch key {
	case "q":
		return true
	case "?", "h":
		s.help = helpKeys
	case "/":
		s.isTyping = true
	case "esc":
		s.filter = ""
	case "d":
		s.look(Devices)
	case "p":
		s.look(Pods)
	case "w":
		s.look(Workloads)
	case "tab":
		views := []View{Devices, Pods, Workloads}
		s.look(views[(slices.Index(views, s.view)+1)%len(views)])
	case "s", ">":
		s.nextOrder(1)
	case "<":
		s.nextOrder(-1)
	case "r":
		s.isReverse = !s.isReverse
	case "u":
		s.unit = map[Unit]Unit{Bits: Bytes, Bytes: Bits}[s.unit]
	case "v":
		s.hasFunctions = !s.hasFunctions
	case "f", "space":
		s.freeze()
	}
	return false
}

func (s *screen) freeze() {
	s.isFrozen = !s.isFrozen
	if !s.isFrozen {
		s.frame = s.latest
	}
}

// moves says how far a key goes down.
func (s *screen) moves() map[string]int {
	page, all := max(1, s.room()), len(s.rows())
	return map[string]int{
		"down": 1, "j": 1, "up": -1, "k": -1,
		"pgdown": page, "ctrl+f": page, "pgup": -page, "ctrl+b": -page,
		"home": -all, "g": -all, "end": all, "G": all,
	}
}

func (s *screen) typeFilter(key, text string) {
	switch key {
	case "enter":
		s.isTyping = false
	case "esc":
		s.isTyping, s.filter = false, ""
	case "ctrl+u":
		s.filter = ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(s.filter)
		s.filter = s.filter[:len(s.filter)-size]
	default:
		s.filter += text
	}
}

// look switches to another view, which may lack the column of the order.
func (s *screen) look(v View) {
	s.view, s.selected, s.top = v, 0, 0
	if !slices.Contains(Orders(v), s.order) {
		s.order = Worst
	}
}

// nextOrder goes on to the next column that is shown.
func (s *screen) nextOrder(step int) {
	keys := []string{Worst}
	fit, _ := layout(s.view, s.width, s.longest(s.rows()))
	for _, c := range fit {
		keys = append(keys, c.key)
	}
	s.order = keys[(max(0, slices.Index(keys, s.order))+step+len(keys))%len(keys)]
}

// clamp keeps the cursor on a row, and that row in sight.
func (s *screen) clamp() {
	rows := len(s.rows())
	s.selected = max(0, min(s.selected, rows-1))
	s.top = max(0, min(s.top, s.selected, rows-s.room()))
	s.top = max(s.top, s.selected-s.room()+1)
}

// line is a row as it is shown; one on a PF stands below it.
type line struct {
	Row

	isFunction bool
}

// rows are those of the view that the filter lets through, in their order.
func (s *screen) rows() []line {
	if s.frame == nil {
		return nil
	}
	all := map[View][]Row{Devices: s.frame.Devices, Pods: s.frame.Pods, Workloads: s.frame.Workloads}[s.view]
	rows := slices.Clone(all)
	order(rows, s.order, s.isReverse)
	var lines []line
	for i := range rows {
		if !rows[i].matches(s.filter) {
			continue
		}
		lines = append(lines, line{Row: rows[i]})
		if s.hasFunctions {
			for _, f := range rows[i].Functions {
				lines = append(lines, line{Row: f, isFunction: true})
			}
		}
	}
	return lines
}
