package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/plan"
)

func TestMain(m *testing.M) {
	Main(m, driver.Options{Options: plan.Options{Nodes: 2, Rails: 8, IPv4: true}})
}

// web is a Deployment of so many pods, spread over the nodes, each of which
// says its name to whoever asks at port 8080, behind a Service at port 80.
func web(replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers:
      - name: web
        image: localhost/railhead/tools:1
        command: [probe, serve]
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ipFamilyPolicy: PreferDualStack
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`, replicas)
}

// pod is where a running pod is.
type pod struct {
	name, node string
	addresses  []string
}

// pods are the running pods with a label, by name.
func pods(t *testing.T, c *Cluster, namespace, selector string) []pod {
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
