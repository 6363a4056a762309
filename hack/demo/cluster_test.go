package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"railhead/hack/cluster/driver"
	"railhead/hack/nodestate"
	"railhead/internal/cniinstall"
)

// patient is how long anything may take to be seen in Prometheus: far more than
// it takes.
const patient = 10 * time.Minute

// TestOnACluster shows the demo, and wants its series to be those of the pods
// that there are, to go with them, and to tell of a rail that is unplugged; and
// pods with eight rails to leave nothing of these behind.
func TestOnACluster(t *testing.T) {
	if os.Getenv("RAILHEAD_CLUSTER") == "" || os.Getenv("RAILHEAD_NIGHTLY") == "" {
		t.Skip("starts a cluster of its own: RAILHEAD_CLUSTER=1 RAILHEAD_NIGHTLY=1 go test ./hack/demo, as root")
	}
	t.Chdir("../..")
	parent, err := os.MkdirTemp("/var/tmp", "railhead-demo-test-") //nolint:usetesting // a node's images need a file system that overlayfs can write to
	if err != nil {
		t.Fatal(err)
	}
	dir := driver.Dir(filepath.Join(parent, "cluster"))
	t.Cleanup(func() {
		if err := dir.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := os.Remove(parent); err != nil {
			t.Error(err)
		}
	})
	d := begun(t, dir)
	d.eventually("one series a pod", func() string {
		return cmp.Diff(d.pods(), d.seen(`rdma_pod_info`))
	})
	if _, err := d.run(t.Context(), "delete", "daemonset", "rdma-tools"); err != nil {
		t.Fatal(err)
	}
	d.eventually("nodes as they were before pods with eight rails", func() string { return cmp.Diff(d.before, d.nodes()) })
	d.eventually("no series of pods that are gone", func() string {
		return cmp.Diff(d.pods(), d.seen(`rdma_pod_info`))
	})
	if _, err := dir.Give(t.Context(), driver.Order{Verb: "cut", Machine: "node1", Link: "0"}); err != nil {
		t.Fatal(err)
	}
	d.eventually("a rail that is down", func() string {
		down := d.query(`rdma_port_state{state="DOWN"} == 1`)
		if len(down) == 1 && down[0].Metric["instance"] == "node1" && down[0].Metric["device"] == "mlx5_0" {
			return ""
		}
		return down.String()
	})
	if _, err := d.run(t.Context(), "delete", "job", "-n", "research", "llama-pretrain"); err != nil {
		t.Fatal(err)
	}
	d.eventually("no series of a job that is gone", func() string {
		return d.query(`count by (pod_name) ({__name__=~"rdma_pod_.*",pod_namespace="research"})`).String()
	})
	d.eventually("one series a pod that stays", func() string { return cmp.Diff(d.pods(), d.seen(`rdma_pod_info`)) })
}

// demo is a demo that is up.
type demo struct {
	*cluster

	t       *testing.T
	metrics *metrics
	before  map[string]nodestate.State // pods with eight rails
}

func begun(t *testing.T, dir driver.Dir) *demo {
	t.Helper()
	c, err := bringUp(t.Context(), dir, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{cluster: c, t: t}
	for _, step := range []func(context.Context) error{c.install, c.deploy} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d.eventually("agents in the way of the runtime", func() string {
		for _, n := range c.Plan.Nodes {
			if out, err := c.there(t.Context(), n.Name, "ls", "/etc/cni/net.d/"+cniinstall.File); err != nil {
				return out + err.Error()
			}
		}
		return ""
	})
	d.eventually("nodes at rest", func() string {
		last := d.before
		d.before = d.nodes()
		return cmp.Diff(last, d.before)
	})
	if err := c.attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.metrics, err = startPrometheus(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := show(t.Context(), c, d.metrics); err != nil {
		t.Fatal(err)
	}
	return d
}

// nodes is what there is of pods' networks on the nodes.
func (d *demo) nodes() map[string]nodestate.State {
	d.t.Helper()
	all := map[string]nodestate.State{}
	for _, n := range d.Plan.Nodes {
		s, err := nodestate.Read(func(command ...string) (string, error) { return d.there(d.t.Context(), n.Name, command...) })
		if err != nil {
			d.t.Fatal(err)
		}
		delete(s, nodestate.Agent) // it has written down what was attached
		all[n.Name] = s
	}
	return all
}

// pods lists the pods of the workloads: node, namespace, name, and the workload.
func (d *demo) pods() []string {
	d.t.Helper()
	var all []string
	for namespace, workload := range map[string]string{"default": "DaemonSet rdma-tools", "research": "Job llama-pretrain", "serving": "Deployment chat-decode"} {
		out, err := d.run(d.t.Context(), "get", "pods", "-n", namespace, "-o",
			`jsonpath={range .items[*]}{.spec.nodeName} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
		if err != nil {
			d.t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			all = append(all, strings.TrimSpace(line)+" "+workload)
		}
	}
	slices.Sort(all)
	return all
}

// seen lists the pods of series in the same way.
func (d *demo) seen(query string) []string {
	d.t.Helper()
	var all []string
	for _, s := range d.query(query) {
		all = append(all, fmt.Sprintf("%s %s/%s %s %s",
			s.Metric["instance"], s.Metric["pod_namespace"], s.Metric["pod_name"], s.Metric["owner_kind"], s.Metric["owner_name"]))
	}
	slices.Sort(all)
	return all
}

func (d *demo) query(query string) model.Vector {
	d.t.Helper()
	answer, _, err := d.metrics.Query(d.t.Context(), query, time.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	series, ok := answer.(model.Vector)
	if !ok {
		d.t.Fatalf("%s: the answer is %T, want a vector", query, answer)
	}
	return series
}

// eventually waits until there is nothing wrong any more.
func (d *demo) eventually(what string, wrong func() string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patient)
	defer cancel()
	for {
		problem := wrong()
		if problem == "" {
			return
		}
		select {
		case <-ctx.Done():
			d.t.Fatalf("%s: after %v still\n%s", what, patient, problem)
		case <-time.After(time.Second):
		}
	}
}
