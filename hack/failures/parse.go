package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// failure is a test that failed, or something else that kept a package from passing.
type failure struct {
	title   string
	entries []*entry
}

// entry is what was said at once.
type entry struct {
	indent int
	lines  []string
	whole  bool // all lines belong to it until go test says something
}

// The lines that go test puts around what tests say, and what ends a package
// without the word of a test. Packages are compiled beside tests of others.
var (
	turn    = regexp.MustCompile(`^=== (?:RUN|CONT|NAME|PAUSE) +(\S+)$`)
	result  = regexp.MustCompile(`^( *)--- (FAIL|PASS|SKIP|BENCH): (\S+) \([0-9.]+s\)$`)
	end     = regexp.MustCompile(`^(ok  |FAIL|\?   )\t(.+)$`)
	said    = regexp.MustCompile(`^( +)\S+\.go:[0-9]+: `)
	trouble = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE)`)
	compile = regexp.MustCompile(`^# \S+( \[\S+\])?$`)
)

// step is how much further in go test puts what belongs to something.
const step = 4

// parser is how far the reading of a log is.
type parser struct {
	all      []failure
	test     string              // who speaks
	tests    map[string][]*entry // what those of the package said that have not passed, by name
	failed   []string            // of the tests, in the order of their results
	troubles []failure           // of the package
	open     *entry              // that the next line may belong to
}

// parse finds what failed.
func parse(log string) []failure {
	p := &parser{tests: map[string][]*entry{}}
	for text := range strings.Lines(log) {
		p.line(strings.TrimRight(text, "\r\n"))
	}
	p.endPackage("", len(p.failed)+len(p.troubles) > 0)
	return p.all
}

func (p *parser) line(text string) {
	if m := turn.FindStringSubmatch(text); m != nil {
		p.test, p.open = m[1], nil
		return
	}
	// What is further in is of a test that was run by a test.
	if m := result.FindStringSubmatch(text); m != nil && len(m[1]) <= step*strings.Count(m[3], "/") {
		p.test, p.open = m[3], nil
		if m[2] == "FAIL" {
			p.failed = append(p.failed, m[3])
		} else {
			delete(p.tests, m[3])
		}
		return
	}
	if m := end.FindStringSubmatch(text); m != nil {
		p.endPackage(strings.ReplaceAll(m[2], "\t", " "), m[1] == "FAIL")
		return
	}
	p.content(text)
}

// content takes a line that go test did not print itself.
func (p *parser) content(text string) {
	m := said.FindStringSubmatch(text)
	switch {
	case m != nil && len(m[1]) <= step*(strings.Count(p.test, "/")+1):
		p.open = &entry{indent: len(m[1])}
		p.tests[p.test] = append(p.tests[p.test], p.open)
	case trouble.MatchString(text):
		p.open = &entry{whole: true}
		p.troubles = append(p.troubles, failure{entries: []*entry{p.open}})
	case compile.MatchString(text):
		p.open = &entry{whole: true}
		p.all = append(p.all, failure{entries: []*entry{p.open}})
	case p.open != nil && !p.open.whole && !strings.HasPrefix(text, strings.Repeat(" ", p.open.indent+step)):
		p.open = nil
	}
	if p.open != nil {
		p.open.lines = append(p.open.lines, strings.TrimPrefix(text, strings.Repeat(" ", p.open.indent)))
	}
}

// endPackage keeps what is known of a package that failed. Where the program
// of its tests ended early, some of these have no result.
func (p *parser) endPackage(name string, failed bool) {
	if failed {
		before := len(p.all)
		for _, test := range p.failed {
			p.all = append(p.all, failure{title: strings.TrimSpace("--- FAIL: " + test + "  " + name), entries: p.tests[test]})
			delete(p.tests, test)
		}
		delete(p.tests, "") // what was said before any test was named
		for _, test := range slices.Sorted(maps.Keys(p.tests)) {
			p.all = append(p.all, failure{title: strings.TrimSpace("--- no result: " + test + "  " + name), entries: p.tests[test]})
		}
		for _, f := range p.troubles {
			p.all = append(p.all, failure{title: strings.TrimSpace("FAIL: " + name), entries: f.entries})
		}
		if len(p.all) == before {
			p.all = append(p.all, failure{title: "FAIL: " + name})
		}
	}
	*p = parser{all: p.all, tests: map[string][]*entry{}}
}
