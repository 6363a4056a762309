package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"railhead/hack/cluster/testcluster"
	"railhead/internal/cniinstall"
)

const (
	home       = "railhead-system"
	controller = "deployment/railhead-controller"
	agents     = "daemonset/railhead-agent"
)

// install installs controller and agents as operators do, by the shipped manifests
// with what deploy/demo changes of them, and waits until both do their work. At its
// end the test deletes what it has applied, and wants nothing to be left that asks
// Railhead for admission.
func (c *cluster) install(t *testing.T) {
	t.Helper()
	crds := filepath.Join(root, "charts/railhead/crds")
	c.Kubectl(t, "apply", "--server-side", "-f", crds)
	c.KubectlAfter(t, "delete", "-f", crds)
	manifests := c.Kubectl(t, "kustomize", "--load-restrictor", "LoadRestrictionsNone", filepath.Join(root, "deploy/demo"))
	t.Cleanup(func() {
		if t.Failed() {
			c.Collect(t, home)
		}
		for _, step := range [][]string{
			{"delete", "-f", "-"}, // which waits for the end of the namespace, and so of the agents
			{"wait", "--for=delete", "mutatingwebhookconfiguration/railhead", "validatingwebhookconfiguration/railhead", "--timeout", testcluster.Patience.String()},
		} {
			if _, err := c.TryKubectl(context.Background(), manifests, step...); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := c.TryKubectl(t.Context(), manifests, "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.RolledOut(t, home, controller)
	c.RolledOut(t, home, agents)
	c.Kubectl(t, "wait", "--for=create", "mutatingwebhookconfiguration/railhead", "validatingwebhookconfiguration/railhead", "--timeout", testcluster.Patience.String())
	c.admits(t)
	for _, n := range c.Plan().Nodes {
		testcluster.Eventually(t, func() string {
			if _, err := c.TryOnNode(t.Context(), n.Name, "ls", "/etc/cni/net.d/"+cniinstall.File); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// admits waits until the API server asks the webhooks: it refuses what only they
// refuse. It hears of their configuration, and of who is behind their Service, some
// time after these are there.
func (c *cluster) admits(t *testing.T) {
	t.Helper()
	const wrong = "{apiVersion: spiderpool.spidernet.io/v2beta1, kind: SpiderReservedIP, metadata: {name: probe}, spec: {ips: [x]}}"
	testcluster.Eventually(t, func() string {
		out, err := c.TryKubectl(t.Context(), wrong, "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "is invalid") {
			return fmt.Sprintf("a refusal of what only webhooks refuse, not %s%v", out, err)
		}
		return ""
	})
}

// hasRights wants controller and agents not to be refused anything from now on, by
// what they log, until the test ends. That they work is no proof: a request that
// lacks a right may be retried forever, or its result may not matter.
func (c *cluster) hasRights(t *testing.T) {
	t.Helper()
	before := c.refusals(t)
	t.Cleanup(func() {
		for log, count := range c.refusals(t) {
			if count > before[log] {
				machine, file, _ := strings.Cut(log, ":")
				last, err := c.TryOnNode(context.Background(), machine, "sh", "-c", "grep -E '"+refused+"' "+file+" | tail -n 3")
				t.Errorf("the API server refused %d requests of %s, the last of them:\n%s%v", count-before[log], log, last, err)
			}
		}
	})
}

// refused is in what is logged of a request that the API server refuses to somebody
// for want of a right, or by a shipped policy.
const refused = "forbidden: (User|ValidatingAdmissionPolicy)"

// refusals are how many lines of each log of Railhead's containers tell that the
// API server refused something, by node and file.
func (c *cluster) refusals(t *testing.T) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, n := range c.Plan().Nodes {
		out, err := c.TryOnNode(context.Background(), n.Name, "sh", "-c", "grep -r -E -c '"+refused+"' /var/log/pods/"+home+"_*; [ $? -le 1 ]")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			file, number, _ := strings.Cut(strings.TrimSpace(line), ".log:")
			count, err := strconv.Atoi(number)
			if err != nil {
				t.Fatalf("%s: grep: %s", n.Name, line)
			}
			all[n.Name+":"+file+".log"] = count
		}
	}
	if len(all) == 0 {
		t.Fatal("no log of controller or agents is found")
	}
	return all
}

// isOwned waits until the metrics of a pod's agent name its owner, and wants the
// agent to have the right to look for that.
func (c *cluster) isOwned(t *testing.T, ns string, p attachedPod, owner string) {
	t.Helper()
	agent := c.Kubectl(t, "get", "pods", "-n", home, "-l", "app.kubernetes.io/name=railhead-agent",
		"--field-selector=spec.nodeName="+p.node, "-o", "jsonpath={.items[*].metadata.name}")
	testcluster.Eventually(t, func() string {
		metrics := c.Kubectl(t, "get", "--raw", "/api/v1/namespaces/"+home+"/pods/"+agent+":5711/proxy/metrics")
		for line := range strings.Lines(metrics) {
			switch {
			case !strings.HasPrefix(line, "rdma_pod_info{"), !strings.Contains(line, `pod_name="`+p.name+`"`), !strings.Contains(line, `pod_namespace="`+ns+`"`):
			case strings.Contains(line, `reason="Forbidden"`):
				t.Fatalf("an agent may not ask for the owner of a pod: %s", line)
			case strings.Contains(line, owner):
				return ""
			}
		}
		return owner + " of " + p.name + " in the metrics of " + agent
	})
}
