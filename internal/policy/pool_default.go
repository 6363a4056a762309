package policy

import (
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// defaultPool fills in a pool; see Catalog.Default.
func defaultPool(c *Catalog, obj *v2beta1.SpiderIPPool) Review {
	review := defaultAddressing(&obj.Spec.IPVersion, &obj.Spec.Subnet, &obj.Spec.IPs, &obj.Spec.ExcludeIPs)
	cidr, err := parsePrefix(obj.Spec.Subnet)
	if err != nil {
		return review
	}
	setLabel(obj, v2beta1.LabelPoolCIDR, cidrLabel(cidr))
	if subnet, ok := c.subnetFor(cidr); ok {
		inherit(obj, subnet)
	}
	return review
}

// inherit has a pool belong to the SpiderSubnet of its CIDR.
func inherit(obj *v2beta1.SpiderIPPool, subnet Subnet) {
	setLabel(obj, v2beta1.LabelSubnet, subnet.Name)
	setOwner(obj, subnet)
	if obj.Spec.Gateway == nil && subnet.Gateway.IsValid() {
		gateway := subnet.Gateway.String()
		obj.Spec.Gateway = &gateway
	}
	if len(obj.Spec.Routes) == 0 {
		for _, r := range subnet.Routes {
			obj.Spec.Routes = append(obj.Spec.Routes, v2beta1.Route{Dst: r.Dst.String(), Gw: r.Gw.String()})
		}
	}
}

// setOwner makes a SpiderSubnet the owner, and takes the place of one of the
// same name that is gone.
func setOwner(obj *v2beta1.SpiderIPPool, subnet Subnet) {
	if subnet.UID == "" {
		return
	}
	version := v2beta1.GroupVersion.String()
	owners := slices.DeleteFunc(slices.Clone(obj.OwnerReferences), func(o metav1.OwnerReference) bool {
		return o.APIVersion == version && o.Kind == kindSubnet && o.UID != subnet.UID
	})
	if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == subnet.UID }) {
		yes := true
		owners = append(owners, metav1.OwnerReference{APIVersion: version, Kind: kindSubnet, Name: subnet.Name, UID: subnet.UID, BlockOwnerDeletion: &yes})
	}
	obj.OwnerReferences = owners
}

// defaultAddressing writes what pools and subnets have in common in the one
// way that is stored.
func defaultAddressing(version **int64, subnet *string, ips, excludeIPs *[]string) Review {
	var review Review
	spec := field.NewPath("spec")
	cidr, err := parsePrefix(*subnet)
	if err == nil {
		if p, err := netip.ParsePrefix(*subnet); err == nil && p != cidr {
			review.warn(spec.Child("subnet"), "%q has host bits set: stored as %q", *subnet, cidr)
		}
		*subnet = cidr.String()
		if *version == nil {
			v := versionOf(cidr.Addr())
			*version = &v
		}
	}
	var more Review
	*ips, more = mergeList(spec.Child("ips"), *ips, cidr)
	review.add(more)
	*excludeIPs, more = mergeList(spec.Child("excludeIPs"), *excludeIPs, cidr)
	review.add(more)
	return review
}

// setLabel sets one label.
func setLabel(obj metav1.Object, key, value string) {
	labels := obj.GetLabels()
	if labels[key] == value {
		return
	}
	changed := map[string]string{key: value}
	for k, v := range labels {
		if k != key {
			changed[k] = v
		}
	}
	obj.SetLabels(changed)
}

// cidrLabel is a CIDR as the value of a label, which has no other signs than
// "-" and begins with none.
func cidrLabel(cidr netip.Prefix) string {
	text := strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(cidr.String())
	if strings.HasPrefix(text, "-") {
		return "0" + text
	}
	return text
}
