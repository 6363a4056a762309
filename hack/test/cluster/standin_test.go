package cluster

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/plan"
)

// standInPods is how many pods a stand-in node gets.
const standInPods = 20

// TestStandIns runs pods on nodes that are stand-ins and wants each to have an
// address of its own. RAILHEAD_CLUSTER_STANDINS says how many nodes there are.
func TestStandIns(t *testing.T) {
	Wanted(t)
	nodes := 10
	if s := os.Getenv("RAILHEAD_CLUSTER_STANDINS"); s != "" {
		var err error
		if nodes, err = strconv.Atoi(s); err != nil {
			t.Fatalf("RAILHEAD_CLUSTER_STANDINS %q: want a number of nodes", s)
		}
	}
	began := time.Now()
	c := Up(t, driver.Options{Options: plan.Options{IPv4: true}, ControlPlaneOnly: true, StandIns: nodes})
	t.Logf("%d nodes are ready after %.1f s", nodes, time.Since(began).Seconds())
	ns := c.Namespace(t)
	began = time.Now()
	want := nodes * standInPods
	c.Apply(t, ns, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: %d
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: none, image: none}]
`, want))
	within(t, time.Duration(nodes)*Patience, func() string {
		return missing("pods", c.Kubectl(t, "get", "deployment", "many", "-n", ns, "-o", "jsonpath={.status.readyReplicas}"), strconv.Itoa(want))
	})
	t.Logf("%d pods are running after %.1f s; %s", want, time.Since(began).Seconds(), c.memory(t))
	list, err := c.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owner, on := map[string]string{}, map[string]bool{}
	for _, p := range list.Items {
		on[p.Spec.NodeName] = true
		if other, ok := owner[p.Status.PodIP]; ok || p.Status.PodIP == "" {
			t.Errorf("pod %s has the address %q, and so has %q", p.Name, p.Status.PodIP, other)
		}
		owner[p.Status.PodIP] = p.Name
	}
	if len(owner) != want || len(on) != nodes {
		t.Errorf("%d addresses on %d nodes, want %d on %d", len(owner), len(on), want, nodes)
	}
}

// memory says what the control plane and the stand-ins take: the proportional
// share of each process of the fabric.
func (c *Cluster) memory(t *testing.T) string {
	t.Helper()
	machines := c.machines(t)
	var all []string
	for _, s := range machines[0].Services {
		out, err := c.try(context.Background(), plan.Fabric, "sh", "-c", fmt.Sprintf("grep ^Pss: /proc/%d/smaps_rollup", s.PID))
		if err != nil {
			continue
		}
		if fields := strings.Fields(out); len(fields) >= 2 {
			kib, _ := strconv.Atoi(fields[1])
			all = append(all, fmt.Sprintf("%s %d MiB", s.Name, kib/1024))
		}
	}
	return strings.Join(all, ", ")
}
