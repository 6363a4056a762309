package main

import (
	"fmt"
	"strings"
)

// most is how many lines are printed, where that is possible: of long runs one
// sees no more than about a hundred. longest is how much of a line is printed.
const most, longest = 80, 300

// render has all failures with as much of each entry as there is room for.
func render(all []failure) string {
	var text string
	for _, lines := range []int{40, 20, 12, 8, 5, 3, 2, 1} {
		if text = renderWith(all, lines); strings.Count(text, "\n") <= most {
			break
		}
	}
	return text
}

// renderWith is render with at most so many lines of each entry.
func renderWith(all []failure, lines int) string {
	var text strings.Builder
	for _, f := range all {
		if f.title != "" {
			fmt.Fprintln(&text, f.title)
		}
		for _, e := range f.entries {
			for i, line := range e.lines {
				if i == lines {
					fmt.Fprintf(&text, "        … %d more lines\n", len(e.lines)-lines)
					break
				}
				fmt.Fprintf(&text, "    %.*s\n", longest, line)
			}
		}
	}
	return text.String()
}
