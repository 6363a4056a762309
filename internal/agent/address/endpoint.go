package address

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attribution"
	"railhead/internal/ipam/holder"
)

// vmKind is the kind in the identity of a KubeVirt VM.
const vmKind = "VirtualMachine"

// maker is what made a pod, and what the API server has for the UID of that:
// another one than the node where the pod is static.
type maker struct {
	kind, name string
	pod        types.UID
}

// endpointName is the name of the SpiderEndpoint of an assignment: the pod's, or
// the VM's, so that it stays over a migration.
func endpointName(a *holder.Assignment) types.NamespacedName {
	if kind, name, ok := identityOf(a.Identity); ok && kind == vmKind {
		return types.NamespacedName{Namespace: a.Pod.Namespace, Name: name}
	}
	return a.Pod
}

// identityOf takes "StatefulSet/namespace/name/ordinal" apart, or
// "VirtualMachine/namespace/name".
func identityOf(identity string) (kind, name string, ok bool) {
	parts := strings.Split(identity, "/")
	if len(parts) < 3 {
		return "", "", false
	}
	return parts[0], parts[2], true
}

// newEndpoint returns the SpiderEndpoint that tells of an assignment.
func newEndpoint(a *holder.Assignment, node string, made maker) *v2beta1.SpiderEndpoint {
	name := endpointName(a)
	e := &v2beta1.SpiderEndpoint{
		TypeMeta: metav1.TypeMeta{APIVersion: v2beta1.GroupVersion.String(), Kind: "SpiderEndpoint"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name,
			Labels:      map[string]string{v1alpha1.LabelNode: nodeLabel(node)},
			Annotations: map[string]string{v1alpha1.AnnotationSandbox: a.Sandbox},
		},
		Status: v2beta1.EndpointStatus{
			Current:             v2beta1.EndpointAllocation{UID: string(a.PodUID), Node: node, IPs: interfaces(a.Addresses)},
			OwnerControllerType: made.kind,
			OwnerControllerName: made.name,
		},
	}
	if name != a.Pod {
		e.Annotations[v1alpha1.AnnotationPod] = a.Pod.Name
	}
	if a.Identity != "" { // it outlives the pod
		e.Annotations[v1alpha1.AnnotationIdentity] = a.Identity
		return e
	}
	e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: a.Pod.Name, UID: made.pod}}
	return e
}

// makerOf says what made a pod, as far as pods tells; false where it may tell
// more soon.
func makerOf(a *holder.Assignment, pods attribution.PodSource) (maker, bool) {
	if kind, name, ok := identityOf(a.Identity); ok {
		return maker{kind, name, a.PodUID}, true
	}
	alone := maker{"Pod", a.Pod.Name, a.PodUID}
	if pods == nil {
		return alone, true
	}
	p := pods.Pod(string(a.PodUID))
	if p == nil || p.Workload.Kind == "" {
		return alone, false
	}
	return maker{p.Workload.Kind, p.Workload.Name, types.UID(p.UID)}, p.Workload.Reason == ""
}

// interfaces returns what each interface has, in the order of the assignment.
func interfaces(addresses []holder.Assigned) []v2beta1.EndpointInterface {
	var list []v2beta1.EndpointInterface
	for _, a := range addresses {
		i := slices.IndexFunc(list, func(e v2beta1.EndpointInterface) bool { return e.Interface == a.Interface })
		if i < 0 {
			i, list = len(list), append(list, v2beta1.EndpointInterface{Interface: a.Interface})
		}
		text, pool := a.Prefix.String(), a.Pool
		if a.Prefix.Addr().Is4() {
			list[i].IPv4, list[i].IPv4Pool = &text, &pool
		} else {
			list[i].IPv6, list[i].IPv6Pool = &text, &pool
		}
	}
	return list
}

// assignmentOf is the assignment that a SpiderEndpoint of ours tells of. What
// cannot be understood in it is an error.
func assignmentOf(e *v2beta1.SpiderEndpoint) (holder.Assignment, error) {
	a := holder.Assignment{
		Key:      holder.Key{PodUID: types.UID(e.Status.Current.UID), Sandbox: e.Annotations[v1alpha1.AnnotationSandbox]},
		Pod:      types.NamespacedName{Namespace: e.Namespace, Name: cmp.Or(e.Annotations[v1alpha1.AnnotationPod], e.Name)},
		Identity: e.Annotations[v1alpha1.AnnotationIdentity],
		At:       e.CreationTimestamp.Time,
	}
	for _, i := range e.Status.Current.IPs {
		for _, have := range []struct{ address, pool *string }{{i.IPv4, i.IPv4Pool}, {i.IPv6, i.IPv6Pool}} {
			if have.address == nil || *have.address == "" {
				continue
			}
			prefix, err := netip.ParsePrefix(*have.address)
			if err != nil || have.pool == nil {
				return a, fmt.Errorf("SpiderEndpoint %s, interface %s: address %q without a pool or a prefix length: want both", a.Pod, i.Interface, *have.address)
			}
			a.Addresses = append(a.Addresses, holder.Assigned{Interface: i.Interface, Pool: *have.pool, Prefix: prefix})
		}
	}
	return a, nil
}

// nodeLabel is the value of the label that says of which node an endpoint is:
// the node's name, or of one too long for a label, its beginning and a hash.
func nodeLabel(node string) string {
	if len(node) <= validation.LabelValueMaxLength {
		return node
	}
	sum := sha256.Sum256([]byte(node))
	return node[:validation.LabelValueMaxLength-17] + "-" + hex.EncodeToString(sum[:8])
}

// digest tells endpoints apart that say something else.
type digest [sha256.Size]byte

func digestOf(e *v2beta1.SpiderEndpoint) digest {
	text, err := json.Marshal([]any{
		e.Status.Current, e.Labels[v1alpha1.LabelNode], e.Annotations[v1alpha1.AnnotationSandbox],
		e.Annotations[v1alpha1.AnnotationIdentity],
	})
	if err != nil { // strings and numbers only
		return digest{}
	}
	return sha256.Sum256(text)
}
