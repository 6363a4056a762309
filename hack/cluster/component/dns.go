package component

import (
	_ "embed"

	"railhead/hack/cluster/image"
	"railhead/hack/cluster/pki"
	"railhead/hack/cluster/plan"
)

//go:embed coredns.yaml
var dnsTemplate string

// DNS is the manifest of the cluster's DNS: CoreDNS as a Deployment behind the
// Service kube-dns, which has the planned addresses.
func DNS(c *plan.Cluster) ([]byte, error) {
	values := struct {
		Image, Domain, Policy string
		Addresses, Families   []string
	}{
		Image:     image.CoreDNS,
		Domain:    pki.Domain,
		Policy:    "SingleStack",
		Addresses: texts(c.DNS),
	}
	if len(c.DNS) > 1 {
		values.Policy = "RequireDualStack"
	}
	for _, a := range c.DNS {
		family := "IPv4"
		if a.Is6() {
			family = "IPv6"
		}
		values.Families = append(values.Families, family)
	}
	return filled(dnsTemplate, values)
}
