package kittest

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"railhead/hack/cluster/image"
	"railhead/hack/cluster/testcluster"
)

// agent is a DaemonSet as a network agent has it: on the node's network,
// privileged, and with the namespaces of pods mounted both ways.
const agent = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      hostNetwork: true
      hostPID: true
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
      containers:
      - name: agent
        image: ` + image.Tools + `
        securityContext: {privileged: true}
        volumeMounts:
        - {name: netns, mountPath: /run/netns, mountPropagation: Bidirectional}
        - {name: shared, mountPath: /shared, mountPropagation: Bidirectional}
      volumes:
      - {name: netns, hostPath: {path: /run/netns}}
      - {name: shared, hostPath: {path: /run/agent-test, type: DirectoryOrCreate}}
`

// TestAgent wants a privileged DaemonSet to see and to enter the namespaces of
// other pods, and what it mounts to be seen by the node, and by no other.
func TestAgent(t *testing.T) {
	c := require(t)
	ns := c.Namespace(t)
	c.Apply(t, ns, agent)
	c.Apply(t, ns, testcluster.Web(2))
	c.RolledOut(t, ns, "daemonset/agent")
	c.RolledOut(t, ns, "deployment/web")
	agents := c.pods(t, ns, "app=agent")
	if len(agents) != 2 {
		t.Fatalf("agents %v, want one a node", agents)
	}
	for _, p := range c.pods(t, ns, "app=web") {
		seen := ""
		for _, a := range agents {
			if a.node == p.node { // those of pods of other tests come and go
				seen = c.Exec(t, ns, a.name, "sh", "-c", `for n in /run/netns/cni-*; do nsenter --net=$n ip -o addr show eth0; done; true`)
			}
		}
		if !strings.Contains(seen, p.addresses[0]+"/") {
			t.Errorf("the agent of %s sees no namespace with %s of %s:\n%s", p.node, p.addresses[0], p.name, seen)
		}
	}
	one, other := onTwoNodes(t, agents)
	c.Exec(t, ns, one.name, "sh", "-c", "mkdir -p /shared/m && mount -t tmpfs from-the-pod /shared/m && echo rail > /shared/m/file")
	if got := strings.TrimSpace(c.OnNode(t, one.node, "cat", "/run/agent-test/m/file")); got != "rail" {
		t.Errorf("the node reads %q from what the pod mounted, want %q", got, "rail")
	}
	if mounts := c.OnNode(t, other.node, "cat", "/proc/self/mounts"); strings.Contains(mounts, "from-the-pod") {
		t.Errorf("%s sees a mount of %s:\n%s", other.node, one.node, mounts)
	}
	c.Exec(t, ns, one.name, "umount", "/shared/m")
}

// plugin is an NRI plugin that remembers the pods whose containers are made.
type plugin struct {
	mu   sync.Mutex
	pods []string
}

// CreateContainer gives every container a variable.
func (p *plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, _ *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods = append(p.pods, pod.GetNamespace()+"/"+pod.GetName())
	adjust := &api.ContainerAdjustment{}
	adjust.AddEnv("RAILS", "8")
	return adjust, nil, nil
}

// TestNRI wants an NRI plugin on a node to see pods and to change containers.
func TestNRI(t *testing.T) {
	c := require(t)
	ns := c.Namespace(t)
	p := &plugin{}
	s, err := stub.New(p, stub.WithPluginName("test"), stub.WithPluginIdx("10"),
		stub.WithDialer(func(string) (net.Conn, error) {
			return new(net.Dialer).DialContext(t.Context(), "unix", filepath.Join(c.Root("node1"), "var/run/nri/nri.sock"))
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	c.Sleeper(t, ns, "seen", "node1", false)
	if got := strings.TrimSpace(c.Exec(t, ns, "seen", "sh", "-c", "echo $RAILS")); got != "8" {
		t.Errorf("the container has RAILS=%q, want what the plugin said", got)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := ns + "/seen"; !slices.Contains(p.pods, want) {
		t.Errorf("the plugin saw %q, want %q", p.pods, want)
	}
}

// TestSecondInterface gives two pods on two nodes an interface on a rail by a
// conflist, and wants them to reach each other over it.
func TestSecondInterface(t *testing.T) {
	c := require(t)
	ns := c.Namespace(t)
	for i, node := range []string{"node1", "node2"} {
		name := fmt.Sprintf("on-%s", node)
		c.Sleeper(t, ns, name, node, false)
		netns := strings.TrimSpace(c.OnNode(t, node, "sh", "-c", fmt.Sprintf(
			"for n in /run/netns/cni-*; do if nsenter --net=$n ip -o addr show eth0 2>/dev/null | grep -q ' %s/'; then echo $n; fi; done",
			c.Kubectl(t, "get", "pod", name, "-n", ns, "-o", "jsonpath={.status.podIP}"))))
		c.OnNode(t, node, "sh", "-c", fmt.Sprintf(`mkdir -p /run/conf-%[1]s && cat > /run/conf-%[1]s/rail0.conflist <<'END'
{"cniVersion": "1.0.0", "name": "rail0", "plugins": [{"type": "macvlan", "master": "enp11s0f0np0", "mode": "bridge",
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "172.16.11.0/24", "rangeStart": "172.16.11.%[2]d", "rangeEnd": "172.16.11.%[2]d"}]]}}]}
END
NETCONFPATH=/run/conf-%[1]s CNI_PATH=/opt/cni/bin CNI_IFNAME=net1 cnitool add rail0 %[3]s`, ns, 101+i, netns))
	}
	if out := c.Exec(t, ns, "on-node1", "ip", "-o", "addr", "show", "net1"); !strings.Contains(out, "172.16.11.101/24") {
		t.Errorf("net1 of the first pod:\n%s\nwant 172.16.11.101/24", out)
	}
	c.Exec(t, ns, "on-node1", "ping", "-c", "1", "-w", "60", "-I", "net1", "172.16.11.102")
	c.Exec(t, ns, "on-node1", "ping", "-c", "1", "-w", "60", "-I", "net1", "172.16.11.254") // the rail's gateway
}
