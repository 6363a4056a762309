package simulation

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newAPIServer returns an API server with the node and all owners of pods.
func newAPIServer(s *Scenario, created time.Time) *apiServer {
	a := &apiServer{store: newStore(), forbidden: s.Kubernetes.Forbidden, closed: make(chan struct{})}
	a.kinds = []kind{
		{GroupVersionResource: pods(), Kind: "Pod", Namespaced: true},
		{GroupVersionResource: nodes(), Kind: "Node"},
	}
	a.store.put(nodes(), object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": object{
			"name": s.Node, "uid": uidOf(s.Seed, "Node", s.Node), "creationTimestamp": timestamp(created),
			"labels": map[string]string{"kubernetes.io/hostname": s.Node},
		},
	})
	for i := range s.Pods {
		a.putOwners(s, &s.Pods[i], created)
	}
	return a
}

func pods() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

func nodes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

// resourceOf returns the resource of a kind, by the rule that all kinds of
// workloads follow.
func (o Owner) resource() schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	return resource
}

// putOwners adds the owners of a pod, each with the next as its controller.
func (a *apiServer) putOwners(s *Scenario, p *Pod, created time.Time) {
	for i, o := range p.Owners {
		resource := o.resource()
		if !slices.ContainsFunc(a.kinds, func(k kind) bool { return k.GroupVersionResource == resource }) {
			a.kinds = append(a.kinds, kind{GroupVersionResource: resource, Kind: o.Kind, Namespaced: true})
		}
		_, known := a.store.get(resource, p.Namespace, o.Name)
		if known || slices.Contains(s.Kubernetes.Absent, resource.GroupResource().String()) {
			continue
		}
		metadata := object{
			"namespace": p.Namespace, "name": o.Name, "uid": o.uid(s.Seed, p.Namespace), "creationTimestamp": timestamp(created),
		}
		if o.Labels != nil {
			metadata["labels"] = o.Labels
		}
		if i+1 < len(p.Owners) {
			metadata["ownerReferences"] = []object{p.Owners[i+1].reference(s.Seed, p.Namespace)}
		}
		a.store.put(resource, object{"apiVersion": o.APIVersion, "kind": o.Kind, "metadata": metadata})
	}
}

func (o Owner) uid(seed uint64, namespace string) string {
	return uidOf(seed, o.APIVersion, o.Kind, namespace, o.Name)
}

func (o Owner) reference(seed uint64, namespace string) object {
	return object{
		"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": o.uid(seed, namespace),
		"controller": true, "blockOwnerDeletion": true,
	}
}

// object is the pod as the API server has it.
func (r *run) object(s *Scenario, created time.Time, phase string) object {
	metadata := object{
		"namespace": r.pod.Namespace, "name": r.name, "uid": r.uid, "creationTimestamp": timestamp(created),
	}
	if r.pod.Labels != nil {
		metadata["labels"] = r.pod.Labels
	}
	if r.pod.Annotations != nil {
		metadata["annotations"] = r.pod.Annotations
	}
	if len(r.pod.Owners) > 0 {
		metadata["ownerReferences"] = []object{r.pod.Owners[0].reference(s.Seed, r.pod.Namespace)}
	}
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
		"spec": object{
			"nodeName": s.Node, "hostNetwork": r.pod.HostNetwork,
			"containers": []object{{"name": containerName, "image": "registry.example/" + r.pod.Name}},
		},
		"status": object{"phase": phase, "podIP": r.address.String(), "startTime": timestamp(created)},
	}
}

// containerName is the name of the container of each pod.
const containerName = "main"

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// uidOf returns a UID that is always the same for the same names.
func uidOf(seed uint64, names ...string) string {
	high, low := hash(seed, names...), hash(seed+1, names...)
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x",
		high>>32, high>>16&0xffff, high&0xfff, low>>48&0xfff, low&0xffffffffffff)
}

// hash returns a number that is always the same for the same names.
func hash(seed uint64, names ...string) uint64 {
	h := fnv.New64a()
	for _, name := range names {
		_, _ = h.Write(append([]byte(name), 0)) // never fails
	}
	return mix(seed, h.Sum64())
}
