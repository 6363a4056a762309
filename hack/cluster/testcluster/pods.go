package testcluster

import (
	"fmt"
	"testing"

	"railhead/hack/cluster/image"
)

// Web is a Deployment of so many pods, spread over the nodes, each of which
// says its name to whoever asks at port 8080, behind a Service at port 80.
func Web(replicas int) string {
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
        image: %s
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
`, replicas, image.Tools)
}

// Sleeper starts a pod on a node that does nothing, and waits for it; with
// hostNetwork it is there to run tools on the node's network.
func (c *Cluster) Sleeper(t *testing.T, ns, name, node string, hostNetwork bool) {
	t.Helper()
	c.Apply(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  hostNetwork: %t
  terminationGracePeriodSeconds: 0
  containers:
  - {name: sleep, image: "%[4]s", securityContext: {privileged: %[3]t}}
`, name, node, hostNetwork, image.Tools))
	c.Ready(t, ns, name)
}

// Ready waits for a pod.
func (c *Cluster) Ready(t *testing.T, ns, pod string) {
	t.Helper()
	c.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", "pod/"+pod, "--timeout", Patience.String())
}

// RolledOut waits until all pods of a workload are ready.
func (c *Cluster) RolledOut(t *testing.T, ns, workload string) {
	t.Helper()
	c.Kubectl(t, "rollout", "status", "-n", ns, workload, "--timeout", Patience.String())
}
