package driver

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress tells whoever waits what is done, with the time since the start.
type progress struct {
	mu    sync.Mutex
	out   io.Writer // nil is silence
	began time.Time
}

func (p *progress) say(format string, args ...any) {
	if p.out == nil {
		return
	}
	fmt.Fprintf(p, "%6.1f s  %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}

// Write takes whole lines, of those too that are told by others.
func (p *progress) Write(line []byte) (int, error) {
	if p.out == nil {
		return len(line), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(line)
}
