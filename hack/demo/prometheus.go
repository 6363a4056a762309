package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"

	"railhead/hack/cluster/binaries"
	"railhead/hack/cluster/plan"
	"railhead/hack/debian"
)

// Where Prometheus runs: on the machine that has the control plane, from which
// it reaches all nodes, and with which it ends.
const (
	prometheusAddress = "127.0.0.1:9090"
	prometheusDir     = "/var/lib/railhead-demo"
)

// rules are the files of the shipped rules, which the demo's Prometheus follows.
func rules() []string {
	return []string{"charts/railhead/files/rules/recording.yaml", "charts/railhead/files/rules/alerts.yaml"}
}

// metrics is a running Prometheus.
type metrics struct {
	prometheus.API

	url string // at which this machine reaches it
}

// startPrometheus starts Debian's Prometheus, unless it runs, and waits until it
// answers.
func startPrometheus(ctx context.Context, c *cluster) (*metrics, error) {
	address, err := c.forward(ctx, plan.Fabric, prometheusAddress)
	if err != nil {
		return nil, err
	}
	m := &metrics{url: "http://" + address}
	client, err := api.NewClient(api.Config{Address: m.url})
	if err != nil {
		return nil, err
	}
	m.API = prometheus.NewAPI(client)
	if m.isReady(ctx) {
		return m, nil
	}
	c.say("starting Prometheus")
	ended, err := c.launch(ctx)
	if err != nil {
		return nil, err
	}
	return m, m.await(ctx, ended)
}

// launch starts it on the fabric. The error of its end is sent.
func (c *cluster) launch(ctx context.Context) (<-chan error, error) {
	source, err := c.prometheusProgram(ctx)
	if err != nil {
		return nil, err
	}
	fabric := c.Machines[0].PID
	root := fmt.Sprintf("/proc/%d/root", fabric)
	if err := c.furnish(filepath.Join(root, prometheusDir), source); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(root, prometheusDir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command("nsenter", "--target", fmt.Sprint(fabric), "--all", "--", //nolint:noctx // it goes on when we have ended
		prometheusDir+"/prometheus", "--config.file="+prometheusDir+"/prometheus.yaml", "--storage.tsdb.path="+prometheusDir+"/data",
		"--web.listen-address="+prometheusAddress, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		said, _ := os.ReadFile(filepath.Join(root, prometheusDir, "log")) // only to say more
		ended <- fmt.Errorf("it ended: %w\n%s", err, said)
	}()
	return ended, nil
}

// furnish gives it its program and its configuration.
func (c *cluster) furnish(dir, source string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, file := range append(rules(), source) {
		if err := copyFile(filepath.Join(dir, filepath.Base(file)), file); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(c.configuration()), 0o600)
}

// configuration asks the agents of all nodes, which it calls by their names.
func (c *cluster) configuration() string {
	var b strings.Builder
	b.WriteString("global: {scrape_interval: 5s, evaluation_interval: 15s}\nrule_files:\n")
	for _, file := range rules() {
		fmt.Fprintf(&b, "- %s/%s\n", prometheusDir, filepath.Base(file))
	}
	b.WriteString("scrape_configs:\n- job_name: railhead\n  static_configs:\n")
	for _, n := range c.Plan.Nodes {
		fmt.Fprintf(&b, "  - {targets: ['%s'], labels: {instance: %s}}\n", agentAddress(n), n.Name)
	}
	return b.String()
}

// agentAddress is where the agent of a node serves metrics.
func agentAddress(n plan.Node) string {
	const port = 5711
	if host := n.Host[0].Addr(); host.Is6() {
		return fmt.Sprintf("[%s]:%d", host, port)
	}
	return fmt.Sprintf("%s:%d", n.Host[0].Addr(), port)
}

func copyFile(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// prometheusProgram is the path of Debian's Prometheus: as it is installed here,
// or fetched into the cache.
func (c *cluster) prometheusProgram(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("prometheus"); err == nil {
		return path, nil
	}
	cache, err := binaries.CacheDir("demo")
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "prometheus")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	c.say("fetching Debian's prometheus")
	return path, fetch(ctx, cache, path)
}

// fetch takes the program out of its package. All that it is linked with is the
// C library.
func fetch(ctx context.Context, cache, path string) error {
	suite, err := debian.Open(ctx, debian.Config{Dir: filepath.Join(cache, "apt"), Suite: "bookworm", Architecture: runtime.GOARCH})
	if err != nil {
		return err
	}
	defer suite.Close()
	packages, err := suite.Closure(ctx, "prometheus")
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(cache, "making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, p := range packages {
		if p.Name != "prometheus" {
			continue
		}
		if err := suite.Unpack(ctx, scratch, scratch, []debian.Package{p}); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(scratch, "usr/bin/prometheus"), path)
}

func (m *metrics) isReady(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/-/ready", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return errors.Join(answer.Body.Close()) == nil && answer.StatusCode == http.StatusOK
}

// await waits until it answers, unless it ends before.
func (m *metrics) await(ctx context.Context, ended <-chan error) error {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for !m.isReady(ctx) {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
	return nil
}
