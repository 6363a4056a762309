// Package cluster is for tests on a real Kubernetes cluster: it brings one up
// once for all tests of a package (hack/cluster), gives each test a namespace
// of its own, and collects what there is to know when one fails.
//
//	func TestMain(m *testing.M) { cluster.Main(m, driver.Options{...}) }
//
//	func TestSomething(t *testing.T) {
//		c := cluster.Require(t)
//		ns := c.Namespace(t)
//		c.Apply(t, ns, manifest)
//		c.Kubectl(t, "rollout", "status", "-n", ns, "deployment/web")
//	}
//
// It needs root and, the first time, a quarter of an hour to build Kubernetes:
// tests run with RAILHEAD_CLUSTER=1, as `make cluster-test` does. Without it
// they skip.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/driver"
)

// Patience is how long anything on a cluster may take before a test gives up.
// It is far more than anything takes, on a machine that has other work too.
const Patience = 3 * time.Minute

// Cluster is a running cluster with the administrator's clients.
type Cluster struct {
	*driver.Cluster
	Client kubernetes.Interface
}

// shared is the one cluster of the package's tests, made by the first that
// asks for it.
type shared struct {
	options driver.Options
	once    sync.Once
	cluster *Cluster
	err     error
}

//nolint:gochecknoglobals // a test function has no other way to what TestMain made
var theOne *shared

// Main runs the tests of a package and ends the cluster after them, if one of
// them had one brought up. Call it from TestMain.
func Main(m *testing.M, o driver.Options) {
	driver.Init() // the test program is also the first process of each machine
	theOne = &shared{options: o}
	code := m.Run()
	if theOne.cluster != nil {
		if err := theOne.cluster.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "end of the cluster:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Require returns the cluster of the package's tests, or skips.
func Require(t *testing.T) *Cluster {
	t.Helper()
	Wanted(t)
	theOne.once.Do(func() { theOne.cluster, theOne.err = up(theOne.options) })
	if theOne.err != nil {
		t.Fatalf("no cluster: %v", theOne.err)
	}
	return theOne.cluster
}

// Wanted skips a test unless clusters are asked for.
func Wanted(t *testing.T) {
	t.Helper()
	if os.Getenv("RAILHEAD_CLUSTER") == "" {
		t.Skip("needs a cluster: make cluster-test")
	}
	if os.Geteuid() != 0 {
		t.Fatal("RAILHEAD_CLUSTER is set: clusters need root")
	}
}

// Up brings up a cluster for one test, in a directory of its own.
func Up(t *testing.T, o driver.Options) *Cluster {
	t.Helper()
	Wanted(t)
	c, err := up(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.collect(t, "")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func up(o driver.Options) (*Cluster, error) {
	if o.Dir == "" {
		dir, err := newDir()
		if err != nil {
			return nil, err
		}
		o.Dir = dir
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	inner, err := driver.Up(context.Background(), o)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(inner.RESTConfig())
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return &Cluster{Cluster: inner, Client: client}, nil
}

// newDir makes a directory for a cluster, and removes those of tests that were
// killed.
func newDir() (driver.Dir, error) {
	const pattern = "/var/tmp/railhead-cluster-test-*"
	others, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	for _, dir := range others {
		if err := driver.Dir(dir).Sweep(); err != nil && !errors.Is(err, driver.ErrInUse) {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(filepath.Split(pattern))
	return driver.Dir(dir), err
}

// Kubectl runs kubectl as the administrator and returns what it prints. A
// failure of it fails the test.
func (c *Cluster) Kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.TryKubectl(t, "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryKubectl is Kubectl with an input, for what may fail.
func (c *Cluster) TryKubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	program, err := driver.Program(ctx, "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", c.Dir().Kubeconfig()}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// Apply applies manifests to a namespace.
func (c *Cluster) Apply(t *testing.T, namespace, manifests string) {
	t.Helper()
	if _, err := c.TryKubectl(t, manifests, "apply", "--server-side", "-n", namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// Exec runs a command in a pod and returns what it prints.
func (c *Cluster) Exec(t *testing.T, namespace, pod string, command ...string) string {
	t.Helper()
	return c.Kubectl(t, append([]string{"exec", "-n", namespace, pod, "--"}, command...)...)
}

// OnNode runs a command on a machine and returns what it prints.
func (c *Cluster) OnNode(t *testing.T, machine string, command ...string) string {
	t.Helper()
	out, err := c.try(t.Context(), machine, command...)
	if err != nil {
		t.Fatalf("on %s: %s: %v\n%s", machine, strings.Join(command, " "), err, out)
	}
	return out
}

// try is OnNode for what may fail.
func (c *Cluster) try(ctx context.Context, machine string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var out bytes.Buffer
	err := c.Run(ctx, machine, box.Command{Args: command, Stdout: &out, Stderr: &out})
	return out.String(), err
}

// Eventually waits until nothing is missing any more.
func Eventually(t *testing.T, missing func() string) {
	t.Helper()
	within(t, Patience, missing)
}

// within is Eventually for what may take longer than most.
func within(t *testing.T, patience time.Duration, missing func() string) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if last = missing(); last == "" {
			return
		}
	}
	t.Fatalf("still missing after %s: %s", patience, last)
}

// Namespace makes a namespace for a test, which ends with it. When the test
// has failed, what is known of the namespace and of the nodes goes to its log
// and to files.
func (c *Cluster) Namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	name = fmt.Sprintf("%.50s-%d", name, time.Now().UnixNano()%100000)
	c.Kubectl(t, "create", "namespace", name)
	c.Kubectl(t, "label", "namespace", name, "pod-security.kubernetes.io/enforce=privileged")
	t.Cleanup(func() {
		c.collect(t, name)
		_, _ = c.tryAfter("delete", "namespace", name, "--wait=false", "--ignore-not-found")
	})
	return name
}

// tryAfter is TryKubectl once the test's own context has ended.
func (c *Cluster) tryAfter(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	program, err := driver.Program(ctx, "kubectl")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", c.Dir().Kubeconfig()}, args...)...).CombinedOutput()
	return string(out), err
}

// collect tells what there is to know of a failed test: objects and events in
// the log, the components' own logs in a directory that stays.
func (c *Cluster) collect(t *testing.T, namespace string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	where := []string{"-A"}
	if namespace != "" {
		where = []string{"-n", namespace}
	}
	for _, args := range [][]string{
		append([]string{"get", "nodes,pods,daemonsets,deployments,jobs,services", "-o", "wide"}, where...),
		append([]string{"get", "events", "--sort-by=.lastTimestamp"}, where...),
	} {
		out, err := c.tryAfter(args...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	kept, err := os.MkdirTemp("", "railhead-cluster-logs-") //nolint:usetesting // it is to outlive the test
	if err != nil {
		t.Log(err)
		return
	}
	logs, _ := filepath.Glob(c.Dir().Log("*", "*"))
	for _, log := range logs {
		name := strings.ReplaceAll(strings.TrimPrefix(log, string(c.Dir())+"/"), "/", "-")
		if data, err := os.ReadFile(log); err == nil {
			_ = os.WriteFile(filepath.Join(kept, name), data, 0o600)
		}
	}
	t.Logf("logs of the components: %s", kept)
}
