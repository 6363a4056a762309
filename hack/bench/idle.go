package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"railhead/internal/simulation"
)

// Under what names it is found how large the idle agent is, with and without
// giving pods their addresses and networks.
const (
	idleWithout = "idle.without"
	idleWith    = "idle.with"
)

// heapGrowth is how much larger the process of an agent is for each byte that is
// kept: a quarter until the garbage collector comes, which cmd/railhead sets, what
// is free between objects, and the tenth that Go's runtime does not give back. It
// was measured with one to four agents of denseNode in one process, after ten
// simulated minutes: 1.6.
const heapGrowth = 1.6

// settles is after how long an agent has given back what it needed to start, and
// has come to what it takes for good.
const settles = 4 * time.Minute

// denseNode is the node that budgets are about.
const denseNode = "internal/agent/testdata/dense.yaml"

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
	process *exec.Cmd
	url     string
	began   time.Time
}

// startIdle builds and starts the agents.
func startIdle(ctx context.Context) (*idleAgents, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	a := &idleAgents{dir: dir}
	if err := a.start(ctx); err != nil {
		a.end()
		return nil, err
	}
	return a, nil
}

func (a *idleAgents) path(name string) string { return filepath.Join(a.dir, name) }

func (a *idleAgents) start(ctx context.Context) error {
	if err := a.surround(ctx); err != nil {
		return err
	}
	program := a.path("railhead")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", a.dir, "./cmd/railhead", "./cmd/railhead-cni")
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
	scenario, err := simulation.Load(denseNode)
	if err != nil {
		return err
	}
	if a.node, err = simulation.Start(scenario, a.path("node"), time.Now); err != nil {
		return err
	}
	api, uid, err := newAPIServer(ctx, a.node)
	if err != nil {
		return err
	}
	if err := assignAll(ctx, a.path("addresses"), a.node.NodeName(), uid, api); err != nil {
		return fmt.Errorf("addresses of the pods of %s: %w", denseNode, err)
	}
	a.server, err = serve(api.handler(a.node.RESTConfig().Transport), a.path("kubeconfig"))
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
	_ = os.RemoveAll(a.dir)
}

// add adds how large the agents are once they have settled.
func (a *idleAgents) add(ctx context.Context, found results) error {
	for name, agent := range map[string]*idleAgent{idleWithout: &a.without, idleWith: &a.with} {
		bytes, err := agent.resident(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found.add(name, "resident-B", bytes)
	}
	return nil
}

func (a *idleAgent) start(ctx context.Context, program string, flags ...string) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
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
