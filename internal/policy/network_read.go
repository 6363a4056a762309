package policy

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// draft is a network while it is read, and what is said of it.
type draft struct {
	Network
	Review
	// rdmaOff says that enableRdma is false and so the resource does not count.
	rdmaOff bool
}

func (d *draft) fail(err *field.Error) { d.Errors = append(d.Errors, err) }

// networkOf reads a SpiderMultusConfig with its defaults, alone: every rule but
// those that need another object or its own past. The Network is good only if
// the Review accepts it; its names are set in any case.
func networkOf(obj *v2beta1.SpiderMultusConfig) (Network, Review) {
	obj = obj.DeepCopy()
	defaultNetwork(obj)
	d := &draft{Network: Network{
		Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID,
		Type:        *obj.Spec.CNIType,
		Coordinated: *obj.Spec.EnableCoordinator,
		IPAM:        !*obj.Spec.DisableIPAM,
		Annotations: maps.Clone(obj.Annotations),
	}}
	d.readNames(obj)
	b, known := d.chooseBlock(&obj.Spec)
	if known && b.there(&obj.Spec) {
		b.read(d, &obj.Spec, field.NewPath("spec", b.field))
	}
	d.readChain(&obj.Spec)
	d.readCoordinator(&obj.Spec)
	d.readInjection(obj, b)
	d.reviewAnnotationKeys(obj.Annotations)
	if !d.OK() {
		d.Broken = d.Errors.ToAggregate().Error()
	}
	return d.Network, d.Review
}

// chooseBlock wants the block of the type and no other. It says whether the type is known.
func (d *draft) chooseBlock(spec *v2beta1.MultusConfigSpec) (block, bool) {
	at := field.NewPath("spec")
	var chosen block
	var known []string
	for _, b := range blocks {
		known = append(known, b.cniType)
		if b.cniType == d.Type {
			chosen = b
		}
	}
	if chosen.cniType == "" {
		d.fail(field.NotSupported(at.Child("cniType"), d.Type, known))
		return block{}, false
	}
	var others []string
	for _, b := range blocks {
		if b.cniType != d.Type && b.there(spec) {
			others = append(others, "spec."+b.field)
			d.fail(field.Forbidden(at.Child(b.field), misplaced(b, chosen, chosen.there(spec))))
		}
	}
	if !chosen.optional && !chosen.there(spec) {
		detail := fmt.Sprintf("cniType is %s and wants this block", d.Type)
		if len(others) > 0 {
			detail += ", there is " + strings.Join(others, ", ")
		}
		d.fail(field.Required(at.Child(chosen.field), detail))
	}
	return chosen, true
}

// misplaced says why a block is not that of the chosen type. Users who wrote no
// cniType have custom, and both looks the same by now.
func misplaced(b, chosen block, chosenThere bool) string {
	if chosen.cniType == v2beta1.CNICustom && !chosenThere {
		return fmt.Sprintf("is for cniType %[1]s, and cniType is custom (the default): set spec.cniType: %[1]s", b.cniType)
	}
	return fmt.Sprintf("is for cniType %s, and cniType is %s: want spec.%s in its place, or cniType %s", b.cniType, chosen.cniType, chosen.field, b.cniType)
}

// readChain reads the plugins behind the main one.
func (d *draft) readChain(spec *v2beta1.MultusConfigSpec) {
	at := field.NewPath("spec", "chainCNIJsonData")
	if d.Type == v2beta1.CNICustom && len(spec.ChainCNIJSONData) > 0 {
		d.warn(at, "has no effect with cniType custom: want the plugins in spec.customCNI")
		return
	}
	for i, text := range spec.ChainCNIJSONData {
		plugin, err := parsePlugin(text)
		if err != nil {
			d.fail(field.Invalid(at.Index(i), text, err.Error()))
			continue
		}
		if d.Coordinated && plugin.kind == coordinatorPlugin {
			d.warn(at.Index(i), "is a coordinator and enableCoordinator is true: both run")
		}
		d.Chain = append(d.Chain, plugin.config)
	}
}

// readCoordinator reads what the network does otherwise than the cluster.
func (d *draft) readCoordinator(spec *v2beta1.MultusConfigSpec) {
	at := field.NewPath("spec", "coordinator")
	if spec.Coordinator == nil {
		return
	}
	d.add(reviewCoordinatorSpec(spec.Coordinator, at))
	if !d.Coordinated {
		d.warn(at, "has no effect while enableCoordinator is false")
		return
	}
	if spec.Coordinator.PodCIDRType != nil {
		d.warn(at.Child("podCIDRType"), "has an effect in a SpiderCoordinator only")
	}
	d.Coordinator = spec.Coordinator
}
