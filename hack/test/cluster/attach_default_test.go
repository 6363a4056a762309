package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/testcluster"
	"railhead/internal/kernel/netns"
)

// defaultNetwork has pods whose own network is a rail, by the annotation, and
// wants them on it, and to be reached by the node and to reach the cluster all
// the same.
func defaultNetwork(t *testing.T, c *cluster) {
	t.Helper()
	const netdev, bridge, gateway = "ens6f0np0", "roce", "172.81.0.1"
	c.OnNode(t, plan.Fabric, "sh", "-c", "ip link add "+bridge+" type bridge && ip addr add "+gateway+"/16 dev "+bridge+" && ip link set "+bridge+" up")
	t.Cleanup(func() {
		if out, err := c.TryOnNode(context.Background(), plan.Fabric, "ip", "link", "del", bridge); err != nil {
			t.Errorf("%s%v", out, err)
		}
	})
	for _, n := range c.Plan().Nodes {
		c.cable(t, n.Name, netdev, bridge)
		c.tag(t, n.Name, "docker.io/mellanox/rping-test:latest")
	}
	shared := acceptance + "/roce-shared-macvlan"
	c.networks(t, filepath.Join(shared, "network.yaml"))
	ns := c.Namespace(t)
	c.Apply(t, ns, withoutLimits(t, filepath.Join(shared, "workload.yaml")))
	c.deleteAfter(t, ns, "daemonset/rdma-macvlan", "app=rdma-macvlan")
	c.RolledOut(t, ns, "daemonset/rdma-macvlan")
	var all []attachedPod
	testcluster.Eventually(t, func() string {
		all = c.attached(t, ns, "app=rdma-macvlan")
		return testcluster.Missing("pods of rdma-macvlan", fmt.Sprint(len(all)), "2")
	})
	for _, n := range c.Plan().Nodes {
		c.Sleeper(t, ns, "on-"+n.Name, n.Name, true)
	}
	subnet := netip.MustParsePrefix("172.81.0.0/16")
	for i, p := range all {
		address := c.Kubectl(t, "get", "pod", "-n", ns, p.name, "-o", "jsonpath={.status.podIP}")
		if a, err := netip.ParseAddr(address); err != nil || !subnet.Contains(a) || len(p.addresses["eth0"]) != 1 || p.addresses["eth0"][0] != address {
			t.Errorf("%s has the address %q, and %v by its annotation, want one of %s on eth0", p.name, address, p.addresses, subnet)
		}
		other := all[1-i]
		for _, to := range []string{gateway, other.addresses["eth0"][0]} {
			c.Exec(t, ns, p.name, "ping", "-c", "1", "-w", "60", to)
		}
		testcluster.Eventually(t, func() string {
			if _, err := c.TryKubectl(t.Context(), "", "exec", "-n", ns, p.name, "--", "nslookup", "kubernetes.default.svc.cluster.local"); err != nil {
				return err.Error()
			}
			return ""
		})
		c.Exec(t, ns, "on-"+p.node, "ping", "-c", "1", "-w", "60", address) // as the kubelet's probes
	}
}

// cable connects a node to a bridge of the fabric, as long as the test runs.
func (c *cluster) cable(t *testing.T, node, netdev, bridge string) {
	t.Helper()
	ns, err := c.NetNS(node)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	c.plug(t, ns, netdev, node+"-"+bridge, bridge)
	c.OnNode(t, node, "ip", "link", "set", netdev, "up")
}

// plug connects a new netdev of a namespace, which is down, to a bridge of the
// fabric by a port there.
func (c *cluster) plug(t *testing.T, ns *netns.NS, netdev, port, bridge string) {
	t.Helper()
	fabric, err := c.NetNS(plan.Fabric)
	if err != nil {
		t.Fatal(err)
	}
	defer fabric.Close()
	err = fabric.Do(func() error {
		handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer handle.Close()
		attrs := netlink.NewLinkAttrs()
		attrs.Name = port
		return handle.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: netdev, PeerNamespace: netlink.NsFd(ns.FD())})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := c.TryOnNode(context.Background(), plan.Fabric, "ip", "link", "del", port); err != nil {
			t.Errorf("%s%v", out, err)
		}
	})
	c.OnNode(t, plan.Fabric, "ip", "link", "set", port, "master", bridge, "up")
}
