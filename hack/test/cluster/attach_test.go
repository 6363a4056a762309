package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/hack/cluster/image"
	"railhead/hack/cluster/testcluster"
	"railhead/hack/nodestate"
	"railhead/internal/golden"
)

const (
	printed    = acceptance + "/ai-cluster-macvlan"
	networksNS = "spiderpool"
)

// TestAttach wants pods on real kubelets to have eight rails, whatever breaks
// meanwhile, and nothing to stay of them, nor of controller and agents.
func TestAttach(t *testing.T) {
	c := require(t)
	c.leavesNothing(t)
	c.install(t)
	c.workers(t)
	c.Kubectl(t, "create", "namespace", networksNS)
	c.KubectlAfter(t, "delete", "namespace", networksNS)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"network", asPrinted("network")},
		{"network-as-printed", asPrinted("network-as-printed")},
		{"IPv6", families(netip.Addr.Is6)},
		{"both families", families(netip.Addr.IsValid)},
		{"one rail", oneRail},
		{"agent killed", agentKilled},
		{"default network", defaultNetwork},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.hasRights(t) // it checks last, when agents have handled the end of the pods
			c.leavesPodsNothing(t)
			test.run(t, c)
		})
	}
	t.Run("API server stopped", func(t *testing.T) { // without hasRights: an API server refuses requests until it has loaded the roles
		c.leavesPodsNothing(t)
		apiServerStopped(t, c)
	})
}

// eightRails applies the printed networks and DaemonSet and wants pods that have
// the shape of the printed example and reach each other on every rail.
func eightRails(t *testing.T, c *cluster, networks string) {
	t.Helper()
	c.networks(t, filepath.Join(printed, networks+".yaml"))
	ns := c.Namespace(t)
	all := c.rdmaTools(t, ns)
	shapes := map[string]string{}
	for _, p := range all {
		if len(p.addresses) != 9 {
			t.Errorf("%s on %s has addresses on %v, want them on nine interfaces", p.name, p.node, p.addresses)
		}
		shapes[p.node] = c.shape(t, ns, p)
	}
	if diff := cmp.Diff(shapes[all[0].node], shapes[all[1].node]); diff != "" {
		t.Errorf("pods of one DaemonSet differ (-%s +%s):\n%s", all[0].node, all[1].node, diff)
	}
	golden.Equal(t, filepath.Join("testdata", networks+".golden"), shapes[all[0].node])
	c.reachEachOther(t, ns, all[0], all[1])
	c.reachEachOther(t, ns, all[1], all[0])
	for _, p := range all {
		c.isOwned(t, ns, p, `owner_kind="DaemonSet"`)
	}
}

// asPrinted is eightRails with one of the printed files.
func asPrinted(networks string) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		t.Helper()
		eightRails(t, c, networks)
	}
}

// attachedPod is a running pod and its addresses by interface.
type attachedPod struct {
	name, node string
	addresses  map[string][]string
}

// attached are the running pods with a label, by the names of their nodes, as
// their annotation tells of them, which comes a moment after the pod.
func (c *cluster) attached(t *testing.T, ns, selector string) []attachedPod {
	t.Helper()
	out := c.Kubectl(t, "get", "pods", "-n", ns, "-l", selector, "--field-selector=status.phase=Running", "--sort-by=.spec.nodeName",
		"-o", `jsonpath={range .items[*]}{.metadata.name}{"\t"}{.spec.nodeName}{"\t"}{.metadata.annotations.k8s\.v1\.cni\.cncf\.io/network-status}{"\x00"}{end}`)
	var all []attachedPod
	for one := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		fields := strings.SplitN(one, "\t", 3)
		if len(fields) != 3 || fields[2] == "" {
			continue
		}
		var networks []struct {
			Interface string
			IPs       []string
		}
		if err := json.Unmarshal([]byte(fields[2]), &networks); err != nil {
			t.Fatalf("pod %s: network status %q: %v", fields[0], fields[2], err)
		}
		p := attachedPod{fields[0], fields[1], map[string][]string{}}
		for _, n := range networks {
			p.addresses[n.Interface] = n.IPs
		}
		all = append(all, p)
	}
	return all
}

// reachEachOther sends from each address of one pod to that of the other on the
// same rail. Rails are networks of their own: what takes another one passes a
// router, which its time to live would show, or is lost.
func (c *cluster) reachEachOther(t *testing.T, ns string, one, other attachedPod) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(one.addresses)) {
		for i, from := range one.addresses[name] {
			to := other.addresses[name][i]
			out, err := c.TryKubectl(t.Context(), "", "exec", "-n", ns, one.name, "--", "ping", "-c", "1", "-w", "60", "-I", from, to)
			if err != nil || name != "eth0" && !strings.Contains(out, "ttl=64 ") {
				t.Errorf("%s from %s to %s: %v\n%s", name, from, to, err, out)
			}
		}
	}
}

// workers gives the nodes what the printed DaemonSet asks for: their names, and
// an image.
func (c *cluster) workers(t *testing.T) {
	t.Helper()
	for i, n := range c.Plan().Nodes {
		c.tag(t, n.Name, "docker.io/library/rdma-tools:latest")
		c.Kubectl(t, "label", "node", n.Name, fmt.Sprintf("kubernetes.io/hostname=worker%d", i+1), "--overwrite")
		c.KubectlAfter(t, "label", "node", n.Name, "kubernetes.io/hostname="+n.Name, "--overwrite")
	}
}

// tag gives the tools another name on a node.
func (c *cluster) tag(t *testing.T, node, name string) {
	t.Helper()
	c.OnNode(t, node, "ctr", "--namespace", "k8s.io", "images", "tag", "--force", image.Tools, name)
}

// networks applies a file of networks, which goes with the test.
func (c *cluster) networks(t *testing.T, file string) {
	t.Helper()
	c.Kubectl(t, "apply", "-f", file)
	c.KubectlAfter(t, "delete", "-f", file)
	c.Kubectl(t, "wait", "-A", "--for=condition=Ready", "--timeout", testcluster.Patience.String(), "spidermultusconfigs", "--all")
	c.Kubectl(t, "wait", "--for=condition=Ready", "--timeout", testcluster.Patience.String(), "spiderippools", "--all")
}

// rdmaTools applies the printed DaemonSet, of which only the limits are left
// out, and returns its pods.
func (c *cluster) rdmaTools(t *testing.T, ns string) []attachedPod {
	t.Helper()
	workload := withoutLimits(t, filepath.Join(printed, "workload.yaml"))
	c.Apply(t, ns, workload)
	c.deleteAfter(t, ns, "daemonset/rdma-tools", "app=rdma-tools")
	c.RolledOut(t, ns, "daemonset/rdma-tools")
	var all []attachedPod
	testcluster.Eventually(t, func() string {
		all = c.attached(t, ns, "app=rdma-tools")
		return testcluster.Missing("pods of rdma-tools", fmt.Sprint(len(all)), "2")
	})
	return all
}

// withoutLimits is a manifest whose last part are a container's limits, without
// these.
func withoutLimits(t *testing.T, file string) string {
	t.Helper()
	manifest, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kept, limits, found := strings.Cut(string(manifest), "          resources:\n")
	if !found || !strings.Contains(limits, "limits:") {
		t.Fatalf("%s has no limits", file)
	}
	if _, command, more := strings.Cut(limits, "          command:\n"); more {
		kept += "          command:\n" + command
	}
	return kept
}

// deleteAfter deletes a workload when the test has ended, and waits for its pods to
// go, which get no time to end by themselves: they only sleep.
func (c *cluster) deleteAfter(t *testing.T, ns, workload, selector string) {
	t.Helper()
	t.Cleanup(func() {
		c.Collect(t, ns)
		for _, args := range [][]string{
			{"delete", "-n", ns, workload, "--cascade=foreground", "--wait=false"},
			{"delete", "-n", ns, "pods", "-l", selector, "--grace-period=1"},
			{"wait", "-n", ns, "--for=delete", workload, "--timeout", testcluster.Patience.String()},
		} {
			if _, err := c.TryKubectl(context.Background(), "", args...); err != nil {
				t.Error(err)
			}
		}
	})
}

// leavesNothing wants the nodes to be, when the test has ended and everything is
// deleted, as they were: as nodes are that have had a pod, for which the
// cluster's own network makes what it needs.
func (c *cluster) leavesNothing(t *testing.T) {
	t.Helper()
	ns := c.Namespace(t)
	for _, n := range c.Plan().Nodes {
		c.Sleeper(t, ns, "first-on-"+n.Name, n.Name, false)
	}
	c.Kubectl(t, "delete", "namespace", ns)
	before := c.settled(t)
	t.Cleanup(func() {
		testcluster.Finally(t, func() string { return cmp.Diff(before, c.nodes(t)) })
	})
}

// leavesPodsNothing is leavesNothing while there are agents, which have files of
// their own. It wants no SpiderEndpoint to stay either.
func (c *cluster) leavesPodsNothing(t *testing.T) {
	t.Helper()
	before := withoutAgents(c.settled(t))
	t.Cleanup(func() {
		testcluster.Finally(t, func() string {
			endpoints, err := c.TryKubectl(context.Background(), "", "get", "spiderendpoints", "-A", "-o", "name")
			if err != nil || endpoints != "" {
				return fmt.Sprintf("the end of %s%v", endpoints, err)
			}
			return cmp.Diff(before, withoutAgents(c.nodes(t)))
		})
	})
}

// nodes is what there is of pods' networks on all nodes.
func (c *cluster) nodes(t *testing.T) map[string]nodestate.State {
	t.Helper()
	all := map[string]nodestate.State{}
	for _, n := range c.Plan().Nodes {
		s, err := nodestate.Read(func(command ...string) (string, error) { return c.TryOnNode(context.Background(), n.Name, command...) })
		if err != nil {
			t.Fatal(err)
		}
		all[n.Name] = s
	}
	return all
}
