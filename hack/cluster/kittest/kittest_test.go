// Package kittest tests the cluster of hack/cluster itself: nodes and pods as
// Kubernetes has them, each way to break a component, and that nothing of a
// cluster stays. It runs no Railhead.
package kittest

import (
	"slices"
	"strings"
	"testing"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/testcluster"
)

var options = plan.Options{Nodes: 2, Rails: 8, IPv4: true}

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Config{Options: options, Variable: "RAILHEAD_KIT", Target: "kit-test"})
}

// cluster is a running cluster and what these tests ask of it.
type cluster struct{ *testcluster.Cluster }

func require(t *testing.T) *cluster {
	t.Helper()
	return &cluster{testcluster.Require(t)}
}

// pod is where a running pod is.
type pod struct {
	name, node string
	addresses  []string
}

// pods are the running pods with a label, by name.
func (c *cluster) pods(t *testing.T, namespace, selector string) []pod {
	t.Helper()
	out := c.Kubectl(t, "get", "pods", "-n", namespace, "-l", selector, "--field-selector=status.phase=Running",
		"-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.podIPs[*].ip}{"\n"}{end}`)
	var all []pod
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) >= 3 {
			all = append(all, pod{fields[0], fields[1], fields[2:]})
		}
	}
	return all
}

// onTwoNodes are two of the pods that are on different nodes.
func onTwoNodes(t *testing.T, all []pod) (one, other pod) {
	t.Helper()
	i := slices.IndexFunc(all, func(p pod) bool { return p.node != all[0].node })
	if i < 0 {
		t.Fatalf("all of %v are on one node", all)
	}
	return all[0], all[i]
}

// machines are all machines as the cluster tells of them, the fabric first.
func (c *cluster) machines(t *testing.T) []driver.Machine {
	t.Helper()
	s, err := c.Status()
	if err != nil {
		t.Fatal(err)
	}
	return s.Machines
}
