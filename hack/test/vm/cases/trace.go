package cases

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// tracing is the directory of the kernel's tracer.
const tracing = "/sys/kernel/tracing"

// NetNSTrace is the kernel's own account of the moments at which network namespaces lose the last that kept them alive:
// a process, a mount, an open file or a socket. What the kernel then has to take down takes it longer, and the longer
// the more else the machine does.
type NetNSTrace struct{}

// TraceNetNS begins an account; it ends with the test.
func TraceNetNS(t *testing.T) NetNSTrace {
	t.Helper()
	Run(t, "mount", "-t", "tracefs", "tracefs", tracing)
	t.Cleanup(func() { Run(t, "umount", tracing) })
	set := func(file, value string) { WriteFile(t, filepath.Join(tracing, file), value) }
	set("trace_clock", "mono")
	set("kprobe_events", "p:lab/end __put_net") // which the last one calls that lets go of a namespace
	t.Cleanup(func() {
		set("events/lab/end/enable", "0")
		set("kprobe_events", "")
	})
	set("events/lab/end/enable", "1")
	return NetNSTrace{}
}

// Begin forgets what was, and notes this moment.
func (NetNSTrace) Begin(t *testing.T) {
	t.Helper()
	WriteFile(t, filepath.Join(tracing, "trace"), "")
	WriteFile(t, filepath.Join(tracing, "trace_marker"), "begin")
}

// Held waits until something lets go of a namespace as the last, and returns how long that took from Begin. It must be
// the only namespace that ended since.
func (NetNSTrace) Held(t *testing.T) time.Duration {
	t.Helper()
	event := regexp.MustCompile(` (\d+\.\d+): (?:tracing_mark_write|end): `) // a mark whose text is lost is one too
	var moments []time.Duration
	Eventually(t, func() string {
		moments = moments[:0]
		text := ReadFile(t, filepath.Join(tracing, "trace"))
		for _, match := range event.FindAllStringSubmatch(text, -1) {
			moment, err := time.ParseDuration(match[1] + "s")
			if err != nil {
				t.Fatal(err)
			}
			moments = append(moments, moment)
		}
		if len(moments) < 2 {
			return "the end of a network namespace, of which the kernel says:\n" + text
		}
		return ""
	})
	if ended := len(moments) - 1; ended != 1 {
		t.Fatalf("%d network namespaces ended, want one", ended)
	}
	return moments[1] - moments[0]
}
