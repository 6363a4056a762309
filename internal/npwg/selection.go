package npwg

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// Pod is what of a pod decides about its networks.
type Pod struct {
	Namespace, Name string
	Annotations     map[string]string
}

// Config is how the node selects networks.
type Config struct {
	// Interface is the default network's in the pod, as the runtime names it; "" is eth0.
	Interface string
	// DefaultNamespace is where the network of AnnotationDefaultNetwork is, where
	// the annotation names no namespace; "" is kube-system.
	DefaultNamespace string
	// NamespaceIsolation lets pods use only networks of their own namespace, of
	// "default" and of GlobalNamespaces; and as default network those of
	// DefaultNamespace.
	NamespaceIsolation bool
	GlobalNamespaces   []string
}

// Selected is one network to attach to a pod.
type Selected struct {
	// Namespace and Name are the NetworkAttachmentDefinition's, both empty for the
	// cluster's own default network.
	Namespace, Name string
	Interface       string // in the pod; unique
	Default         bool   // the default network
	// At is where the pod asks for it, for messages; empty for the cluster's own.
	At string

	IPs  []netip.Prefix   // with the length of one address where none was written
	MAC  net.HardwareAddr // 6 bytes, or nil
	GUID net.HardwareAddr // InfiniBand's, 8 bytes, or nil
	// HasDefaultRoute says that the pod's default route goes over this network, by
	// DefaultRoute where it names gateways.
	HasDefaultRoute bool
	DefaultRoute    []netip.Addr
	IPAMClaim       string // the name of an IPAMClaim, or ""
	DeviceID        string // a device that the pod names itself, or ""
	// CNIArgs go into args.cni of every plugin.
	CNIArgs map[string]json.RawMessage
	// Requests are runtimeConfig by capability, as the pod wrote it: ips, mac,
	// infinibandGUID, portMappings, bandwidth.
	Requests map[string]json.RawMessage
}

// String names the network as its status does; the cluster's own default
// network has no name here.
func (s Selected) String() string {
	if s.Name == "" {
		return "the cluster's default network"
	}
	return s.Namespace + "/" + s.Name
}

// Networks are those of a pod in the order in which they are attached: the
// default network, and what the annotation lists, a network as often as it is
// there, but no more than policy.MostNetworks. Interfaces without a name get "net" and their place, as Multus has it,
// or where another element asks for that name, the next number that is free.
func Networks(pod Pod, c Config) ([]Selected, error) {
	c.Interface = cmp.Or(c.Interface, "eth0")
	c.DefaultNamespace = cmp.Or(c.DefaultNamespace, "kube-system")
	first, errs := c.defaultNetwork(pod)
	list := []Selected{first}
	if text, ok := pod.Annotations[cniv1.AnnotationNetworks]; ok {
		at := pathOf(cniv1.AnnotationNetworks)
		attachments, bad := annotation.Networks(at, text)
		errs = append(errs, bad...)
		for i, a := range attachments {
			list = append(list, selected(at.Index(i), a))
		}
	}
	if len(errs) == 0 {
		errs = policy.FirstErrors(pathOf(cniv1.AnnotationNetworks), c.complete(pod.Namespace, list))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, errs.ToAggregate())
	}
	return list, nil
}

// pathOf is where an annotation stands.
func pathOf(annotation string) *field.Path {
	return field.NewPath("metadata", "annotations").Key(annotation)
}

// defaultNetwork is the cluster's own, or the one that the pod names.
func (c Config) defaultNetwork(pod Pod) (Selected, field.ErrorList) {
	own := Selected{Interface: c.Interface, Default: true}
	text, ok := pod.Annotations[cniv1.AnnotationDefaultNetwork]
	if !ok {
		return own, nil
	}
	at := pathOf(cniv1.AnnotationDefaultNetwork)
	a, errs := annotation.DefaultNetwork(at, text)
	if len(errs) > 0 {
		return own, errs
	}
	s := selected(at.Index(0), a)
	if s.Interface != "" && s.Interface != c.Interface {
		return own, field.ErrorList{field.Invalid(at.Index(0).Child("interface"), s.Interface, fmt.Sprintf("the default network's interface is named by the runtime: want %q, or none", c.Interface))}
	}
	s.Namespace, s.Interface, s.Default = cmp.Or(s.Namespace, c.DefaultNamespace), c.Interface, true
	return s, nil
}

// complete adds what elements leave out, and checks what they are together.
func (c Config) complete(namespace string, list []Selected) field.ErrorList {
	var errs field.ErrorList
	routed := ""
	for i := range list {
		s := &list[i]
		if s.Name == "" {
			continue // the cluster's own
		}
		s.Namespace = cmp.Or(s.Namespace, namespace)
		if allowed := c.namespaces(namespace, s.Default); c.NamespaceIsolation && !slices.Contains(allowed, s.Namespace) {
			errs = append(errs, &field.Error{
				Type: field.ErrorTypeNotSupported, Field: s.At + ".namespace", BadValue: s.Namespace,
				Detail: fmt.Sprintf("namespaces are isolated: want a network of one of the namespaces %q", allowed),
			})
		}
		if s.HasDefaultRoute && routed != "" {
			errs = append(errs, &field.Error{
				Type: field.ErrorTypeForbidden, Field: s.At + ".default-route",
				Detail: routed + " has one, and only one network may",
			})
		}
		if s.HasDefaultRoute {
			routed = s.At
		}
	}
	return append(errs, name(list)...)
}

// namespaces are those whose networks pods of a namespace may use.
func (c Config) namespaces(pods string, defaultNetwork bool) []string {
	list := []string{pods, "default"}
	if defaultNetwork {
		list = append(list, c.DefaultNamespace)
	}
	list = append(list, c.GlobalNamespaces...)
	slices.Sort(list)
	return slices.Compact(list)
}

// name gives each network behind the default one its interface's name.
func name(list []Selected) field.ErrorList {
	var errs field.ErrorList
	taken := map[string]string{list[0].Interface: "the default network"}
	for _, s := range list[1:] {
		by, again := taken[s.Interface]
		switch {
		case s.Interface == "":
		case again:
			errs = append(errs, &field.Error{
				Type: field.ErrorTypeDuplicate, Field: s.At + ".interface", BadValue: s.Interface,
				Detail: fmt.Sprintf("%s has it: want a name that no other interface of the pod has, or none", by),
			})
		case s.Interface == "lo" || s.Interface == "all" || s.Interface == "default":
			errs = append(errs, &field.Error{
				Type: field.ErrorTypeInvalid, Field: s.At + ".interface", BadValue: s.Interface,
				Detail: "the kernel has this name for itself: want another one, such as net1",
			})
		default:
			taken[s.Interface] = s.At
		}
	}
	var late []int // those whose name another one asks for
	for i := 1; i < len(list); i++ {
		s := &list[i]
		if s.Interface != "" {
			continue
		}
		byPlace := fmt.Sprintf("net%d", i)
		if _, is := taken[byPlace]; is {
			late = append(late, i)
			continue
		}
		s.Interface, taken[byPlace] = byPlace, s.At
	}
	n := len(list)
	for _, i := range late {
		for ; list[i].Interface == ""; n++ {
			free := fmt.Sprintf("net%d", n)
			if _, is := taken[free]; !is {
				list[i].Interface, taken[free] = free, list[i].At
			}
		}
	}
	return errs
}
