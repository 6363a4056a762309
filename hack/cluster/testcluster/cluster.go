// Package testcluster is for tests on a real Kubernetes cluster: it brings one up
// once for all tests of a package (hack/cluster), gives each test a namespace
// of its own, and collects what there is to know when one fails.
//
//	func TestMain(m *testing.M) {
//		testcluster.Main(m, testcluster.Config{Variable: "RAILHEAD_CLUSTER", Options: ...})
//	}
//
//	func TestSomething(t *testing.T) {
//		c := testcluster.Require(t)
//		ns := c.Namespace(t)
//		c.Apply(t, ns, testcluster.Web(2))
//		c.Kubectl(t, "rollout", "status", "-n", ns, "deployment/web")
//	}
//
// It needs root and, the first time, a quarter of an hour to build Kubernetes.
// Tests skip unless the environment variable of their package is set.
package testcluster

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
	"railhead/hack/cluster/plan"
)

// Patience is how long anything on a cluster may take before a test gives up.
// It is far more than anything takes, on a machine that has other work too.
const Patience = 10 * time.Minute

// Cluster is a running cluster with the administrator's clients.
type Cluster struct {
	*driver.Cluster
	Client kubernetes.Interface
}

// Config is what the tests of a package need.
type Config struct {
	plan.Options
	Variable string // of the environment: tests run on a cluster if it is set
	Target   string // of make, by which they run
}

// shared is the one cluster of the package's tests, made by the first that
// asks for it.
type shared struct {
	config  Config
	once    sync.Once
	cluster *Cluster
	err     error
}

//nolint:gochecknoglobals // a test function has no other way to what TestMain made
var theOne *shared

// Main runs the tests of a package and ends the cluster after them, if one of
// them had one brought up. Call it from TestMain.
func Main(m *testing.M, config Config) {
	driver.Init() // the test program is also the first process of each machine
	theOne = &shared{config: config}
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
	theOne.once.Do(func() { theOne.cluster, theOne.err = Start(driver.Options{Options: theOne.config.Options}) })
	if theOne.err != nil {
		t.Fatalf("no cluster: %v", theOne.err)
	}
	return theOne.cluster
}

// Wanted skips a test unless clusters are asked for.
func Wanted(t *testing.T) {
	t.Helper()
	if os.Getenv(theOne.config.Variable) == "" {
		t.Skip("needs a cluster: make " + theOne.config.Target)
	}
	if os.Geteuid() != 0 {
		t.Fatal(theOne.config.Variable + " is set: clusters need root")
	}
}

// IsNightly tells whether tests are to do what takes too long for each change.
func IsNightly() bool { return os.Getenv("RAILHEAD_NIGHTLY") != "" }

// Up brings up a cluster for one test, in a directory of its own.
func Up(t *testing.T, o driver.Options) *Cluster {
	t.Helper()
	Wanted(t)
	c, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Collect(t, "")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Start brings up a cluster, in a directory of its own unless the options say
// where. Whoever calls it ends it.
func Start(o driver.Options) (*Cluster, error) {
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
	out, err := c.TryKubectl(t.Context(), "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryKubectl is Kubectl with an input, for what may fail. The error has what
// kubectl printed.
func (c *Cluster) TryKubectl(ctx context.Context, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	program, err := driver.Program(ctx, "kubectl")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", c.Dir().Kubeconfig()}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// KubectlAfter runs kubectl when the test has ended.
func (c *Cluster) KubectlAfter(t *testing.T, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := c.TryKubectl(context.Background(), "", args...); err != nil {
			t.Error(err)
		}
	})
}

// Apply applies manifests to a namespace.
func (c *Cluster) Apply(t *testing.T, namespace, manifests string) {
	t.Helper()
	if _, err := c.TryKubectl(t.Context(), manifests, "apply", "--server-side", "-n", namespace, "-f", "-"); err != nil {
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
	out, err := c.TryOnNode(t.Context(), machine, command...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryOnNode is OnNode for what may fail. The error has what the command printed.
func (c *Cluster) TryOnNode(ctx context.Context, machine string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var out bytes.Buffer
	if err := c.Run(ctx, machine, box.Command{Args: command, Stdout: &out, Stderr: &out}); err != nil {
		return out.String(), fmt.Errorf("on %s: %s: %w\n%s", machine, strings.Join(command, " "), err, out.String())
	}
	return out.String(), nil
}

// Eventually waits until nothing is missing any more.
func Eventually(t *testing.T, missing func() string) {
	t.Helper()
	Within(t, Patience, missing)
}

// Within is Eventually for what may take longer than most.
func Within(t *testing.T, patience time.Duration, missing func() string) {
	t.Helper()
	if last := await(patience, missing); last != "" {
		t.Fatalf("still missing after %s: %s", patience, last)
	}
}

// Finally is Eventually for the end of a test, whose other ends go on if it fails.
func Finally(t *testing.T, missing func() string) {
	t.Helper()
	if last := await(Patience, missing); last != "" {
		t.Errorf("still missing after %s: %s", Patience, last)
	}
}

// await returns what is missing still when patience ends.
func await(patience time.Duration, missing func() string) (last string) {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if last = missing(); last == "" || time.Now().After(deadline) {
			return last
		}
	}
}

// Missing says what is missing where something is not as it should be.
func Missing(what, got, want string) string {
	if got == want {
		return ""
	}
	return what + ": " + got + ", want " + want
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
		c.Collect(t, name)
		_, _ = c.TryKubectl(context.Background(), "", "delete", "namespace", name, "--wait=false", "--ignore-not-found") // it ends with the cluster
	})
	return name
}

// Collect tells what there is to know of a failed test: objects and events in
// the log, the components' own logs in a directory that stays.
func (c *Cluster) Collect(t *testing.T, namespace string) {
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
		out, err := c.TryKubectl(context.Background(), "", args...)
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
