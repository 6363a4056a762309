package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// column is a column of a table, whose lines are made of rows.
type column[Row any] struct {
	title string
	wide  bool // only in -o wide
	cell  func(Row) string
}

func narrow[Row any](columns []column[Row]) []column[Row] {
	var list []column[Row]
	for _, c := range columns {
		if !c.wide {
			list = append(list, c)
		}
	}
	return list
}

func printTable[Row any](w io.Writer, columns []column[Row], rows []Row) error {
	const gap = 2
	t := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	line := make([]string, len(columns))
	for i, c := range columns {
		line[i] = c.title
	}
	fmt.Fprintln(t, strings.Join(line, "\t"))
	for _, r := range rows {
		for i, c := range columns {
			line[i] = cmp.Or(printable(c.cell(r)), "-")
		}
		fmt.Fprintln(t, strings.Join(line, "\t"))
	}
	return t.Flush()
}
