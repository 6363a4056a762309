package standin

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// tally counts what there is.
type tally struct{ nodes, pods, running, failed atomic.Int64 }

// counted is a tally at one time.
type counted struct{ nodes, pods, running, failed int64 }

func (t *tally) now() counted {
	return counted{t.nodes.Load(), t.pods.Load(), t.running.Load(), t.failed.Load()}
}

// String is the line that people read.
func (c counted) String() string {
	line := fmt.Sprintf("%d nodes, %d of %d pods running", c.nodes, c.running, c.pods)
	if c.failed > 0 {
		line += fmt.Sprintf(", %d rejected", c.failed)
	}
	return line
}

// report prints a line a second while something changes, with our memory, until the context ends.
func (f *fleet) report(ctx context.Context) error {
	var last counted
	for wait(ctx, time.Second) {
		c := f.tally.now()
		if c == last {
			continue
		}
		last = c
		fmt.Fprintf(f.Progress, "%6.1fs  stand-ins: %s, %d MiB\n", time.Since(f.started).Seconds(), c, residentMiB())
	}
	return nil
}

// residentMiB is how much memory we have; 0 if the kernel does not say.
func residentMiB() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0
	}
	return kib >> 10
}
