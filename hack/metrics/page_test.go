package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/counters"
)

const file = "../../docs/metrics.md"

// TestPageIsCurrent wants the page in the repository to be the one that the
// tables make.
func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	write(&want)
	if diff := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("run make generate: %s", diff)
	}
}

// TestPageIsComplete wants each family once in the tables of its subject, and
// tables whose rows have as many cells as their heads.
func TestPageIsComplete(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	write(&page)
	_, groups, _ := strings.Cut(page.String(), "\n## "+counters.Groups()[0].Title)
	for _, f := range counters.Families() {
		bare, _, _ := strings.Cut(metric(f), "{")
		n := strings.Count(groups, "\n| "+metric(f)+" |")
		if len(f.Labels) > 0 {
			n += strings.Count(groups, "\n| "+bare+"` |")
		}
		if n != 1 {
			t.Errorf("%s comes %d times", f.Name, n)
		}
	}
	cells := 0
	for line := range strings.Lines(page.String()) {
		switch {
		case !strings.HasPrefix(line, "|"):
			cells = 0
		case cells == 0:
			cells = strings.Count(line, "|")
		case strings.Count(line, "|") != cells:
			t.Errorf("a row of another number of cells: %s", line)
		}
	}
}

// TestLinks wants the links of the contents to lead to headings.
func TestLinks(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	write(&page)
	for _, link := range regexp.MustCompile(`\(#([^)]*)\)`).FindAllStringSubmatch(page.String(), -1) {
		found := false
		for line := range strings.Lines(page.String()) {
			title, isHeading := strings.CutPrefix(strings.TrimSpace(line), "## ")
			found = found || isHeading && anchor(title) == link[1]
		}
		if !found {
			t.Errorf("no heading for #%s", link[1])
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	if err := run(nil); err == nil {
		t.Error("no file to write is no error")
	}
}
