package policy

import (
	"net/netip"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// reservedOf says which addresses a SpiderReservedIP keeps from pods, and what
// the rules that need no other object say of it. The set is never nil, and has
// what could be parsed.
func reservedOf(obj *v2beta1.SpiderReservedIP) (*netipx.IPSet, Review) {
	spec := field.NewPath("spec")
	list, review := listOf(spec.Child("ips"), obj.Spec.IPs, netip.Prefix{})
	switch {
	case len(obj.Spec.IPs) > 0:
	case obj.Spec.IPVersion != nil: // Spiderpool takes it, such as for a reservation that is over
		review.warn(spec.Child("ips"), `is empty and reserves nothing: want one or more addresses or ranges "first-last"`)
	default:
		review.Errors = append(review.Errors, field.Required(spec.Child("ips"), `want one or more addresses or ranges "first-last"`))
	}
	version, whose := obj.Spec.IPVersion, "ipVersion is "
	switch {
	case version != nil && *version != 4 && *version != 6:
		review.refuse(spec.Child("ipVersion"), *version, "want 4 or 6, or leave it out")
		return list.set, review
	case version == nil:
		version, whose = firstVersion(obj.Spec.IPs), "the first is IPv"
	}
	for i, item := range obj.Spec.IPs {
		if r, err := parseRange(item); err == nil && versionOf(r.From()) != *version {
			review.refuse(spec.Child("ips").Index(i), item, "is IPv%d, and %s%d: want one family", versionOf(r.From()), whose, *version)
		}
	}
	return list.set, review
}

// firstVersion is the family of the first item that parses, nil if none does.
func firstVersion(items []string) *int64 {
	for _, item := range items {
		if r, err := parseRange(item); err == nil {
			version := versionOf(r.From())
			return &version
		}
	}
	return nil
}

// defaultReserved fills in reserved addresses; see Catalog.Default.
func defaultReserved(obj *v2beta1.SpiderReservedIP) Review {
	if obj.Spec.IPVersion == nil {
		obj.Spec.IPVersion = firstVersion(obj.Spec.IPs)
	}
	var review Review
	obj.Spec.IPs, review = mergeList(field.NewPath("spec", "ips"), obj.Spec.IPs, netip.Prefix{})
	return review
}

// reviewReserved has every rule of reserved addresses; see Catalog.Review.
func reviewReserved(c *Catalog, obj, old *v2beta1.SpiderReservedIP) Review {
	if old != nil {
		if review, settled := reviewChange(obj, old, obj.Spec, old.Spec); settled {
			return review
		}
	}
	_, review := reservedOf(obj)
	if old != nil {
		review.reviewVersionChange("reservation", obj.Spec.IPVersion, old.Spec.IPVersion)
		return review
	}
	if version := firstVersion(obj.Spec.IPs); version != nil {
		review.reviewFamily(c.Config(), field.NewPath("spec", "ips").Index(0), obj.Spec.IPs[0], *version)
	}
	return review
}
