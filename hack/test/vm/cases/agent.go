package cases

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// agentAddress is where the agent listens in a machine.
const agentAddress = "127.0.0.1:5711"

// Agent is a running `railhead agent`.
type Agent struct{ PID int }

// StartAgent starts the agent with flags, and waits until it is ready; it is ended with the test.
func StartAgent(t *testing.T, flags ...string) Agent {
	t.Helper()
	var output bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "railhead", append([]string{"agent", "--listen", agentAddress}, flags...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = eventuallyFor
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("railhead agent: %v", err)
		}
		if t.Failed() {
			t.Logf("railhead agent said:\n%s", output.String())
		}
	})
	Eventually(t, func() string {
		if _, err := get("/readyz"); err != nil {
			return err.Error()
		}
		return ""
	})
	return Agent{PID: cmd.Process.Pid}
}

// get returns a page of the agent.
func get(path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+agentAddress+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, response.Status, body)
	}
	return body, err
}

// Scrape is what the agent's metrics say, by family.
type Scrape map[string]*dto.MetricFamily

// Scrape reads the metrics.
func (Agent) Scrape(t *testing.T) Scrape {
	t.Helper()
	body, err := get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// Value is the value of the one series of a family with these labels among its own ("device=rxe0"); ok is false where
// there is none.
func (s Scrape) Value(family string, labels ...string) (value float64, ok bool) {
	for _, metric := range s[family].GetMetric() {
		if hasLabels(metric, labels) {
			return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue(), true
		}
	}
	return 0, false
}

func hasLabels(metric *dto.Metric, labels []string) bool {
	has := map[string]bool{}
	for _, pair := range metric.GetLabel() {
		has[pair.GetName()+"="+pair.GetValue()] = true
	}
	for _, label := range labels {
		if !has[label] {
			return false
		}
	}
	return true
}

// podCgroup makes the cgroup of a container of a pod as containerd with the systemd driver does; it goes with the test.
func podCgroup(t *testing.T, uid string) string {
	t.Helper()
	slice := "/sys/fs/cgroup/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	dir := slice + "/cri-containerd-" + strings.Repeat("0123456789abcdef", 4) + ".scope"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range []string{dir, slice} {
			Eventually(t, func() string { // a process that ends leaves its cgroup a little later
				if err := os.Remove(d); err != nil {
					return err.Error()
				}
				return ""
			})
		}
	})
	return dir
}

// Pod is what Kubernetes would make of a pod as far as the kernel is concerned: a network namespace and a cgroup.
type Pod struct {
	UID    string
	NetNS  NetNS
	cgroup string
}

// NewPod makes a pod without processes.
func NewPod(t *testing.T, name, uid string) Pod {
	t.Helper()
	return Pod{UID: uid, NetNS: NewNetNS(t, name), cgroup: podCgroup(t, uid)}
}

// Start starts a program in the pod; the test ends it, or waits for it.
func (p Pod) Start(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	script := `echo $$ > "$0/cgroup.procs" && exec ip netns exec "$@"`
	arguments := append([]string{"-c", script, p.cgroup, string(p.NetNS), name}, args...)
	cmd := exec.CommandContext(context.Background(), "sh", arguments...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}
