package policy

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// readPools reads where the network's addresses come from.
func (d *draft) readPools(p *v2beta1.NetworkPools, at *field.Path) {
	if p == nil {
		return
	}
	d.Pools = Pools{IPv4: p.IPv4, IPv6: p.IPv6, MatchMasterSubnet: *p.MatchMasterSubnet}
	d.poolNames(p.IPv4, at.Child("ipv4"))
	d.poolNames(p.IPv6, at.Child("ipv6"))
	if d.Pools.MatchMasterSubnet && d.Type != v2beta1.CNISRIOV {
		d.fail(field.Forbidden(at.Child("matchMasterSubnet"), fmt.Sprintf("is for cniType sriov only, and cniType is %s", d.Type)))
	}
	if !d.IPAM && (d.Pools.any() || d.Pools.MatchMasterSubnet) {
		d.warn(at, "have no effect while disableIPAM is true")
	}
}

// any says whether a pool is named.
func (p Pools) any() bool { return len(p.IPv4)+len(p.IPv6) > 0 }

// poolNames wants names of pools, and well-formed patterns of them.
func (d *draft) poolNames(names []string, at *field.Path) {
	for i, name := range names {
		if name == "" {
			d.fail(field.Required(at.Index(i), "want the name of a SpiderIPPool"))
			continue
		}
		if !wild(name) {
			if len(validation.IsDNS1123Subdomain(name)) > 0 {
				d.fail(field.Invalid(at.Index(i), name, "want the name of a SpiderIPPool: "+subdomain))
			}
			continue
		}
		if _, err := path.Match(name, ""); err != nil || strings.ContainsAny(name, `/\`) {
			d.fail(field.Invalid(at.Index(i), name, `want a pattern of names: "*" for any characters, "?" for one, "[a-c]" for one of these, each "[" with its "]"`))
		}
	}
}

// wild says whether a name of a pool is a pattern.
func wild(name string) bool { return strings.ContainsAny(name, `*?[]\`) }

// missingPools warns of pools that are named and not there, or there for the
// other family. They may come later, so nothing is refused.
func missingPools(c *Catalog, n Network) (warnings []string) {
	for _, family := range []struct {
		name  string
		is4   bool
		pools []string
	}{{"ipv4", true, n.Pools.IPv4}, {"ipv6", false, n.Pools.IPv6}} {
		for i, name := range family.pools {
			if wild(name) {
				continue
			}
			at := field.NewPath("spec", blockOf(n.Type), "ippools", family.name).Index(i)
			if pool, ok := c.Pool(name); !ok {
				warnings = append(warnings, fmt.Sprintf("%s: there is no SpiderIPPool %q: pods get no address of it until there is", at, name))
			} else if pool.Subnet.Addr().Is4() != family.is4 {
				warnings = append(warnings, fmt.Sprintf("%s: SpiderIPPool %q has %s, which is not %s", at, name, pool.Subnet, family.name))
			}
		}
	}
	return warnings
}

// blockOf is the field of a type's block.
func blockOf(cniType v2beta1.CNIType) string {
	for _, b := range blocks {
		if b.cniType == cniType {
			return b.field
		}
	}
	return cniType
}
