package cases

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/containernetworking/cni/libcni"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	"railhead/hack/nodestate"
)

// runtimeNetworks are those of both pods by interface, each on links of its own: what
// stands on a netdev, what the kernel's VLANs are, and what ifacer makes below. Two
// pods cannot have one VLAN of one netdev.
func runtimeNetworks(pod string) map[string]runtimeNetwork {
	master := map[string]string{"one": "p1", "two": "p2"}[pod]
	return map[string]runtimeNetwork{
		"net1": {1, "ipvlan", "p0", `{"type":"ipvlan","master":"p0",%s}`},
		"net2": {2, "vlan", "", `{"type":"vlan","master":"` + master + `","vlanId":12,%s}`},
		"net3": {3, "macvlan", "p3.13", `{"type":"ifacer","interfaces":["p3"],"vlanID":13},{"type":"macvlan","master":"p3.13",%s}`},
		"net4": {4, "macvlan", "bond7.14", `{"type":"ifacer","interfaces":["p4","p5"],"vlanID":14,"bond":{"name":"bond7","mode":1,"options":"miimon=100"}},{"type":"macvlan","master":"bond7.14",%s}`},
	}
}

// runtimeNetwork is a network whose main plugin wants its IPAM. Its VLAN, where it
// has one, is ten and its number.
type runtimeNetwork struct {
	number       int
	kind, parent string // of a pod's interface, as the kernel tells of it
	plugins      string
}

// TestStableAttachRuntime attaches two pods as a container runtime does, by libcni and
// the program that is shipped, to links that few kernels of containers have, and wants
// them to reach each other over each, and nothing to stay of them.
func TestStableAttachRuntime(t *testing.T) {
	Require(t)
	Run(t, "modprobe", "bonding", "max_bonds=0") // as systemd has it: no bond that nobody asked for
	Run(t, "ip", "addr", "add", nodeAddress+"/32", "dev", "lo")
	t.Cleanup(func() { Run(t, "ip", "addr", "del", nodeAddress+"/32", "dev", "lo") })
	runtimeFabric(t)
	node := newRuntimeNode(t)
	pods := []*runtimePod{node.pod(t, "one", 1), node.pod(t, "two", 2)}
	before := nodeState(t)

	for _, p := range pods {
		p.add(t)
		p.hasLinks(t)
	}
	for _, p := range pods {
		p.check(t)
		p.statusIsSo(t)
	}
	pods[0].reaches(t, pods[1])
	pods[1].reaches(t, pods[0])
	for _, p := range pods {
		p.isReachedByNode(t)
	}

	pods[0].del(t)
	pods[1].check(t) // with what it shares with the other
	pods[1].reachesGateways(t)
	pods[1].del(t)
	pods[1].del(t) // once more, as runtimes do
	Eventually(t, func() string { return cmp.Diff(before, nodeState(t)) })
}

// nodeState is what the machine has of pods' networks.
func nodeState(t *testing.T) nodestate.State {
	t.Helper()
	s, err := nodestate.Read(func(command ...string) (string, error) { return Try(command[0], command[1:]...) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// runtimeFabric makes the netdevs of a node and the switch they lead to, with the
// gateways of all networks.
func runtimeFabric(t *testing.T) {
	t.Helper()
	fabric := NewNetNS(t, "fabric")
	fabric.Run(t, "ip", "link", "add", "br0", "type", "bridge")
	fabric.Run(t, "ip", "link", "set", "br0", "up")
	for n := range 6 {
		port := fmt.Sprint("s", n)
		AddLink(t, fmt.Sprint("p", n), "type", "veth", "peer", "name", port, "netns", string(fabric))
		fabric.Run(t, "ip", "link", "set", port, "master", "br0", "up")
	}
	for _, network := range runtimeNetworks("one") {
		link := "br0"
		if network.number > 1 {
			link = fmt.Sprint("br0.", 10+network.number)
			fabric.Run(t, "ip", "link", "add", link, "link", "br0", "type", "vlan", "id", fmt.Sprint(10+network.number))
			fabric.Run(t, "ip", "link", "set", link, "up")
		}
		for _, subnet := range network.subnets() {
			fabric.Run(t, "ip", "addr", "add", gatewayOf(subnet).String(), "dev", link, "nodad")
		}
	}
	Eventually(t, func() string { // the kernel looks whether others have them
		if out := Run(t, "ip", "-o", "addr", "show", "tentative"); out != "" {
			return "addresses that are sure: " + out
		}
		return ""
	})
}

// subnets are those of a network, of both families.
func (n runtimeNetwork) subnets() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("172.30.%d.0/24", n.number)),
		netip.MustParsePrefix(fmt.Sprintf("fd00:30:%d::/64", n.number)),
	}
}

// gatewayOf is the address of a subnet's gateway.
func gatewayOf(subnet netip.Prefix) netip.Prefix {
	bytes := subnet.Addr().AsSlice()
	bytes[len(bytes)-1] = 254
	address, _ := netip.AddrFromSlice(bytes)
	return netip.PrefixFrom(address, subnet.Bits())
}

// runtimePod is a pod's sandbox as its runtime knows it.
type runtimePod struct {
	*runtimeNode
	name string
	ns   NetNS
	conf *libcni.RuntimeConf
}

// pod makes the sandbox of a pod that asks for all its networks.
func (n *runtimeNode) pod(t *testing.T, name string, number int) *runtimePod {
	t.Helper()
	p := &runtimePod{runtimeNode: n, name: name, ns: NewNetNS(t, name)}
	id := fmt.Sprint("sandbox", number)
	p.conf = &libcni.RuntimeConf{ContainerID: id, NetNS: p.ns.Path(), IfName: "eth0", Args: [][2]string{
		{"IgnoreUnknown", "1"},
		{"K8S_POD_NAMESPACE", "default"},
		{"K8S_POD_NAME", name},
		{"K8S_POD_INFRA_CONTAINER_ID", id},
		{"K8S_POD_UID", "uid-" + name},
	}}
	return p
}

func (p *runtimePod) add(t *testing.T) {
	t.Helper()
	answer, err := p.cni.AddNetworkList(t.Context(), p.list, p.conf)
	if err != nil {
		t.Fatalf("ADD %s: %v", p.name, err)
	}
	result, err := types100.NewResultFromResult(answer)
	if err != nil || len(result.IPs) != 1 || len(result.Interfaces) == 0 || result.Interfaces[0].Name != "eth0" {
		t.Errorf("ADD %s: result %+v, %v, want one address of eth0", p.name, result, err)
	}
}

func (p *runtimePod) check(t *testing.T) {
	t.Helper()
	if err := p.cni.CheckNetworkList(t.Context(), p.list, p.conf); err != nil {
		t.Errorf("CHECK %s: %v", p.name, err)
	}
}

func (p *runtimePod) del(t *testing.T) {
	t.Helper()
	if err := p.cni.DelNetworkList(t.Context(), p.list, p.conf); err != nil {
		t.Errorf("DEL %s: %v", p.name, err)
	}
}

// hasLinks wants each interface to be what its network says, on what its network says.
func (p *runtimePod) hasLinks(t *testing.T) {
	t.Helper()
	links := p.ns.Links(t)
	parents := Links(t)
	for name, network := range runtimeNetworks(p.name) {
		kinds := JSON[[]struct {
			Info struct {
				Kind string `json:"info_kind"`
			} `json:"linkinfo"`
			Index int `json:"link_index"`
		}](t, "ip", "-n", string(p.ns), "-j", "-d", "link", "show", "dev", name)
		switch {
		case kinds[0].Info.Kind != network.kind:
			t.Errorf("%s of %s is of kind %s, want %s", name, p.name, kinds[0].Info.Kind, network.kind)
		case network.parent != "" && kinds[0].Index != parents[network.parent].Index:
			t.Errorf("%s of %s is %+v on link %d, want it on %s, %+v", name, p.name, links[name], kinds[0].Index, network.parent, parents[network.parent])
		}
	}
	if bond := parents["p4"].Master; bond != "bond7" || parents["p5"].Master != bond {
		t.Errorf("p4 and p5 are members of %q and %q, want bond7", bond, parents["p5"].Master)
	}
}

// statusIsSo wants the pod's annotation to tell of all interfaces, with addresses
// that these have.
func (p *runtimePod) statusIsSo(t *testing.T) {
	t.Helper()
	addresses := p.addresses(t)
	want := []string{"eth0", "net1", "net2", "net3", "net4"}
	if names := slices.Sorted(maps.Keys(addresses)); !slices.Equal(names, want) {
		t.Errorf("the annotation of %s tells of %q, want %q", p.name, names, want)
	}
	for name, all := range addresses {
		if families := 2; name != "eth0" && len(all) != families {
			t.Errorf("%s of %s has %v, want an address of each family", name, p.name, all)
		}
		inside := p.ns.Run(t, "ip", "-o", "addr", "show", "dev", name)
		for _, a := range all {
			if !containsAddress(inside, a) {
				t.Errorf("%s of %s has no %s:\n%s", name, p.name, a, inside)
			}
		}
	}
}

// reaches sends from each address to that of the other pod on the same network.
func (p *runtimePod) reaches(t *testing.T, other *runtimePod) {
	t.Helper()
	ours, theirs := p.addresses(t), other.addresses(t)
	for name := range runtimeNetworks(p.name) {
		for i, from := range ours[name] {
			p.pings(t, name, from, theirs[name][i])
		}
	}
}

// isReachedByNode has the node send to each network over its own, which is of IPv4.
func (p *runtimePod) isReachedByNode(t *testing.T) {
	t.Helper()
	for name, all := range p.addresses(t) {
		if out, err := Try("ping", "-c", "1", "-W", "10", "-I", nodeAddress, all[0]); err != nil {
			t.Errorf("%s of %s at %s from the node: %v\n%s", name, p.name, all[0], err, out)
		}
	}
}

// reachesGateways sends to the gateway of each network.
func (p *runtimePod) reachesGateways(t *testing.T) {
	t.Helper()
	addresses := p.addresses(t)
	for name, network := range runtimeNetworks(p.name) {
		for i, subnet := range network.subnets() {
			p.pings(t, name, addresses[name][i], gatewayOf(subnet).Addr().String())
		}
	}
}

func (p *runtimePod) pings(t *testing.T, name, from, to string) {
	t.Helper()
	if out, err := p.ns.Try("ping", "-c", "1", "-W", "10", "-I", from, to); err != nil {
		t.Errorf("%s of %s from %s to %s: %v\n%s", name, p.name, from, to, err, out)
	}
}

// newRuntimeNode serves the runtime until the test ends.
func newRuntimeNode(t *testing.T) *runtimeNode {
	t.Helper()
	program, err := exec.LookPath("railhead-cni")
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	ownNetwork(t, own)
	socket := filepath.Join(t.TempDir(), "cni.sock")
	n := &runtimeNode{
		cni:     libcni.NewCNIConfigWithCacheDir([]string{filepath.Dir(program), own}, t.TempDir(), nil),
		cluster: newRuntimeCluster(),
	}
	n.list, err = libcni.NetworkConfFromBytes(fmt.Appendf(nil,
		`{"cniVersion":"1.1.0","name":"railhead","plugins":[{"type":"railhead-cni","socket":%q,"clusterNetwork":{"file":"10-own.conflist","name":"own"}}]}`, socket))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := n.serve(ctx, t, socket)
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return n
}
