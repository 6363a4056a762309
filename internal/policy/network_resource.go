package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// readSharedResource reads the RDMA resource of a network whose pods share
// their master's RDMA device.
func (d *draft) readSharedResource(p *v2beta1.Parent, at *field.Path) {
	d.rdmaOff = p.EnableRDMA != nil && !*p.EnableRDMA
	name := at.Child("rdmaResourceName")
	if p.RDMAResourceName == nil || *p.RDMAResourceName == "" {
		if p.EnableRDMA != nil && *p.EnableRDMA && d.Annotations[v2beta1.AnnotationInjectRDMA] == "" {
			d.warn(at.Child("enableRdma"), "has no effect without rdmaResourceName")
		}
		return
	}
	d.extendedResource(*p.RDMAResourceName, name)
	if d.rdmaOff {
		d.warn(name, "has no effect while enableRdma is false")
		return
	}
	d.Resource = *p.RDMAResourceName
}

// readVFResource reads the resource of a network of VFs.
func (d *draft) readVFResource(name string, at *field.Path) {
	if name == "" {
		d.fail(field.Required(at, `want the resource of the VFs as "prefix/name", such as "spidernet.io/mellanoxrdma"`))
		return
	}
	d.extendedResource(name, at)
	d.Resource = name
}

// extendedResource wants what Kubernetes accepts for an extended resource.
func (d *draft) extendedResource(name string, at *field.Path) {
	prefix, _, slash := strings.Cut(name, "/")
	switch {
	case !slash:
		d.fail(field.Invalid(at, name, `want "prefix/name", such as "spidernet.io/`+sample(name)+`"`))
	case strings.HasPrefix(name, "requests."):
		d.fail(field.Invalid(at, name, `must not begin with "requests.": quotas of Kubernetes do`))
	case prefix == "kubernetes.io" || strings.HasSuffix(prefix, ".kubernetes.io"):
		d.fail(field.Invalid(at, name, "want a prefix that is not Kubernetes' own"))
	default:
		// A quota on it is named so, and has to be a name too.
		if len(validation.IsQualifiedName("requests."+name)) > 0 {
			d.fail(field.Invalid(at, name, `want "prefix/name" as Kubernetes wants it for a resource: a DNS name in lower case, "/", and up to 63 letters, digits, "-", "_" and "." with a letter or digit first and last`))
		}
	}
}

// sample is name where it can stand behind a prefix.
func sample(name string) string {
	if len(validation.IsQualifiedName(name)) > 0 {
		return "mellanoxrdma"
	}
	return name
}
