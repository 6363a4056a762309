package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/testcluster"
)

// TestAttachFamilies wants eight rails with IPv6 alone and with both families.
func TestAttachFamilies(t *testing.T) {
	if !testcluster.IsNightly() {
		t.Skip("starts two clusters of its own: runs with RAILHEAD_NIGHTLY=1")
	}
	for name, o := range map[string]plan.Options{
		"IPv6":       {Nodes: 2, Rails: 8, IPv6: true},
		"dual stack": {Nodes: 2, Rails: 8, IPv4: true, IPv6: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{testcluster.Up(t, driver.Options{Options: o})}
			c.leavesNothing(t)
			c.install(t)
			c.Kubectl(t, "create", "namespace", networksNS)
			c.KubectlAfter(t, "delete", "namespace", networksNS)
			file := filepath.Join(t.TempDir(), "networks.yaml")
			if err := os.WriteFile(file, []byte(networksOf(c.Plan())), 0o600); err != nil {
				t.Fatal(err)
			}
			c.networks(t, file)
			attachesFamilies(t, c, families(o))
		})
	}
}

// attachesFamilies wants pods on two nodes to have all their families on all
// rails, with rules for each, and to reach each other.
func attachesFamilies(t *testing.T, c *cluster, families int) {
	t.Helper()
	ns := c.Namespace(t)
	for _, n := range c.Plan().Nodes {
		c.Apply(t, ns, railsPod("on-"+n.Name, n.Name))
		c.deleteAfter(t, ns, "pod/on-"+n.Name, "app=on-"+n.Name)
		c.Ready(t, ns, "on-"+n.Name)
	}
	var all []attachedPod
	testcluster.Eventually(t, func() string {
		all = c.attached(t, ns, "app")
		return testcluster.Missing("pods with networks", fmt.Sprint(len(all)), "2")
	})
	for _, p := range all {
		rules := c.Exec(t, ns, p.name, "ip", "-6", "rule")
		for rail := range c.Plan().Rails {
			name := fmt.Sprintf("net%d", rail+1)
			if len(p.addresses[name]) != families {
				t.Errorf("%s has %v on %s, want an address of each of %d families", p.name, p.addresses[name], name, families)
			}
			if want := fmt.Sprintf("lookup %d", 100+rail); !strings.Contains(rules, want) {
				t.Errorf("%s has the IPv6 rules\n%s, want one with %q", p.name, rules, want)
			}
		}
	}
	c.reachEachOther(t, ns, all[0], all[1])
	c.reachEachOther(t, ns, all[1], all[0])
}

// networksOf are pools of each family and a network for each rail.
func networksOf(c *plan.Cluster) string {
	var b strings.Builder
	for i, r := range c.Rails {
		var pools []string
		for _, g := range r.Gateways {
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

func families(o plan.Options) int {
	if o.IPv4 && o.IPv6 {
		return 2
	}
	return 1
}
