package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// idleBenchmark is under what name it is found how large the idle agent is.
const idleBenchmark = "idle."

// heapGrowth is how much larger than what is kept the heap of an agent gets
// before the garbage collector comes, which cmd/railhead sets.
const heapGrowth = 1.25

// settles is after how long an agent has given back what it needed to start.
const settles = 100 * time.Second

// A node of one function, so that the simulation in the process takes next to
// nothing. What an agent keeps of a large node comes on top.
const smallNode = `node: small
seed: 1
kernel: 6.12.48
netnsMode: exclusive
cards:
- {name: mlx5_0, pci: "0000:18:00.0", rail: 0, address: 172.30.0.17/24}
`

// idleAgent is an agent, as users run it, of a small node.
type idleAgent struct {
	process *exec.Cmd
	url     string
	dir     string
	began   time.Time
}

// startIdle builds and starts the agent.
func startIdle(ctx context.Context) (*idleAgent, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	a := &idleAgent{dir: dir, began: time.Now()}
	if err := a.start(ctx); err != nil {
		a.end()
		return nil, err
	}
	return a, nil
}

func (a *idleAgent) start(ctx context.Context) error {
	program, scenario := filepath.Join(a.dir, "railhead"), filepath.Join(a.dir, "small.yaml")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/railhead")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(build.Args, " "), err)
	}
	if err := os.WriteFile(scenario, []byte(smallNode), 0o600); err != nil {
		return err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	a.url = "http://" + address + "/metrics"
	a.process = exec.CommandContext(ctx, program, "agent", "--simulate", scenario, "--listen", address, "--state-dir", "", "--log.level", "ERROR")
	a.process.Cancel = func() error { return a.process.Process.Signal(syscall.SIGTERM) }
	a.process.WaitDelay = 10 * time.Second
	a.process.Stderr = os.Stderr
	a.began = time.Now()
	return a.process.Start()
}

// end ends the agent.
func (a *idleAgent) end() {
	if a.process != nil && a.process.Process != nil {
		_ = a.process.Process.Signal(syscall.SIGTERM)
		_ = a.process.Wait() // that it was told to end is no failure
	}
	_ = os.RemoveAll(a.dir)
}

// resident waits until the agent has settled, scrapes it, and returns how much of
// it is in memory, in bytes.
func (a *idleAgent) resident(ctx context.Context) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(settles - time.Since(a.began)):
	}
	if err := scrape(ctx, a.url); err != nil {
		return 0, err
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(a.process.Process.Pid) + "/status")
	if err != nil {
		return 0, err
	}
	return residentOf(string(status))
}

// residentOf reads VmRSS of status, as proc_pid_status(5) has it.
func residentOf(status string) (float64, error) {
	for text := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(text, "VmRSS:"); ok {
			kibibytes, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 50)
			return float64(kibibytes) * 1024, err
		}
	}
	return 0, errors.New("status has no VmRSS, so the process has ended")
}

func scrape(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}

// freeAddress is an address that nobody listened on a moment ago.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
