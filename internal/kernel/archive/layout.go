package archive

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// layout decides which directories get a table, such that the archive is as
// cheap as it can be. An item stands in the table of the nearest directory
// above it that has one, under a path that is longer the farther that is away,
// or as an entry of its own; a table costs the line with its name.
//
// The cost is in bytes, and [perStep] for what they do not show.
type layout struct {
	costs   map[place]int
	entries []entry
}

// perStep is the cost of each directory between a table and an item in it: it
// keeps things apart that have nothing in common but a long way.
const perStep = 2

// place is a directory below a table; the table is nil where there is none.
type place struct {
	dir, table *dirNode
}

// entry is an entry of the archive, in the place of the first item in it.
type entry struct {
	order int
	file  txtar.File
}

// impossible is the cost of what cannot be; it can be added up.
const impossible = math.MaxInt32

func layOut(root *dirNode) []txtar.File {
	l := &layout{costs: map[place]int{}}
	l.write(root, nil)
	slices.SortFunc(l.entries, func(a, b entry) int { return cmp.Compare(a.order, b.order) })
	files := make([]txtar.File, 0, len(l.entries))
	for _, e := range l.entries {
		files = append(files, e.file)
	}
	return files
}

// cost is what a directory takes.
func (l *layout) cost(p place) int {
	if c, ok := l.costs[p]; ok {
		return c
	}
	c := min(l.costWithin(p), l.costOfTable(p.dir))
	l.costs[p] = c
	return c
}

// costOfTable is the cost of a directory with a table of its own.
func (l *layout) costOfTable(d *dirNode) int {
	name := entryName{kind: tableEntry, name: d.path}
	if checkEntry(name, "") != nil {
		return impossible
	}
	return costOfEntry(name, "") + l.costWithin(place{dir: d, table: d})
}

// costWithin is the cost of what is in a directory, without one.
func (l *layout) costWithin(p place) int {
	sum := 0
	for _, i := range p.dir.items {
		sum += min(costOfRow(i, p.table), costOfEntry(i.entry()))
	}
	for _, d := range p.dir.dirs {
		sum += l.cost(place{dir: d, table: p.table})
	}
	return sum
}

func costOfEntry(name entryName, data string) int {
	return len("-- ") + len(name.String()) + len(" --\n") + len(data)
}

func costOfRow(i *item, table *dirNode) int {
	line, ok := rowOf(i, table)
	if !ok {
		return impossible
	}
	return len(line) + len("\n") + perStep*strings.Count(i.path[len(table.path)+1:], "/")
}

// rowOf is an item as a line of a table, if it can be one.
func rowOf(i *item, table *dirNode) (line string, ok bool) {
	if table == nil {
		return "", false
	}
	r := row{name: strings.TrimPrefix(i.path, table.path+"/"), text: i.text, isLink: i.isLink}
	if !i.isLink {
		r.text, ok = strings.CutSuffix(i.text, "\n")
		if !ok || strings.Contains(r.text, "\n") {
			return "", false
		}
	}
	line = r.String()
	read, err := parseRow(line)
	return line, err == nil && read == r && len(txtar.Parse([]byte(line)).Files) == 0
}

// write writes a directory that lies below a table, and returns those of its
// items that stand in that table.
func (l *layout) write(d, table *dirNode) []*item {
	if len(d.dirs)+len(d.items) == 0 && d.path != "." {
		l.entry(d.order, entryName{kind: directoryEntry, name: d.path}, "")
		return nil
	}
	own := l.costOfTable(d) <= l.costWithin(place{dir: d, table: table})
	if own {
		table = d
	}
	var rows []*item
	for _, i := range d.items {
		if costOfRow(i, table) <= costOfEntry(i.entry()) {
			rows = append(rows, i)
			continue
		}
		name, data := i.entry()
		l.entry(i.order, name, data)
	}
	for _, sub := range d.dirs {
		rows = append(rows, l.write(sub, table)...)
	}
	if own {
		l.table(d, rows)
		return nil
	}
	return rows
}

// table writes the table of a directory.
func (l *layout) table(d *dirNode, rows []*item) {
	slices.SortFunc(rows, func(a, b *item) int { return cmp.Compare(a.order, b.order) })
	var lines strings.Builder
	for _, i := range rows {
		line, _ := rowOf(i, d)
		lines.WriteString(line + "\n")
	}
	l.entry(rows[0].order, entryName{kind: tableEntry, name: d.path}, lines.String())
}

func (l *layout) entry(order int, name entryName, data string) {
	l.entries = append(l.entries, entry{order: order, file: txtar.File{Name: name.String(), Data: []byte(data)}})
}
