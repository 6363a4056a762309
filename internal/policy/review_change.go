package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reviewChange settles what no rule about the spec is asked for: a change that
// leaves the spec as it was, and any of an object that is being deleted, of
// which only finalizers may go. settled says whether it did.
func reviewChange(obj, old metav1.Object, spec, oldSpec any) (review Review, settled bool) {
	unchanged := equality.Semantic.DeepEqual(spec, oldSpec)
	if old.GetDeletionTimestamp() == nil {
		return review, unchanged
	}
	if !unchanged {
		review.forbid(field.NewPath("spec"), "%s is being deleted: only finalizers may be removed", obj.GetName())
	}
	for i, finalizer := range obj.GetFinalizers() {
		if !slices.Contains(old.GetFinalizers(), finalizer) {
			review.forbid(field.NewPath("metadata", "finalizers").Index(i), "%s is being deleted: %q cannot be added", obj.GetName(), finalizer)
		}
	}
	return review, true
}

// reviewVersionChange refuses another family. One that was never written may
// be added.
func (r *Review) reviewVersionChange(kind string, version, old *int64) {
	if version != nil && old != nil && *version != *old {
		r.forbid(field.NewPath("spec", "ipVersion"), "is immutable: it is %d, not %d; delete the %s and create another", *old, *version, kind)
	}
}

// reviewSubnetChange refuses another subnet, and not another spelling of the
// same. One that never could be read may be mended.
func (r *Review) reviewSubnetChange(kind, subnet, old string) {
	now, err := parsePrefix(subnet)
	before, oldErr := parsePrefix(old)
	if err == nil && oldErr == nil && now != before {
		r.forbid(field.NewPath("spec", "subnet"), "is immutable: it is %s, not %s; delete the %s and create another", before, now, kind)
	}
}

// reviewFamily refuses a family that the cluster does not use.
func (r *Review) reviewFamily(config Config, path *field.Path, value any, version int64) {
	enabled, key := config.EnableIPv4, "enableIPv4"
	if version == 6 {
		enabled, key = config.EnableIPv6, "enableIPv6"
	}
	if !enabled {
		r.refuse(path, value, "is IPv%d, which the cluster does not use: want the other family, or %s: true in the ConfigMap %s", version, key, ConfigMapName)
	}
}
