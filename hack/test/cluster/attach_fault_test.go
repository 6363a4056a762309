package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"railhead/hack/cluster/image"
	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/testcluster"
)

// railed is a Deployment or pod template's annotation for all eight rails.
const railed = `k8s.v1.cni.cncf.io/networks: spiderpool/gpu1-macvlan,spiderpool/gpu2-macvlan,spiderpool/gpu3-macvlan,spiderpool/gpu4-macvlan,spiderpool/gpu5-macvlan,spiderpool/gpu6-macvlan,spiderpool/gpu7-macvlan,spiderpool/gpu8-macvlan`

// railsPod is a pod with eight rails on a node.
func railsPod(name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
  labels: {app: %[1]s}
  annotations: {%s}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: sleep, image: "%s"}]
`, name, strings.Replace(railed, ": ", `: "`, 1)+`"`, node, image.Tools)
}

// manyRails is a Deployment of pods with eight rails.
func manyRails(replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: %d
  selector: {matchLabels: {app: many}}
  template:
    metadata:
      labels: {app: many}
      annotations: {%s}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: sleep, image: "%s"}]
`, replicas, strings.Replace(railed, ": ", `: "`, 1)+`"`, image.Tools)
}

// agentKilled kills the agents while pods start and wants each pod to have its
// rails, with addresses that no other has.
func agentKilled(t *testing.T, c *cluster) {
	t.Helper()
	c.networks(t, filepath.Join(printed, "network.yaml"))
	ns := c.Namespace(t)
	const replicas = 16
	c.Apply(t, ns, manyRails(replicas))
	c.deleteAfter(t, ns, "deployment/many", "app=many")
	for started := range 3 {
		testcluster.Eventually(t, func() string { // some more have their networks
			if n := len(c.attached(t, ns, "app=many")); n < started*2 {
				return fmt.Sprintf("%d pods, want %d", n, started*2)
			}
			return ""
		})
		for _, n := range c.Plan().Nodes {
			c.killAgent(t, n.Name)
		}
	}
	c.RolledOut(t, ns, "deployment/many")
	var all []attachedPod
	testcluster.Eventually(t, func() string {
		all = c.attached(t, ns, "app=many")
		return testcluster.Missing("pods with networks", fmt.Sprint(len(all)), fmt.Sprint(replicas))
	})
	owner := map[string]string{}
	for _, p := range all {
		inside := c.Exec(t, ns, p.name, "ip", "-o", "addr")
		if len(p.addresses) != 9 {
			t.Errorf("%s has %v, want nine interfaces", p.name, p.addresses)
		}
		for name, addresses := range p.addresses {
			for _, a := range addresses {
				if other, taken := owner[a]; taken {
					t.Errorf("%s is of %s and of %s", a, other, p.name)
				}
				owner[a] = p.name
				if !regexp.MustCompile(` ` + name + ` +inet6? ` + regexp.QuoteMeta(a) + `/`).MatchString(inside) {
					t.Errorf("%s: %s has no %s:\n%s", p.name, name, a, inside)
				}
			}
		}
	}
}

// killAgent waits until the agent of a node runs, and kills it.
func (c *cluster) killAgent(t *testing.T, node string) {
	t.Helper()
	testcluster.Eventually(t, func() string {
		out, err := c.TryOnNode(t.Context(), node, "pkill", "-KILL", "-f", "^/usr/local/bin/railhead agent")
		if err != nil {
			return "an agent to kill on " + node + ": " + out
		}
		return ""
	})
}

// apiServerStopped wants a pod whose sandbox dies to have its rails again while
// there is no API server, and an agent that has only started then to take away
// what is dead. It gives the pod its rails when it can ask who that is.
func apiServerStopped(t *testing.T, c *cluster) {
	t.Helper()
	// A kubelet waits the longer for each start of an agent the more often it was killed.
	c.Kubectl(t, "delete", "pods", "-n", home, "-l", "app.kubernetes.io/name=railhead-agent")
	c.RolledOut(t, home, agents)
	c.networks(t, filepath.Join(printed, "network.yaml"))
	ns := c.Namespace(t)
	c.Apply(t, ns, railsPod("known", "node1"))
	c.deleteAfter(t, ns, "pod/known", "app=known")
	c.Ready(t, ns, "known")
	first := c.sandbox(t, ns, "known", "")
	back := func(ctx context.Context) error {
		if err := c.Restart(ctx, plan.Fabric, "kube-apiserver"); err != nil {
			return err
		}
		for _, who := range []string{controller, agents} {
			if out, err := c.TryKubectl(context.Background(), "", "rollout", "status", "-n", home, who, "--timeout", testcluster.Patience.String()); err != nil { //nolint:contextcheck // also when the test has ended
				return fmt.Errorf("%s%w", out, err)
			}
		}
		return nil
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return // it is back
		}
		if err := back(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := c.Stop(plan.Fabric, "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	c.endSandbox(t, first)
	second := c.sandbox(t, ns, "known", first.id)
	c.awaitEnd(t, first)
	c.killAgent(t, "node1")
	c.endSandbox(t, second)
	c.awaitEnd(t, second)
	if err := back(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.sandbox(t, ns, "known", second.id)
	c.Ready(t, ns, "known")
	c.webhooksAnswer(t)
}

// webhooksAnswer waits until each replica of the controller admits objects: the one
// that lost its lease starts anew, and the API server asks it meanwhile too.
func (c *cluster) webhooksAnswer(t *testing.T) {
	t.Helper()
	addresses := c.Kubectl(t, "get", "pods", "-n", home, "-l", "app.kubernetes.io/name=railhead-controller", "-o", "jsonpath={.items[*].status.podIP}")
	for address := range strings.FieldsSeq(addresses) {
		testcluster.Eventually(t, func() string {
			if out, err := c.TryOnNode(t.Context(), "node1", "bash", "-c", "echo > /dev/tcp/"+address+"/5722"); err != nil {
				return "webhooks of the controller at " + address + ": " + out
			}
			return ""
		})
	}
}

// sandbox is what holds a pod's namespaces on node1.
type sandbox struct{ id, netns string }

// sandbox waits for a pod's sandbox that is not the one before, with nine
// interfaces that have addresses.
func (c *cluster) sandbox(t *testing.T, ns, pod, before string) (s sandbox) {
	t.Helper()
	testcluster.Within(t, 2*testcluster.Patience, func() string { // the kubelet waits longer and longer between attempts
		out, err := c.TryOnNode(t.Context(), "node1", "sh", "-c", fmt.Sprintf(
			`for id in $(ctr -n k8s.io containers ls -q 'labels."io.cri-containerd.kind"==sandbox,labels."io.kubernetes.pod.name"==%s,labels."io.kubernetes.pod.namespace"==%s'); do
			pid=$(ctr -n k8s.io tasks ls | awk -v id=$id '$1 == id && $3 == "RUNNING" {print $2}')
			[ -n "$pid" ] && echo $id $(readlink /proc/$pid/ns/net) $(nsenter -t $pid -n ip -o -4 addr | grep -c -e ' eth0 ' -e ' net[1-8] '); done; true`, pod, ns))
		if err != nil {
			return out + err.Error()
		}
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 3 && f[0] != before && f[2] == "9" {
				s = sandbox{f[0], f[1]}
				return ""
			}
		}
		return "a sandbox other than " + before + " with nine interfaces: " + out
	})
	return s
}

// endSandbox kills what holds a pod's namespaces.
func (c *cluster) endSandbox(t *testing.T, s sandbox) {
	t.Helper()
	c.OnNode(t, "node1", "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", s.id)
}

// awaitEnd waits until there is nothing of a sandbox on its node.
func (c *cluster) awaitEnd(t *testing.T, s sandbox) {
	t.Helper()
	testcluster.Eventually(t, func() string {
		out, err := c.TryOnNode(t.Context(), "node1", "sh", "-c", "ls /var/lib/cni/results | grep "+s.id+"; lsns -t net -o NS -n | grep -w "+strings.Trim(s.netns, "net:[]")+"; true")
		if err != nil {
			return out + err.Error()
		}
		if out != "" {
			return "the end of sandbox " + s.id + ": " + out
		}
		return ""
	})
}
