package kittest

import (
	"net/netip"
	"strings"
	"testing"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/testcluster"
)

// TestFamilies wants pods, Services, names and rails to work with IPv6 alone
// and with both families.
func TestFamilies(t *testing.T) {
	for name, o := range map[string]plan.Options{
		"IPv6":       {Nodes: 2, Rails: 2, IPv6: true},
		"dual stack": {Nodes: 2, Rails: 2, IPv4: true, IPv6: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{testcluster.Up(t, driver.Options{Options: o})}
			ns := c.Namespace(t)
			c.Apply(t, ns, testcluster.Web(4))
			c.RolledOut(t, ns, "deployment/web")
			one, other := onTwoNodes(t, c.pods(t, ns, "app=web"))
			if len(one.addresses) != families(o) {
				t.Fatalf("%s has addresses %q, want %d", one.name, one.addresses, families(o))
			}
			for _, a := range other.addresses {
				c.Exec(t, ns, one.name, "ping", "-c", "1", "-w", "60", a)
			}
			for ip := range strings.FieldsSeq(c.Kubectl(t, "get", "service", "web", "-n", ns, "-o", "jsonpath={.spec.clusterIPs[*]}")) {
				c.reaches(t, ns, one.name, bracketed(ip))
			}
			c.reaches(t, ns, one.name, "web")
			c.Sleeper(t, ns, "on-node2", "node2", true)
			for _, gateway := range c.Plan().Rails[0].Gateways {
				c.Exec(t, ns, "on-node2", "ping", "-c", "1", "-w", "60", gateway.Addr().String())
			}
		})
	}
}

func families(o plan.Options) int {
	if o.IPv4 && o.IPv6 {
		return 2
	}
	return 1
}

// bracketed is an address as URLs want it.
func bracketed(ip string) string {
	if a, err := netip.ParseAddr(ip); err == nil && a.Is6() {
		return "[" + ip + "]"
	}
	return ip
}

// reaches waits until a pod gets an answer from a web server.
func (c *cluster) reaches(t *testing.T, ns, pod, host string) {
	t.Helper()
	testcluster.Eventually(t, func() string { // kube-proxy and DNS hear of a Service a moment later
		out, err := c.TryKubectl(t.Context(), "", "exec", "-n", ns, pod, "--", "probe", "get", "http://"+host+"/")
		if err != nil || !strings.Contains(out, "web-") {
			return host + " from " + pod + ": " + out
		}
		return ""
	})
}
