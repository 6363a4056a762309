package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"railhead/hack/program"
)

// golang is the Go command and what it says of itself.
type golang struct {
	sources string // this directory, with a module for each family
	version string // of Go and what it compiles for: go1.26.8 amd64

	buildCache, moduleCache string
	memory                  uint64 // of the machine, in bytes
}

// findGo asks the Go command where this directory is, which has the go.mod
// files, and what it would compile with.
func findGo(ctx context.Context) (golang, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return golang{}, fmt.Errorf("the programs of a cluster are compiled: %w", err)
	}
	sources, err := program.Output(program.Command(ctx, "go", "list", "-f", "{{.Dir}}", "railhead/hack/cluster/binaries"))
	if err != nil {
		return golang{}, fmt.Errorf("find the sources (the working directory must be in the module railhead): %w", err)
	}
	env, err := program.Output(program.Command(ctx, "go", "env", "GOVERSION", "GOARCH", "GOCACHE", "GOMODCACHE"))
	if err != nil {
		return golang{}, err
	}
	var machine syscall.Sysinfo_t
	if err := syscall.Sysinfo(&machine); err != nil {
		return golang{}, fmt.Errorf("memory of this machine: %w", err)
	}
	values := strings.Split(string(env), "\n")
	return golang{
		sources:     strings.TrimSpace(string(sources)),
		version:     values[0] + " " + values[1],
		buildCache:  values[2],
		moduleCache: values[3],
		memory:      machine.Totalram * uint64(machine.Unit),
	}, nil
}

// command is the Go command in a family's module. The environment decides what
// concerns the way to modules; what decides what comes out is fixed.
//
// A compiler is done before its garbage is worth collecting, which would take
// a fifth of its time: it is collected near a limit only, which few packages
// and the linker reach.
func (g golang) command(ctx context.Context, f Family, temp string, args ...string) *exec.Cmd {
	cmd := program.Command(ctx, "go", args...)
	cmd.Dir = filepath.Join(g.sources, string(f))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=-mod=readonly", "GOWORK=off",
		"GOGC=off", fmt.Sprintf("GOMEMLIMIT=%d", memoryLimit(g.memory, runtime.NumCPU())), "GOTMPDIR="+temp)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it cleans up then
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// memoryLimit is for one of as many compilers as there are processors, such
// that they do not need more than half of the machine's memory together.
func memoryLimit(memory uint64, processors int) uint64 {
	const least, most = 512 << 20, 2 << 30
	return min(max(memory/2/uint64(processors), least), most)
}

// buildFlags make the compiler leave out what only debuggers read. They do not
// depend on where sources and caches are.
func buildFlags() []string {
	return []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"}
}

// goError is the error of a Go command that failed, with the end of what it
// said, and a word of advice where there is one. One that was interrupted has
// nothing to say.
func goError(ctx context.Context, err error, said string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text := program.LastLines(said, 20)
	if cause := cause(said); cause != nil {
		return fmt.Errorf("%w: %w\n%s", cause, err, text)
	}
	return fmt.Errorf("%w\n%s", err, text)
}

// Causes of a failed build that lie outside of it.
var (
	ErrNetwork = errors.New("the Go module proxy cannot be reached (see go env GOPROXY)")
	ErrRefused = errors.New("the Go module proxy does not give a module (see go env GOPROXY)")
	ErrSpace   = errors.New("no space is left (programs and Go's build cache need 8 GB, see go env GOCACHE GOMODCACHE)")
)

// cause recognises an error of the Go command by its words, for want of
// anything better.
func cause(said string) error {
	for _, c := range []struct {
		words string
		err   error
	}{
		{"no space left on device", ErrSpace},
		{"403 Forbidden", ErrRefused},
		{"404 Not Found", ErrRefused},
		{"410 Gone", ErrRefused},
		{"dial tcp", ErrNetwork},
		{"i/o timeout", ErrNetwork},
		{"TLS handshake", ErrNetwork},
		{"proxyconnect", ErrNetwork},
		{"module lookup disabled by GOPROXY=off", ErrNetwork},
	} {
		if strings.Contains(said, c.words) {
			return c.err
		}
	}
	return nil
}
