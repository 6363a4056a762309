//go:build linux

package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"railhead/hack/test/vm/plan"
)

// Status is how a guest test ended.
type Status string

// The ways in which a guest test ends. NotRun and Unfinished mean that its binary or its machine died.
const (
	Passed     Status = "pass"
	Failed     Status = "fail"
	Skipped    Status = "skip"
	NotRun     Status = "not run"
	Unfinished Status = "unfinished"
)

// TestResult is one top-level test of a guest.
type TestResult struct {
	Name    string
	Status  Status
	Seconds float64
	// Output is what the test and its subtests printed.
	Output string
	// UnearnedSkips are the tests, this one or below it, that skipped without saying that this is meant.
	UnearnedSkips []string
}

// event is one line of `go tool test2json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// parseEvents turns the events of one test binary into the results of the selected tests, in their order, and what the
// binary printed outside of tests.
func parseEvents(r io.Reader, selected []string) ([]TestResult, string, error) {
	results := make([]TestResult, len(selected))
	index := map[string]*TestResult{}
	for i, name := range selected {
		results[i] = TestResult{Name: name, Status: NotRun}
		index[name] = &results[i]
	}
	own := map[string]string{} // output of each test and subtest by itself
	var outside strings.Builder
	for events := json.NewDecoder(r); ; {
		var e event
		if err := events.Decode(&e); err == io.EOF {
			return results, outside.String(), nil
		} else if err != nil {
			return nil, "", fmt.Errorf("test events: %w", err)
		}
		top, _, _ := strings.Cut(e.Test, "/")
		result := index[top]
		if result == nil {
			outside.WriteString(e.Output)
			continue
		}
		own[e.Test] += e.Output
		result.Output += e.Output
		if e.Action == "skip" && !strings.Contains(own[e.Test], plan.EarnedSkip) {
			result.UnearnedSkips = append(result.UnearnedSkips, e.Test)
		}
		if e.Test == top {
			result.finish(e)
		}
	}
}

// finish takes over what an event of the test itself says of its status.
func (r *TestResult) finish(e event) {
	switch e.Action {
	case "run":
		r.Status = Unfinished
	case "pass", "fail", "skip":
		r.Status, r.Seconds = Status(e.Action), e.Elapsed
	}
}

// kernelTrouble finds the lines of a console log in which a kernel reports a fault of its own.
func kernelTrouble(console []byte) []string {
	fault := regexp.MustCompile(`WARNING: |BUG: |kernel BUG at|Oops|general protection fault|Kernel panic|` +
		`INFO: task .* blocked|unregister_netdevice: waiting|refcount_t: `)
	var lines []string
	for text := bufio.NewScanner(bytes.NewReader(console)); text.Scan(); {
		if line := text.Text(); strings.HasPrefix(line, "[") && fault.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
