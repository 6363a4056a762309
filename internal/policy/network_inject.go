package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// InjectValues are the values of an inject annotation, of a pod, its namespace
// or a SpiderMultusConfig: separated by commas, spaces around them and empty
// ones dropped, each once, in the order written.
func InjectValues(annotation string) (values []string) {
	for value := range strings.SplitSeq(annotation, ",") {
		if value = strings.TrimSpace(value); value != "" && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values
}

// readInjection reads the inject annotations, and wants what the injection of
// a pod would want of the network later.
func (d *draft) readInjection(obj *v2beta1.SpiderMultusConfig, b block) {
	for _, key := range InjectKeys() {
		annotation, ok := obj.Annotations[key]
		if !ok {
			continue
		}
		at := annotations().Key(key)
		d.readInjectValues(key, annotation, at)
		if b.cniType == "" || !b.there(&obj.Spec) && b.injectable {
			continue // refused already
		}
		if !b.injectable {
			d.fail(field.Forbidden(at, fmt.Sprintf("networks of cniType %s cannot be injected: want %s", b.cniType, strings.Join(injectable(), ", "))))
			continue
		}
		if key == v2beta1.AnnotationInjectRDMA {
			d.injectsRDMA(at, b)
		} else if d.Resource != "" && !d.Pools.any() {
			d.fail(field.Required(field.NewPath("spec", b.field, "ippools"),
				fmt.Sprintf("%s wants at least one pool in ipv4 or ipv6 of a network with a resource (%s)", at, d.Resource)))
		}
	}
}

// readInjectValues wants values that others can look up as labels.
func (d *draft) readInjectValues(key, annotation string, at *field.Path) {
	values := InjectValues(annotation)
	if len(values) == 0 {
		d.fail(field.Required(at, "want one value or more, separated by commas"))
		return
	}
	for _, value := range values {
		if len(validation.IsValidLabelValue(value)) > 0 {
			d.fail(field.Invalid(at, value, `want values that can stand in a label: up to 63 letters, digits, "-", "_" and ".", with a letter or digit first and last`))
		}
	}
	if d.Inject == nil {
		d.Inject = map[string][]string{}
	}
	d.Inject[key] = values
}

// injectsRDMA wants a resource and a pool.
func (d *draft) injectsRDMA(at *field.Path, b block) {
	spec := field.NewPath("spec", b.field)
	// An IPoIB interface has its RDMA device by its master; VFs had to say their resource already.
	shared := b.cniType == v2beta1.CNIMacvlan || b.cniType == v2beta1.CNIIPvlan || b.cniType == v2beta1.CNIVlan
	switch {
	case shared && d.rdmaOff:
		d.fail(field.Invalid(spec.Child("enableRdma"), false, fmt.Sprintf("%s wants RDMA: want true or nothing here, and rdmaResourceName", at)))
	case shared && d.Resource == "":
		d.fail(field.Required(spec.Child("rdmaResourceName"), fmt.Sprintf(`%s wants the resource that injected pods ask for, such as "spidernet.io/shared_cx5_gpu1"`, at)))
	}
	if !d.Pools.any() {
		d.fail(field.Required(spec.Child("ippools"), fmt.Sprintf("%s wants at least one pool in ipv4 or ipv6", at)))
	}
}

// injectable are the types of networks that can be injected.
func injectable() (types []string) {
	for _, b := range blocks {
		if b.injectable {
			types = append(types, b.cniType)
		}
	}
	return types
}
