package binaries

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// log writes lines with the time since the start. It may be used at once.
type log struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

func newLog(out io.Writer) *log { return &log{out: out, start: time.Now()} }

func (l *log) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%5.1fs  binaries: %s\n", time.Since(l.start).Seconds(), fmt.Sprintf(format, args...))
}
