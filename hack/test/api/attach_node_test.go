package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/containernetworking/cni/libcni"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/hack/cluster/binaries"
	"railhead/internal/cniinstall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

// attachRails is how many rails a node of attachment tests has.
const attachRails = 8

// clusterNetworkFile is the cluster's own network of such a node.
const clusterNetworkFile = "10-cluster.conflist"

// attachNode is a node with rails whose container runtime is the test, in this
// network namespace: its agents are the program that is shipped, its cluster
// network is that of the CNI project.
type attachNode struct {
	*Server
	name       string // of the node, and of the namespace of its pods and networks
	net        int    // the second byte of addresses of rails
	set        *binaries.Set
	programs   string // directory of what is shipped
	bin, conf  string // where the runtime looks for plugins and networks
	run        string // sockets and state of a boot
	namespaces string // of pods
	kubeconfig string
	fabric     *os.File // the network namespace of the rails' gateways
	kernel     *rtnl.Client
	lives      *agentLives
}

// newAttachNode makes the node, its eight pools and their networks gpu1 to gpu8.
// No agent is started. To be called in [kerneltest.NetNS], with a controller.
func (s *Server) newAttachNode(t *testing.T, name string, net, addresses int) *attachNode {
	t.Helper()
	set, err := binaries.Ensure(t.Context(), t.Output(), binaries.CNI)
	if err != nil {
		t.Fatal(err)
	}
	s.InstallAgents(t)
	n := &attachNode{
		Server: s, name: name, net: net, set: set, programs: builtPrograms(t), bin: s.sub("cni/bin"), conf: s.sub("cni/net.d"),
		run: s.sub("run"), namespaces: s.sub("netns"), kubeconfig: s.agentKubeconfig(t, name), fabric: kerneltest.NewNetNS(t),
		kernel: kernelIn(t, 0), lives: &agentLives{next: make(chan struct{})},
	}
	for _, plugin := range []string{"ptp", "host-local"} {
		if err := os.Symlink(filepath.Join(set.CNIDir(), plugin), filepath.Join(n.bin, plugin)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // of pods that a test which fails leaves
		left, _ := filepath.Glob(filepath.Join(n.namespaces, "*"))
		for _, path := range left {
			_ = endNamespace(path)
		}
	})
	n.setClusterNetwork(t, "1.1.0")
	n.makeRails(t)
	n.makeObjects(t, addresses)
	return n
}

func kernelIn(t *testing.T, ns int) *rtnl.Client {
	t.Helper()
	c, err := rtnl.Dial(&rtnl.Config{NetNS: ns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func railName(rail int) string { return fmt.Sprintf("enp%ds0f0np0", 11+rail) }

// makeRails makes the netdevs that pods' interfaces are made on, with a gateway
// behind each.
func (n *attachNode) makeRails(t *testing.T) {
	t.Helper()
	// Addresses that come with links by themselves would come and go in snapshots.
	quiet := func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	}
	there, err := netns.Open(fmt.Sprintf("/proc/self/fd/%d", n.fabric.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if err := errors.Join(quiet(), there.Do(quiet)); err != nil {
		t.Fatal(err)
	}
	fabric := kernelIn(t, int(n.fabric.Fd()))
	for rail := range attachRails {
		gateway := netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.254/24", n.net, 1+rail))
		err := errors.Join(append(
			n.kernel.Do(rtnl.LinkAdd{
				Name: railName(rail), Kind: "veth", Index: 110 + rail, Up: true,
				Peer: rtnl.VethPeer{Name: fmt.Sprintf("sw%d", rail), Index: 210 + rail, NetNS: int(n.fabric.Fd())},
			}),
			fabric.Do(rtnl.LinkSet{Index: 210 + rail, Up: new(true)}, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 210 + rail, Prefix: gateway}})...,
		)...)
		if err != nil {
			t.Fatal(err)
		}
	}
	Eventually(t, func() string {
		for rail := range attachRails {
			if link, err := n.kernel.LinkByName(railName(rail)); err != nil || link.OperState != "up" {
				return fmt.Sprintf("rail %s that is up: %+v, %v", railName(rail), link, err)
			}
		}
		return ""
	})
}

// makeObjects makes the node, pools and networks.
func (n *attachNode) makeObjects(t *testing.T, addresses int) {
	t.Helper()
	n.namespace(t, n.name, nil)
	node := NodeObject(n.name)
	if err := n.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.255.255.1"}} // of makeDefaultRoute
	if err := n.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for rail := range attachRails {
		n.Make(t, Objects(t, fmt.Sprintf(`
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: %[3]s-gpu%[1]d}
spec: {ipVersion: 4, subnet: 10.%[4]d.%[1]d.0/24, ips: [10.%[4]d.%[1]d.1-10.%[4]d.%[1]d.%[2]d], gateway: 10.%[4]d.%[1]d.254}
`, 1+rail, addresses, n.name, n.net))[0])
		config := fmt.Sprintf(`{"cniVersion":"0.3.1","name":"gpu%[1]d","plugins":[`+
			`{"type":"macvlan","master":%[2]q,"mode":"bridge","ipam":{"type":"spiderpool","default_ipv4_ippool":["%[3]s-gpu%[1]d"]}},{"type":"coordinator"}]}`, 1+rail, railName(rail), n.name)
		nad := &cniv1.NetworkAttachmentDefinition{
			ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: fmt.Sprintf("gpu%d", 1+rail)},
			Spec:       cniv1.NetworkAttachmentDefinitionSpec{Config: config},
		}
		if err := n.Create(t.Context(), nad); err != nil {
			t.Fatal(err)
		}
	}
}

// setClusterNetwork writes the cluster's own network in a CNI version, as a network's installer would.
func (n *attachNode) setClusterNetwork(t *testing.T, version string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"cniVersion": version, "name": "cluster", "plugins": []any{map[string]any{
		"type": "ptp",
		"ipam": map[string]any{
			"type": "host-local", "dataDir": n.leases(), "routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
			"ranges": []any{[]any{map[string]any{"subnet": "10.212.0.0/24"}}},
		},
	}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(n.run, "conflist"), text, 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(n.run, "conflist"), filepath.Join(n.conf, clusterNetworkFile))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// leases is where host-local keeps who has which address of eth0.
func (n *attachNode) leases() string { return filepath.Join(n.run, "host-local") }

// attachments is where the agent keeps its records.
func (n *attachNode) attachments() string { return filepath.Join(n.dir, "attachments") }

// awaitNetwork waits until the agent has installed our network in a CNI version, and loads it as a runtime does.
func (n *attachNode) awaitNetwork(t *testing.T, version string) *libcni.NetworkConfigList {
	t.Helper()
	var list *libcni.NetworkConfigList
	Eventually(t, func() string {
		var err error
		if list, err = libcni.NetworkConfFromFile(filepath.Join(n.conf, cniinstall.File)); err != nil {
			return err.Error()
		}
		if list.CNIVersion != version {
			return fmt.Sprintf("our network in CNI version %s, it has %s", version, list.CNIVersion)
		}
		return ""
	})
	return list
}
