package policy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"railhead/api/spiderpool/v2beta1"
)

// defaultNetwork fills in what obj leaves out, in place: the fields of its
// type's block, and labels that repeat its inject annotations. Of the
// coordinator it fills in nothing, so that what the cluster's SpiderCoordinator
// says still counts.
func defaultNetwork(obj *v2beta1.SpiderMultusConfig) Review {
	var r Review
	spec := &obj.Spec
	fill(&spec.CNIType, v2beta1.CNICustom)
	fill(&spec.EnableCoordinator, true)
	fill(&spec.DisableIPAM, false)
	if *spec.CNIType == v2beta1.CNICustom {
		*spec.EnableCoordinator = false
		if spec.Coordinator != nil {
			spec.Coordinator = nil
			r.Warnings = append(r.Warnings, "spec.coordinator: has no effect with cniType custom, and is dropped")
		}
	}
	for _, parent := range parents(spec) {
		fill(&parent.MTU, 0)
		fill(&parent.VLANID, 0)
		defaultNetworkPools(parent.IPPools)
	}
	if spec.Vlan != nil {
		fill(&spec.Vlan.VLANMode, vlanManual)
	}
	defaultVFs(spec)
	if spec.IPoIB != nil {
		defaultNetworkPools(spec.IPoIB.IPPools)
	}
	if spec.OVS != nil {
		fill(&spec.OVS.VLAN, 0)
		defaultNetworkPools(spec.OVS.IPPools)
	}
	if spec.Coordinator != nil {
		normaliseCoordinator(spec.Coordinator)
	}
	r.Warnings = append(r.Warnings, labelInjection(obj)...)
	return r
}

// defaultVFs fills in the blocks of VFs.
func defaultVFs(spec *v2beta1.MultusConfigSpec) {
	if s := spec.SRIOV; s != nil {
		fill(&s.VLANID, 0)
		fill(&s.MTU, 0)
		fill(&s.MinTxRateMbps, 0)
		fill(&s.MaxTxRateMbps, 0)
		defaultNetworkPools(s.IPPools)
	}
	if s := spec.IBSRIOV; s != nil {
		fill(&s.LinkState, linkEnable)
		fill(&s.RDMAIsolation, true)
		defaultNetworkPools(s.IPPools)
	}
}

func defaultNetworkPools(p *v2beta1.NetworkPools) {
	if p != nil {
		fill(&p.MatchMasterSubnet, false)
	}
}

// fill sets what is nil.
func fill[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// parents are the blocks with masters, whichever are there.
func parents(spec *v2beta1.MultusConfigSpec) (list []*v2beta1.Parent) {
	if spec.Macvlan != nil {
		list = append(list, &spec.Macvlan.Parent)
	}
	if spec.IPvlan != nil {
		list = append(list, &spec.IPvlan.Parent)
	}
	if spec.Vlan != nil {
		list = append(list, &spec.Vlan.Parent)
	}
	return list
}

// labelInjection has each inject annotation repeated by a label of its key, by
// which others look networks up. A label holds one value only: several have none.
func labelInjection(obj *v2beta1.SpiderMultusConfig) (warnings []string) {
	for _, key := range InjectKeys() {
		annotation, annotated := obj.Annotations[key]
		value := strings.TrimSpace(annotation)
		label, labelled := obj.Labels[key]
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			if obj.Labels == nil {
				obj.Labels = map[string]string{}
			}
			obj.Labels[key] = value
			continue
		}
		if labelled && !annotated {
			warnings = append(warnings, fmt.Sprintf("metadata.labels[%s]: %q has no effect without the annotation of the same key, and is dropped", key, label))
		}
		delete(obj.Labels, key)
	}
	return warnings
}

// InjectKeys are the keys of the two inject annotations, of pods, namespaces and
// SpiderMultusConfigs; the first wins.
func InjectKeys() [2]string {
	return [2]string{v2beta1.AnnotationInjectRDMA, v2beta1.AnnotationInjectNetwork}
}
