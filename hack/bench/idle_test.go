package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"railhead/internal/loopback"
	"railhead/internal/simulation"
)

// settles is after how long an agent has given back what it needed to start, and
// has come to what it takes for good. Only then its size is one to judge.
const settles = 4 * time.Minute

// The node that budgets are about, and a small one that is there in a moment.
const (
	denseNode = "../../internal/agent/testdata/dense.yaml"
	smallNode = "../../internal/agent/testdata/node.yaml"
)

func isNightly() bool { return os.Getenv("RAILHEAD_NIGHTLY") != "" }

// oneCard is RDMA on a netdev that every machine has, so that an agent does all
// that it does and the simulation in its process takes next to nothing.
const oneCard = `realNode: true
cards:
- {name: mlx5_0, netdev: lo, pci: "0000:18:00.0"}
`

// idleAgents are two agents, as users run them, of the node that we run on with
// one simulated card: one gives pods addresses and serves the container runtime, the other does not. The API server
// and the kubelet, with the pods of denseNode, are in our process, so that the
// agents' processes are as large as in a cluster. What an agent keeps of the
// devices of denseNode comes on top; what it keeps of pods counts twice.
type idleAgents struct {
	dir           string
	node          *simulation.Simulation
	server        *httptest.Server
	with, without idleAgent
}

// idleAgent is one of them.
type idleAgent struct {
	name    string
	process *exec.Cmd
	keep    *os.File // has nobody else be given its port
	url     string
	began   time.Time
}

// BenchmarkIdle tells how large the agents are while they have nothing to do, as
// resident-B: once they have settled with RAILHEAD_NIGHTLY=1, else once they answer,
// of a small node.
func BenchmarkIdle(b *testing.B) {
	a := &idleAgents{dir: b.TempDir()}
	b.Cleanup(a.end)
	if err := a.start(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, agent := range []*idleAgent{&a.without, &a.with} {
		b.Run(agent.name, func(b *testing.B) {
			var bytes float64
			for b.Loop() {
				var err error
				if bytes, err = agent.resident(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(bytes, "resident-B")
		})
	}
}

func (a *idleAgents) path(name string) string { return filepath.Join(a.dir, name) }

func (a *idleAgents) start(ctx context.Context) error {
	if err := a.surround(ctx); err != nil {
		return err
	}
	program := a.path("railhead")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", a.dir, "railhead/cmd/railhead", "railhead/cmd/railhead-cni")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(build.Args, " "), err)
	}
	if err := os.WriteFile(a.path("card.yaml"), []byte(oneCard), 0o600); err != nil {
		return err
	}
	flags := []string{
		"agent", "--simulate", a.path("card.yaml"), "--kubeconfig", a.path("kubeconfig"), "--node-name", a.node.NodeName(),
		"--pod-resources", a.node.PodResourcesSocket(), "--state-dir", "", "--log.level", "WARN",
	}
	a.without.name, a.with.name = "without", "with"
	if err := a.without.start(ctx, program, append(flags, "--addresses", "off")...); err != nil {
		return err
	}
	if err := a.clusterNetwork(); err != nil {
		return err
	}
	return a.with.start(ctx, program, append(flags,
		"--addresses", "on", "--addresses-dir", a.path("addresses"),
		"--cni", "on", "--cni-socket", a.path("cni.sock"), "--cni-bin-dir", a.path("cni/bin"), "--cni-conf-dir", a.path("cni/net.d"),
		"--cni-program", a.path("railhead-cni"), "--attachments-dir", a.path("attachments"),
	)...)
}

// clusterNetwork makes the node's directories of CNI, with the cluster's own
// network.
func (a *idleAgents) clusterNetwork() error {
	const conflist = `{"cniVersion": "1.0.0", "name": "cluster", "plugins": [{"type": "bridge"}]}`
	for _, dir := range []string{"cni/bin", "cni/net.d"} {
		if err := os.MkdirAll(a.path(dir), 0o700); err != nil {
			return err
		}
	}
	return os.WriteFile(a.path("cni/net.d/10-cluster.conflist"), []byte(conflist), 0o600)
}

// surround starts what is around the agents, and has pods have addresses.
func (a *idleAgents) surround(ctx context.Context) error {
	node := smallNode
	if isNightly() {
		node = denseNode
	}
	scenario, err := simulation.Load(node)
	if err != nil {
		return err
	}
	if a.node, err = simulation.Start(scenario, a.path("node"), time.Now); err != nil {
		return err
	}
	api, err := newAPIServer(ctx, a.node)
	if err != nil {
		return err
	}
	if err := assignAll(ctx, a.path("addresses"), api); err != nil {
		return fmt.Errorf("addresses of the pods of %s: %w", node, err)
	}
	a.server, err = serve(api.handler(), a.path("kubeconfig"))
	return err
}

// end ends all.
func (a *idleAgents) end() {
	a.without.end()
	a.with.end()
	if a.server != nil {
		a.server.CloseClientConnections()
		a.server.Close()
	}
	if a.node != nil {
		_ = a.node.Close()
	}
}

func (a *idleAgent) start(ctx context.Context, program string, flags ...string) error {
	address, keep, err := loopback.Reserve()
	if err != nil {
		return err
	}
	a.keep = keep
	a.url = "http://" + address + "/metrics"
	a.process = exec.CommandContext(ctx, program, append(flags, "--listen", address)...)
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
	if a.keep != nil {
		_ = a.keep.Close()
	}
}

// resident waits until the agent answers and has settled, scrapes it, and returns
// how much of it is in memory, in bytes.
func (a *idleAgent) resident(ctx context.Context) (float64, error) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for scrape(ctx, a.url) != nil {
		status, err := a.status()
		if err != nil {
			return 0, err
		}
		if strings.Contains(status, "\nState:\tZ") {
			return 0, fmt.Errorf("agent %q has ended", a.name)
		}
		<-again.C
	}
	if isNightly() {
		<-time.After(settles - time.Since(a.began))
	}
	if err := scrape(ctx, a.url); err != nil {
		return 0, err
	}
	status, err := a.status()
	if err != nil {
		return 0, err
	}
	return residentOf(status)
}

// status is what the kernel tells of the process.
func (a *idleAgent) status() (string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(a.process.Process.Pid) + "/status")
	return string(text), err
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
