package top

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"railhead/internal/golden"
)

// start is when the first of the samples in testdata was taken.
var start = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

func readFile(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func parse(tb testing.TB, text string, after time.Duration) *Scrape {
	tb.Helper()
	s, err := Parse([]byte(text), start.Add(after))
	if err != nil {
		tb.Fatal(err)
	}
	s.isFresh = true
	return s
}

// node returns what a node with a sick rail, one without a link, one that is
// not read any more, VFs and pods did in 10 seconds.
func node(tb testing.TB) *Frame {
	tb.Helper()
	return frameOf(tb, readFile(tb, "node-0s.prom"), readFile(tb, "node-10s.prom"))
}

// frameOf makes a frame of texts that came 10 seconds apart.
func frameOf(tb testing.TB, texts ...string) *Frame {
	tb.Helper()
	history := History{Window: DefaultWindow}
	for i, text := range texts {
		history.Add(parse(tb, text, time.Duration(i)*10*time.Second))
	}
	return history.Frame()
}

var firstChoice = Choice{View: Devices, Order: Worst, Unit: Bits}

// screenOf returns a screen that shows a frame, after some keys.
func screenOf(tb testing.TB, f *Frame, width, height int, keys ...string) *screen {
	tb.Helper()
	s := newScreen("agent "+DefaultAgent, newStyle(false), firstChoice)
	s.resize(width, height)
	if f != nil {
		s.show(f)
	}
	pressAll(s, keys...)
	return s
}

// pressAll presses keys; those of one character type it.
func pressAll(s *screen, keys ...string) (isEnd bool) {
	for _, key := range keys {
		text := key
		if len(key) > 1 {
			text = ""
		}
		isEnd = s.press(key, text)
	}
	return isEnd
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for size, wh := range map[string][2]int{"80x24": {80, 24}, "160x50": {160, 50}, "40x10": {40, 10}} {
		for name, keys := range map[string][]string{
			"devices":   nil,
			"functions": {"v", "s", "s", "s", "j", "j", "j"},
			"pods":      {"p", "u"},
			"workloads": {"w", "j"},
			"filter":    {"/", "r", "a", "i", "l", "3"},
			"keys":      {"?"},
			"columns":   {"?", "x"},
			"frozen":    {"f"},
		} {
			t.Run(size+"."+name, func(t *testing.T) {
				t.Parallel()
				s := screenOf(t, node(t), wh[0], wh[1], keys...)
				text := s.String()
				checkSize(t, text, wh[0], wh[1])
				golden.Equal(t, "testdata/"+size+"."+name+".txt", trimmed(text))
			})
		}
	}
}

// checkSize wants as many lines as there are, none of them too wide.
func checkSize(t *testing.T, text string, width, height int) {
	t.Helper()
	lines := strings.Split(text, "\n")
	if len(lines) != height {
		t.Errorf("%d lines, want %d", len(lines), height)
	}
	for _, line := range lines {
		if ansi.StringWidth(line) > width {
			t.Errorf("wider than %d: %q", width, line)
		}
	}
}

// trimmed drops spaces at the ends of lines, which editors do not keep.
func trimmed(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func TestPrint(t *testing.T) {
	t.Parallel()
	f := node(t)
	for _, view := range []View{Devices, Pods, Workloads} {
		for name, width := range map[string]int{"80": 80, "all": 0} {
			var b bytes.Buffer
			if err := f.Print(&b, Choice{View: view, Order: Worst, Unit: Bits}, width, false); err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/"+"once."+string(view)+"."+name+".txt", b.String())
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(f.Chosen(Choice{Order: Worst})); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/"+"once.json", b.String())
}
