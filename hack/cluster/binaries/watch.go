package binaries

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// watchEvery is how often progress is told.
const watchEvery = 15 * time.Second

// progress is what a go build -v has said so far.
type progress struct {
	packages []string // that it may name, sorted
	done     int      // that it named: those that it has in its cache it does not
	said     []string // everything else
}

// line takes a line of its output. It names a package when it compiles it.
func (p *progress) line(text string) {
	if _, found := slices.BinarySearch(p.packages, text); found {
		p.done++
		return
	}
	p.said = append(p.said, text)
}

// watch runs a build with programs going into dir, tells how it gets on, and
// returns what it said beside the names of packages.
func (m *module) watch(cmd *exec.Cmd, dir string) (said string, err error) {
	p := progress{packages: slices.Sorted(slices.Values(m.packages))}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	lines := make(chan string)
	go scan(stderr, lines)
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for lines != nil {
		select {
		case text, more := <-lines:
			if !more {
				lines = nil
				continue
			}
			p.line(text)
		case <-ticker.C:
			m.log.printf("%s: %s", m.name, m.stage(p, dir))
		}
	}
	return strings.Join(p.said, "\n"), cmd.Wait()
}

// scan sends lines until there are no more.
func scan(r io.Reader, lines chan<- string) {
	defer close(lines)
	for s := bufio.NewScanner(r); s.Scan(); {
		lines <- s.Text()
	}
}

// stage is how far a build is. Linking follows compiling, and a program is
// there when it is linked.
func (m *module) stage(p progress, dir string) string {
	linked, err := os.ReadDir(dir)
	if err != nil || len(linked) == 0 {
		return fmt.Sprintf("%d of %d packages compiled, %d %%", p.done, len(p.packages), 100*p.done/max(1, len(p.packages)))
	}
	return fmt.Sprintf("%d of %d programs linked", len(linked), len(m.programs))
}
