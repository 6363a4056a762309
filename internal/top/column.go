package top

import (
	"cmp"
	"slices"
	"strings"
)

// View is what the rows are.
type View string

// The views.
const (
	Devices   View = "devices"
	Pods      View = "pods"
	Workloads View = "workloads"
)

// Worst is the order by what is wrong.
const Worst = "worst"

// column is a column of the table.
type column struct {
	key    string // by which it is chosen for the order; unique
	title  string
	help   string
	width  int
	views  []View
	rank   int // the lower, the longer it stays on a narrow terminal
	isText bool
	text   func(*Row, Unit) string
	number func(*Row) Rate     // what it is ordered by; nil for text
	level  func(*Row) Severity // how bad the cell is; nil where that cannot be
}

// Orders returns the keys that a view can be ordered by.
func Orders(v View) []string {
	keys := []string{Worst}
	for _, c := range columns {
		if slices.Contains(c.views, v) {
			keys = append(keys, c.key)
		}
	}
	return keys
}

// order sorts rows: numbers from the greatest, text from A, or the other way.
// What is not known is last both ways.
func order(rows []Row, key string, isReverse bool) {
	compare := worstFirst
	isUnknown := func(*Row) bool { return false }
	if i := slices.IndexFunc(columns, func(c *column) bool { return c.key == key }); i >= 0 {
		compare, isUnknown = columns[i].compare, columns[i].isUnknown
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		switch x, y := isUnknown(&a), isUnknown(&b); {
		case x && y:
			return 0
		case x:
			return 1
		case y:
			return -1
		case isReverse:
			return compare(b, a)
		}
		return compare(a, b)
	})
}

func (c *column) compare(a, b Row) int {
	if c.number == nil {
		return compareNames(c.text(&a, Bits), c.text(&b, Bits))
	}
	return cmp.Compare(c.number(&b).value, c.number(&a).value)
}

func (c *column) isUnknown(r *Row) bool {
	if c.number == nil {
		return c.text(r, Bits) == ""
	}
	return !c.number(r).isKnown
}

const (
	nameMin  = 12 // characters of a name that are always shown
	nameMost = 44
	markers  = 2 // for the cursor and the mark of a bad row
)

// layout chooses the columns of a view that fit, and how wide each is. The
// first holds names as long as they are, if there is room.
func layout(v View, width int, longest int) (fit []*column, name int) {
	var candidates []*column
	for _, c := range columns {
		if slices.Contains(c.views, v) && c.key != nameKey {
			candidates = append(candidates, c)
		}
	}
	name = min(max(longest, nameMin), nameMost, max(width*2/5-markers, nameMin))
	slices.SortStableFunc(candidates, func(a, b *column) int { return cmp.Compare(a.rank, b.rank) })
	left := width - markers - name
	var chosen []*column
	for _, c := range candidates {
		if left < c.width+1 {
			break
		}
		left -= c.width + 1
		chosen = append(chosen, c)
	}
	for _, c := range columns {
		if c.key == nameKey || slices.Contains(chosen, c) {
			fit = append(fit, c)
		}
	}
	return fit, name + min(left, max(longest-name, 0))
}

// matches tells whether a row has all words of a filter, in whatever case.
func (r *Row) matches(filter string) bool {
	facts := append([]string{r.Name, string(r.Severity), r.State, r.LinkLayer, r.Netdev, "rail" + r.Rail, r.Driver, r.Workload}, r.Devices...)
	for _, f := range r.Functions {
		facts = append(facts, f.Name, f.Netdev)
	}
	text := strings.ToLower(strings.Join(append(facts, r.Pods...), "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
