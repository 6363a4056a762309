package policy

import (
	"cmp"
	"slices"

	"github.com/containernetworking/cni/pkg/utils"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
)

// subdomain says what names of objects are.
const subdomain = `up to 253 lower-case letters, digits, "-" and ".", with a letter or digit first and last and beside each "."`

// annotations is where annotations stand.
func annotations() *field.Path { return field.NewPath("metadata", "annotations") }

// readNames reads how the NetworkAttachmentDefinition and its CNI network are named.
func (d *draft) readNames(obj *v2beta1.SpiderMultusConfig) {
	d.NAD = nadName(obj)
	if name, ok := obj.Annotations[v2beta1.AnnotationNADName]; ok {
		d.readNADName(name, annotations().Key(v2beta1.AnnotationNADName))
	} else if detail := unselectable(d.NAD); detail != "" {
		d.warn(field.NewPath("metadata", "name"), "%s", detail)
	}
	d.CNIName = cmp.Or(obj.Annotations[v2beta1.AnnotationCNIConfigName], d.NAD)
	if name, ok := obj.Annotations[v2beta1.AnnotationCNIConfigName]; ok {
		at := annotations().Key(v2beta1.AnnotationCNIConfigName)
		if err := utils.ValidateNetworkName(name); err != nil {
			d.fail(field.Invalid(at, name, `want the name of a CNI network: letters, digits, "_", "." and "-", with a letter or digit first`))
		}
		d.noEffectOnCustom(at)
	}
	d.CNIVersion = defaultCNIVersion
	if version, ok := obj.Annotations[v2beta1.AnnotationCNIVersion]; ok {
		at := annotations().Key(v2beta1.AnnotationCNIVersion)
		if !slices.Contains(cniVersions, version) {
			d.fail(field.NotSupported(at, version, cniVersions))
		}
		d.CNIVersion = version
		d.noEffectOnCustom(at)
	}
}

// nadName is the name of the NetworkAttachmentDefinition that obj wants made.
func nadName(obj *v2beta1.SpiderMultusConfig) string {
	return cmp.Or(obj.Annotations[v2beta1.AnnotationNADName], obj.Name)
}

func (d *draft) readNADName(name string, at *field.Path) {
	if name == "" {
		d.fail(field.Required(at, "want the name of the NetworkAttachmentDefinition, or no such annotation for that of the SpiderMultusConfig"))
		return
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		d.fail(field.Invalid(at, name, "want the name of a NetworkAttachmentDefinition: "+subdomain))
		return
	}
	if detail := unselectable(name); detail != "" {
		d.warn(at, "%s", detail)
	}
}

// unselectable says why pods may be unable to ask for a
// NetworkAttachmentDefinition by its name, "" if they are not. The standard
// wants a label, the API server accepts a subdomain.
func unselectable(name string) string {
	if name == "" || len(validation.IsDNS1123Label(name)) == 0 {
		return ""
	}
	return name + " is no DNS label (up to 63 lower-case letters, digits and \"-\"): " +
		"Multus cannot select such a NetworkAttachmentDefinition in the short form of " + cniv1.AnnotationNetworks
}

func (d *draft) noEffectOnCustom(at *field.Path) {
	if d.Type == v2beta1.CNICustom {
		d.warn(at, "has no effect with cniType custom: want it in spec.customCNI")
	}
}
