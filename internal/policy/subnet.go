package policy

import (
	"net/netip"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// Subnet is a SpiderSubnet that keeps the rules: the addresses that pools of
// its CIDR are cut from. It is never changed once made.
type Subnet struct {
	Name      string
	UID       types.UID
	CIDR      netip.Prefix  // host bits cleared
	Addresses *netipx.IPSet // ips without excludeIPs
	Gateway   netip.Addr    // the zero Addr if there is none; of its pools that name none
	Routes    []Route       // of its pools that name none
	Deleting  bool
}

// Version is the subnet's family: 4 or 6.
func (s Subnet) Version() int64 { return versionOf(s.CIDR.Addr()) }

// SubnetOf says what a SpiderSubnet means, and what the rules that need no
// other object say of it. What could not be parsed has its zero value.
func SubnetOf(obj *v2beta1.SpiderSubnet) (Subnet, Review) {
	s := obj.Spec
	a, review := addressingOf(field.NewPath("spec"), written{s.IPVersion, s.Subnet, s.IPs, s.ExcludeIPs, s.Gateway, s.Routes, s.VLAN})
	return Subnet{
		Name:      obj.Name,
		UID:       obj.UID,
		CIDR:      a.subnet,
		Addresses: a.addresses,
		Gateway:   a.gateway,
		Routes:    a.routes,
		Deleting:  obj.DeletionTimestamp != nil,
	}, review
}

// defaultSubnet fills in a subnet; see Catalog.Default.
func defaultSubnet(obj *v2beta1.SpiderSubnet) Review {
	review := defaultAddressing(&obj.Spec.IPVersion, &obj.Spec.Subnet, &obj.Spec.IPs, &obj.Spec.ExcludeIPs)
	if cidr, err := parsePrefix(obj.Spec.Subnet); err == nil {
		setLabel(obj, v2beta1.LabelSubnetCIDR, cidrLabel(cidr))
	}
	return review
}
