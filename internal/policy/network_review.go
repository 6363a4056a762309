package policy

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// reviewNetwork says what the rules say of obj, alone, beside all others and
// after old, which is nil on create.
func reviewNetwork(c *Catalog, obj, old *v2beta1.SpiderMultusConfig) Review {
	if obj.DeletionTimestamp != nil || old != nil && sameNetwork(obj, old) {
		return Review{}
	}
	n, r := networkOf(obj)
	if old != nil && nadName(old) != nadName(obj) {
		r.Errors = append(r.Errors, field.Forbidden(annotations().Key(v2beta1.AnnotationNADName), fmt.Sprintf(
			"NetworkAttachmentDefinition %s cannot be renamed to %q: want a new SpiderMultusConfig", nadName(old), nadName(obj))))
	}
	if other, ok := c.maker(obj); ok {
		r.Errors = append(r.Errors, field.Duplicate(nadNamePath(obj), n.NAD))
		r.Errors[len(r.Errors)-1].Detail = fmt.Sprintf(
			"SpiderMultusConfig %s makes the NetworkAttachmentDefinition of this name already", other)
	}
	if r.OK() {
		r.Warnings = append(r.Warnings, missingPools(c, n)...)
	}
	return r
}

// sameNetwork says whether two versions mean the same network.
func sameNetwork(a, b *v2beta1.SpiderMultusConfig) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec) && maps.Equal(a.Annotations, b.Annotations)
}

// nadNamePath is the field that says the NetworkAttachmentDefinition's name.
func nadNamePath(obj *v2beta1.SpiderMultusConfig) *field.Path {
	if _, ok := obj.Annotations[v2beta1.AnnotationNADName]; ok {
		return annotations().Key(v2beta1.AnnotationNADName)
	}
	return field.NewPath("metadata", "name")
}

// maker is another SpiderMultusConfig that makes the NetworkAttachmentDefinition
// of obj with a better right to it.
func (c *Catalog) maker(obj *v2beta1.SpiderMultusConfig) (types.NamespacedName, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	self := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
	own, stored := c.networks.byName[self]
	side := contest{stamp: stampOf(obj), kind: "SpiderMultusConfig", stored: stored && own.uid == obj.UID}
	for _, name := range c.networks.byNAD[types.NamespacedName{Namespace: obj.Namespace, Name: nadName(obj)}] {
		if side.loses(side.kind, c.networks.byName[name].stamp) {
			return name, true
		}
	}
	return types.NamespacedName{}, false
}
