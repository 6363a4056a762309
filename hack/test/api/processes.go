package api

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"railhead/hack/program"
)

// Process is a replica of the controller as the program that is shipped.
type Process struct {
	WebhookAddress, HealthAddress string

	pid   int
	log   *buffer
	ended chan struct{}
	err   error
}

// Build compiles the controller and returns the program's path.
func (s *Server) Build(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(s.sub("built"), "railhead-controller")
	if err := program.Run(program.Command(tb.Context(), "go", "build", "-o", path, "railhead/cmd/railhead-controller")); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Spawn starts a program of Build as a replica. webhookURL is where the API
// server finds it; empty: by itself. It is killed at the end of the test, and
// with the test program.
func (s *Server) Spawn(tb testing.TB, path string, r Replica, webhookURL string) *Process {
	tb.Helper()
	s.Install(tb)
	p := &Process{WebhookAddress: freeAddress(tb), HealthAddress: freeAddress(tb), log: &buffer{}, ended: make(chan struct{})}
	if webhookURL == "" {
		webhookURL = "https://" + p.WebhookAddress
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := program.Command(
		ctx, path, "--kubeconfig", s.replicaKubeconfig(tb, r), "--namespace", Namespace,
		"--webhook-listen", p.WebhookAddress, "--health-listen", p.HealthAddress, "--metrics-listen", "",
		"--webhook-url", webhookURL, "--owner-cluster-role", clusterRole, fmt.Sprintf("--leader-elect=%v", r.Elected), "--log.level", "debug",
	)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	tb.Cleanup(func() {
		cancel()
		<-p.ended
		if tb.Failed() {
			tb.Logf("log of controller %s:\n%s", r.Name, lastLines(p.log.String(), 60))
		}
	})
	return p
}

func (s *Server) replicaKubeconfig(tb testing.TB, r Replica) string {
	tb.Helper()
	config := s.replicaConfig(tb, r)
	file := filepath.Join(s.sub("replicas"), r.Name)
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: cmp.Or(r.Server, config.Host), CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, file)
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// AwaitReady waits until the process says that it is ready.
func (p *Process) AwaitReady(tb testing.TB) {
	tb.Helper()
	Eventually(tb, func() string {
		if p.Ended() {
			tb.Fatalf("the controller has ended: %v\n%s", p.err, lastLines(p.log.String(), 30))
		}
		return ready(p.HealthAddress)
	})
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
func (p *Process) Signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if err := syscall.Kill(p.pid, signal); err != nil {
		tb.Fatal(err)
	}
}

// Resident is the memory of the process in bytes.
func (p *Process) Resident(tb testing.TB) int {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return kib << 10
}
