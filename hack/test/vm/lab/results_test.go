//go:build linux

package lab

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEvents(t *testing.T) {
	t.Parallel()
	const stream = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"p","Test":"TestGood/sub","Output":"said by sub\n"}
{"Action":"skip","Package":"p","Test":"TestGood/sub","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":1.5}
{"Action":"run","Package":"p","Test":"TestBad"}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0.25}
{"Action":"run","Package":"p","Test":"TestEarned"}
{"Action":"output","Package":"p","Test":"TestEarned","Output":"    x_test.go:1: earned skip: no such card\n"}
{"Action":"skip","Package":"p","Test":"TestEarned","Elapsed":0}
{"Action":"run","Package":"p","Test":"TestDied"}
{"Action":"output","Package":"p","Test":"TestDied","Output":"going\n"}
{"Action":"output","Package":"p","Output":"panic: lost\n"}
{"Action":"fail","Package":"p","Elapsed":2}
`
	want := []TestResult{
		{Name: "TestGood", Status: Passed, Seconds: 1.5, Output: "=== RUN   TestGood\nsaid by sub\n", UnearnedSkips: []string{"TestGood/sub"}},
		{Name: "TestBad", Status: Failed, Seconds: 0.25},
		{Name: "TestEarned", Status: Skipped, Output: "    x_test.go:1: earned skip: no such card\n"},
		{Name: "TestDied", Status: Unfinished, Output: "going\n"},
		{Name: "TestLast", Status: NotRun},
	}
	got, outside, err := parseEvents(strings.NewReader(stream), []string{"TestGood", "TestBad", "TestEarned", "TestDied", "TestLast"})
	if err != nil || outside != "panic: lost\n" {
		t.Errorf("outside %q, error %v", outside, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseEventsOfGarbage(t *testing.T) {
	t.Parallel()
	if _, _, err := parseEvents(strings.NewReader("not json"), nil); err == nil {
		t.Error("no error")
	}
}

func TestKernelTrouble(t *testing.T) {
	t.Parallel()
	const console = "SeaBIOS\r\n" +
		"[    0.100000] Warning: unmaintained driver\r\n" +
		"[    3.918564] ------------[ cut here ]------------\r\n" +
		"[    3.918570] WARNING: CPU: 0 PID: 1 at net/core/dev.c:1 f+0x1/0x2\r\n" +
		"guestinit: WARNING: not the kernel's\r\n" +
		"[   12.000000] Kernel panic - not syncing: Attempted to kill init!\r\n"
	want := []string{
		"[    3.918570] WARNING: CPU: 0 PID: 1 at net/core/dev.c:1 f+0x1/0x2",
		"[   12.000000] Kernel panic - not syncing: Attempted to kill init!",
	}
	if diff := cmp.Diff(want, kernelTrouble([]byte(console))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
