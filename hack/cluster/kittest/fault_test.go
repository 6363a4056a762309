package kittest

import (
	"fmt"
	"strings"
	"testing"

	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/testcluster"
)

// TestComponents breaks components in each way and wants the pods of the node
// to live on, and everything to work again.
func TestComponents(t *testing.T) {
	c := require(t)
	ns := c.Namespace(t)
	c.Sleeper(t, ns, "lives", "node1", false)
	began := c.Kubectl(t, "get", "pod", "lives", "-n", ns, "-o", "jsonpath={.status.containerStatuses[0].containerID}")

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Kill("node1", "kubelet"))
	must(c.Kill("node1", "containerd"))
	must(c.Restart(t.Context(), "node1", "kubelet"))
	c.answers(t, ns, "lives")
	must(c.Pause("node1", "kubelet"))
	if state := c.state(t, "node1", "kubelet"); state != "paused" {
		t.Errorf("the kubelet is %s, want it paused", state)
	}
	must(c.Resume("node1", "kubelet"))
	must(c.Stop(plan.Fabric, "kube-scheduler"))
	if state := c.state(t, plan.Fabric, "kube-scheduler"); state != "stopped" {
		t.Errorf("the scheduler is %s, want it stopped", state)
	}
	must(c.Restart(t.Context(), plan.Fabric, "kube-scheduler"))
	must(c.Restart(t.Context(), plan.Fabric, "etcd"))
	must(c.Restart(t.Context(), plan.Fabric, "kube-apiserver"))
	c.answers(t, ns, "lives")
	after := c.Kubectl(t, "get", "pod", "lives", "-n", ns, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
	if after != began {
		t.Errorf("the container is %s, and was %s before", after, began)
	}
	if err := c.Kill("node1", "nothing"); err == nil || !strings.Contains(err.Error(), "kubelet") {
		t.Errorf("kill of what is not there: %v, want an error that says what is", err)
	}
	if err := c.Kill("node9", "kubelet"); err == nil || !strings.Contains(err.Error(), "node1") {
		t.Errorf("kill on a machine that is not there: %v, want an error that says which are", err)
	}
}

// answers waits until a command can be run in a pod.
func (c *cluster) answers(t *testing.T, ns, pod string) {
	t.Helper()
	testcluster.Eventually(t, func() string {
		out, err := c.TryKubectl(t.Context(), "", "exec", "-n", ns, pod, "--", "true")
		if err != nil {
			return out + err.Error()
		}
		return ""
	})
}

// state is that of a component.
func (c *cluster) state(t *testing.T, machine, component string) string {
	t.Helper()
	for _, m := range c.machines(t) {
		for _, s := range m.Services {
			if m.Name == machine && s.Name == component {
				return string(s.State)
			}
		}
	}
	t.Fatalf("%s has no %s", machine, component)
	return ""
}

// TestReboot takes a node's power away and wants it back with the same pods.
func TestReboot(t *testing.T) {
	c := require(t)
	ns := c.Namespace(t)
	c.Apply(t, ns, testcluster.Web(4))
	c.RolledOut(t, ns, "deployment/web")
	boot := func() string {
		return c.Kubectl(t, "get", "node", "node2", "-o", "jsonpath={.status.nodeInfo.bootID}")
	}
	before := boot()
	if err := c.Reboot(t.Context(), "node2"); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, func() string {
		if boot() == before {
			return "another boot of node2"
		}
		return ""
	})
	c.Kubectl(t, "wait", "node/node2", "--for=condition=Ready", "--timeout", testcluster.Patience.String())
	testcluster.Eventually(t, func() string { // all pods answer, on the node that was away too
		for _, p := range c.pods(t, ns, "app=web") {
			if out, err := c.TryKubectl(t.Context(), "", "exec", "-n", ns, p.name, "--", "true"); err != nil {
				return p.name + ": " + out
			}
		}
		return testcluster.Missing("pods", fmt.Sprint(len(c.pods(t, ns, "app=web"))), "4")
	})
}

// TestRail cuts a rail and wants the node to see it.
func TestRail(t *testing.T) {
	c := require(t)
	ns := c.Namespace(t)
	c.Sleeper(t, ns, "on-node1", "node1", true)
	const rail = "enp13s0f0np0"
	ping := func() { // a bridge passes on by a new port once a worker of the kernel has seen its carrier (net/core/link_watch.c)
		t.Helper()
		testcluster.Eventually(t, func() string {
			if out, err := c.TryKubectl(t.Context(), "", "exec", "-n", ns, "on-node1", "--", "ping", "-c", "1", "-W", "5", "-I", rail, "172.16.13.202"); err != nil {
				return out + err.Error()
			}
			return ""
		})
	}
	carrier := func() string {
		return strings.TrimSpace(c.OnNode(t, "node1", "cat", "/sys/class/net/"+rail+"/carrier"))
	}
	ping()
	if err := c.Cut("node1", "2"); err != nil { // its number, as its netdev, names a rail
		t.Fatal(err)
	}
	testcluster.Eventually(t, func() string { return testcluster.Missing("carrier of a rail that is cut", carrier(), "0") })
	if faults := c.machines(t)[1].Faults; len(faults) != 1 || !strings.Contains(faults[0], rail) {
		t.Errorf("the status tells faults %q, want one of %s", faults, rail)
	}
	if err := c.Mend("node1", rail); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, func() string { return testcluster.Missing("carrier of a rail that is mended", carrier(), "1") })
	ping()

	if faults := c.machines(t)[1].Faults; len(faults) != 0 {
		t.Errorf("faults %q after all was mended", faults)
	}
	if err := c.Cut("node1", "enp99s0f0np0"); err == nil || !strings.Contains(err.Error(), "enp11s0f0np0") {
		t.Errorf("cut of a link that is not there: %v, want an error that says which are", err)
	}
}

// TestDisk fills a node's disk and wants programs there to be told, and the
// host's to be as it was.
func TestDisk(t *testing.T) {
	c := require(t)
	if err := c.Fill("node2"); err != nil {
		t.Fatal(err)
	}
	// More than the node's programs may have given back since, such as the files of an image that was unpacked.
	out, err := c.TryOnNode(t.Context(), "node2", "dd", "if=/dev/zero", "of=/var/lib/railhead-test", "bs=1048576", "count=512")
	if err == nil || !strings.Contains(out, "No space left") {
		t.Errorf("writing on a full disk: %v: %s, want it refused", err, out)
	}
	if out, err := c.TryOnNode(t.Context(), "node1", "dd", "if=/dev/zero", "of=/var/lib/railhead-test", "bs=4096", "count=1"); err != nil {
		t.Errorf("writing on the other node: %v: %s", err, out)
	}
	if err := c.Free("node2"); err != nil {
		t.Fatal(err)
	}
	c.OnNode(t, "node2", "dd", "if=/dev/zero", "of=/var/lib/railhead-test", "bs=4096", "count=1")
	c.Kubectl(t, "wait", "node/node2", "--for=condition=Ready", "--timeout", testcluster.Patience.String())
}
