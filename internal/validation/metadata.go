package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy/manifest"
)

// reviewMeta returns what the API server would refuse of an object's metadata: of
// name, namespace, labels, annotations, owners and finalizers.
func reviewMeta(object manifest.Object) field.ErrorList {
	at := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(object, isNamespaced(object), validation.NameIsDNSSubdomain, at)
	if object.GetName() != "" || object.GetGenerateName() == "" {
		return errs
	}
	return slices.DeleteFunc(errs, func(e *field.Error) bool { // the cluster makes the name
		return e.Type == field.ErrorTypeRequired && e.Field == at.Child("name").String()
	})
}

// isNamespaced tells whether objects of a kind are in a namespace.
func isNamespaced(object manifest.Object) bool {
	switch object.(type) {
	case *v2beta1.SpiderIPPool, *v2beta1.SpiderSubnet, *v2beta1.SpiderReservedIP, *v2beta1.SpiderCoordinator,
		*v1alpha1.PoolLedger, *v1alpha1.AddressLease:
		return false
	}
	return true
}
