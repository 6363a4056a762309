package api

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"railhead/hack/program"
	"railhead/internal/loopback"
)

// Process is a replica of the controller as the program that is shipped.
type Process struct {
	WebhookAddress, HealthAddress string

	pid   int
	log   *buffer
	ended chan struct{}
	err   error
}

// buildMu is held by who compiles our programs.
var buildMu sync.Mutex

// builtPrograms is the directory of our programs. The first test that wants them
// compiles them for all, outside of network namespaces.
func builtPrograms(t *testing.T) string {
	t.Helper()
	buildMu.Lock()
	defer buildMu.Unlock()
	dir := filepath.Join(os.Getenv(sharedEnv), "programs")
	if isFile(dir) {
		return dir
	}
	unfinished := dir + ".unfinished"
	err := program.Run(program.Command(t.Context(), "go", "build", "-o", unfinished+"/",
		"railhead/cmd/railhead", "railhead/cmd/railhead-cni", "railhead/cmd/railhead-controller"))
	if err == nil {
		err = os.Rename(unfinished, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Spawn starts a replica. webhookURL is where the API server finds it; empty: by
// itself. It is killed at the end of the test, and with the test program.
func (s *Server) Spawn(t *testing.T, r Replica, webhookURL string) *Process {
	t.Helper()
	s.Install(t)
	p := &Process{WebhookAddress: loopback.Address(t), HealthAddress: loopback.Address(t), log: &buffer{}, ended: make(chan struct{})}
	if webhookURL == "" {
		webhookURL = "https://" + p.WebhookAddress
	}
	ctx, cancel := context.WithCancel(context.Background())
	config := s.replicaConfig(t, r)
	cmd := program.Command(
		ctx, filepath.Join(builtPrograms(t), "railhead-controller"), "--kubeconfig", s.writeKubeconfig(t, r.Name, cmp.Or(r.Server, config.Host), config), "--namespace", Namespace,
		"--webhook-listen", p.WebhookAddress, "--health-listen", p.HealthAddress, "--metrics-listen", "",
		"--webhook-url", webhookURL, "--owner-cluster-role", clusterRole, fmt.Sprintf("--leader-elect=%v", r.Elected), "--log.level", "debug",
	)
	if r.Elected { // another one leads soon after the leader is gone
		cmd.Args = append(cmd.Args, "--leader-lease-duration=10s", "--leader-renew-deadline=8s", "--leader-retry-period=1s")
	}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		if t.Failed() {
			t.Logf("log of controller %s:\n%s", r.Name, lastLines(p.log.String(), 60))
		}
	})
	return p
}

// AwaitReady waits until the process says that it is ready.
func (p *Process) AwaitReady(t *testing.T) {
	t.Helper()
	Eventually(t, func() string {
		if p.Ended() {
			t.Fatalf("the controller has ended: %v\n%s", p.err, lastLines(p.log.String(), 30))
		}
		return ready(p.HealthAddress)
	})
}

// AwaitEnd waits until the process has ended.
func (p *Process) AwaitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(Patience):
		t.Fatal("the controller does not end")
	}
}

// Ended says whether the process has.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Signal sends the process a signal.
func (p *Process) Signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.pid, signal); err != nil {
		t.Fatal(err)
	}
}

// Pause stops the process, and waits until none of its threads runs any more: on a
// busy machine some do for a while.
func (p *Process) Pause(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGSTOP)
	Eventually(t, func() string {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.pid))
		if err != nil || len(threads) == 0 {
			return fmt.Sprintf("threads of process %d: %v", p.pid, err)
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if _, state, _ := strings.Cut(string(text), ") "); err != nil || !strings.HasPrefix(state, "T") {
				return fmt.Sprintf("the end of %s: %q, %v", thread, state, err)
			}
		}
		return ""
	})
}

// Resident is the memory of the process in bytes.
func (p *Process) Resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
