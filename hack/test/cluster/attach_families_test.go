package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/testcluster"
)

// TestIPv6Cluster wants eight rails on a cluster that has no IPv4.
func TestIPv6Cluster(t *testing.T) {
	if !testcluster.IsNightly() {
		t.Skip("starts a cluster of its own: runs with RAILHEAD_NIGHTLY=1")
	}
	c := &cluster{testcluster.Up(t, driver.Options{Options: plan.Options{Nodes: 2, Rails: 8, IPv6: true}})}
	c.leavesNothing(t)
	c.install(t)
	c.Kubectl(t, "create", "namespace", networksNS)
	c.KubectlAfter(t, "delete", "namespace", networksNS)
	families(netip.Addr.Is6)(t, c)
}

// families wants pods on two nodes to have an address of each wanted family on all
// rails, with rules for IPv6, and to reach each other.
func families(wanted func(netip.Addr) bool) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "networks.yaml")
		if err := os.WriteFile(file, []byte(networksOf(c.Plan(), wanted)), 0o600); err != nil {
			t.Fatal(err)
		}
		c.networks(t, file)
		ns := c.Namespace(t)
		for _, n := range c.Plan().Nodes {
			c.Apply(t, ns, railsPod("on-"+n.Name, n.Name))
			c.deleteAfter(t, ns, "pod/on-"+n.Name, "app=on-"+n.Name)
		}
		for _, n := range c.Plan().Nodes {
			c.Ready(t, ns, "on-"+n.Name)
		}
		var all []attachedPod
		testcluster.Eventually(t, func() string {
			all = c.attached(t, ns, "app")
			return testcluster.Missing("pods with networks", fmt.Sprint(len(all)), "2")
		})
		for _, p := range all {
			c.hasFamilies(t, ns, p, wanted)
		}
		c.reachEachOther(t, ns, all[0], all[1])
		c.reachEachOther(t, ns, all[1], all[0])
	}
}

// hasFamilies wants a pod to have, on each rail, an address of each wanted family
// that the rail has, and its rule for IPv6.
func (c *cluster) hasFamilies(t *testing.T, ns string, p attachedPod, wanted func(netip.Addr) bool) {
	t.Helper()
	rules := c.Exec(t, ns, p.name, "ip", "-6", "rule")
	for rail, r := range c.Plan().Rails {
		name := fmt.Sprintf("net%d", rail+1)
		var subnets []netip.Prefix
		for _, g := range r.Gateways {
			if wanted(g.Addr()) {
				subnets = append(subnets, g.Masked())
			}
		}
		addresses := p.addresses[name]
		if len(addresses) != len(subnets) || len(subnets) == 0 {
			t.Errorf("%s has %v on %s, want an address of each of %v", p.name, addresses, name, subnets)
			continue
		}
		for i, subnet := range subnets {
			if a, err := netip.ParseAddr(addresses[i]); err != nil || !subnet.Contains(a) {
				t.Errorf("%s has %v on %s, want an address of each of %v", p.name, addresses, name, subnets)
			}
		}
		if want := fmt.Sprintf("lookup %d", 100+rail); !strings.Contains(rules, want) {
			t.Errorf("%s has the IPv6 rules\n%s, want one with %q", p.name, rules, want)
		}
	}
}

// networksOf are pools of each wanted family and a network for each rail.
func networksOf(c *plan.Cluster, wanted func(netip.Addr) bool) string {
	var b strings.Builder
	for i, r := range c.Rails {
		var pools []string
		for _, g := range r.Gateways {
			if !wanted(g.Addr()) {
				continue
			}
			family, first := "ipv4", strings.TrimSuffix(g.Masked().Addr().String(), "0")
			if g.Addr().Is6() {
				family, first = "ipv6", g.Masked().Addr().String()
			}
			fmt.Fprintf(&b, "---\napiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderIPPool\nmetadata: {name: rail%d-%s}\n"+
				"spec: {subnet: %q, gateway: %q, ips: [\"%s10-%[5]s99\"]}\n", i, family, g.Masked(), g.Addr(), first)
			pools = append(pools, fmt.Sprintf("%s: [rail%d-%s]", family, i, family))
		}
		fmt.Fprintf(&b, "---\napiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderMultusConfig\nmetadata: {name: gpu%d-macvlan, namespace: %s}\n"+
			"spec: {cniType: macvlan, macvlan: {master: [%s], ippools: {%s}}}\n", i+1, networksNS, r.Netdev, strings.Join(pools, ", "))
	}
	return b.String()
}
