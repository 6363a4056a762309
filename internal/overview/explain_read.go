package overview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam/selection"
	"railhead/internal/policy"
)

// PodObjects are a pod and what decides on its addresses. What could not be read
// is nil, and in Problems.
type PodObjects struct {
	Objects

	Pod         metav1.ObjectMeta
	Phase       string // of its status
	HostNetwork bool
	// PodNamespace and PodNode have their names alone where they could not be
	// read; PodNode has none while the pod is on none.
	PodNamespace, PodNode metav1.ObjectMeta

	Above        []policy.Application // controllers above its own
	Config       policy.Config
	Endpoint     *v2beta1.SpiderEndpoint // nil: there is none, or see Problems
	EndpointRead bool                    // and so there is none where Endpoint is nil
	Lease        *v1alpha1.AddressLease  // of the node; nil likewise
	LeaseRead    bool

	// Tried says that attaching the pod failed, of which its caller tells why.
	Tried bool
}

// Pod reads what [Explain] needs. The error is why the pod could not be read.
func (r *Reader) Pod(ctx context.Context, namespace, name string) (*PodObjects, error) {
	pod, err := r.objects.Resource(pods).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, absence(fmt.Sprintf("there is no pod %s/%s", namespace, name))
	case err != nil:
		return nil, r.readError("get", pods, namespace, err)
	}
	o := &PodObjects{Pod: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: pod.GetUID(), Labels: pod.GetLabels(), Annotations: pod.GetAnnotations(),
		OwnerReferences: pod.GetOwnerReferences(), DeletionTimestamp: pod.GetDeletionTimestamp(),
	}}
	o.Phase, _, _ = unstructured.NestedString(pod.Object, "status", "phase")
	o.HostNetwork, _, _ = unstructured.NestedBool(pod.Object, "spec", "hostNetwork")
	o.PodNamespace = r.metadata(ctx, o, namespaces, "", namespace)
	if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); node != "" {
		o.PodNode = r.metadata(ctx, o, nodes, "", node)
	}
	o.Above = r.above(ctx, o)
	o.Config = r.config(ctx, o)
	o.Pools = optional[v2beta1.SpiderIPPool](ctx, r, &o.Objects, ippools)
	o.Reserved = optional[v2beta1.SpiderReservedIP](ctx, r, &o.Objects, reserved)
	o.NADs = optional[cniv1.NetworkAttachmentDefinition](ctx, r, &o.Objects, nads)
	if err := r.ledgers(ctx, &o.Objects); err != nil {
		o.Problems = append(o.Problems, err)
	}
	r.readGiven(ctx, o)
	return o, nil
}

// readGiven reads what the pod and its node have.
func (r *Reader) readGiven(ctx context.Context, o *PodObjects) {
	name := o.Pod.Name
	if i := selection.IdentityOf(&o.Pod, o.Config); i.Kind == selection.KindVirtualMachine {
		name = i.Name
	}
	var err error
	o.Endpoint, err = get[v2beta1.SpiderEndpoint](ctx, r, endpoints, o.Pod.Namespace, name)
	if o.EndpointRead = err == nil || isAbsent(err); !o.EndpointRead {
		o.Problems = append(o.Problems, err)
	}
	if o.PodNode.Name == "" {
		return
	}
	o.Lease, err = get[v1alpha1.AddressLease](ctx, r, leases, "", o.PodNode.Name)
	if o.LeaseRead = err == nil || isAbsent(err); !o.LeaseRead {
		o.Problems = append(o.Problems, err)
	}
}

// absence is that an object is not there: with errors.Is it is fs.ErrNotExist.
type absence string

func (a absence) Error() string { return string(a) }

// Is reports that it is fs.ErrNotExist.
func (a absence) Is(target error) bool { return target == fs.ErrNotExist }

// isAbsent says whether an object is not there, or its kind.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// metadata reads that of an object; its name alone where it cannot.
func (r *Reader) metadata(ctx context.Context, o *PodObjects, resource schema.GroupVersionResource, namespace, name string) metav1.ObjectMeta {
	object, err := r.names.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o.Problems = append(o.Problems, absence(fmt.Sprintf("there is no object %s among %s", name, resource.GroupResource())))
		return metav1.ObjectMeta{Name: name}
	case err != nil:
		o.Problems = append(o.Problems, r.readError("get", resource, namespace, err))
		return metav1.ObjectMeta{Name: name}
	}
	return object.ObjectMeta
}

// above finds what made the ReplicaSet or the Job that made a pod.
func (r *Reader) above(ctx context.Context, o *PodObjects) []policy.Application {
	owner := metav1.GetControllerOfNoCopy(&o.Pod)
	if owner == nil {
		return nil
	}
	resource, ok := map[string]schema.GroupVersionResource{"ReplicaSet": replicaSets, "Job": jobs}[owner.Kind]
	if !ok || owner.APIVersion != resource.GroupVersion().String() {
		return nil
	}
	own := r.metadata(ctx, o, resource, o.Pod.Namespace, owner.Name)
	next := metav1.GetControllerOfNoCopy(&own)
	if next == nil {
		return nil
	}
	return []policy.Application{{GroupVersion: next.APIVersion, Kind: next.Kind, Namespace: o.Pod.Namespace, Name: next.Name, UID: next.UID}}
}

// config reads the cluster's configuration, by its two names and in whichever
// namespace it is; what a cluster has that says nothing, if it cannot.
func (r *Reader) config(ctx context.Context, o *PodObjects) policy.Config {
	for _, name := range []string{policy.ConfigMapName, policy.ConfigMapOldName} {
		found, err := r.objects.Resource(configMaps).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			o.Problems = append(o.Problems, fmt.Errorf("%w; the default configuration is taken for the cluster's", r.readError("list", configMaps, "", err)))
			return policy.DefaultConfig()
		}
		for i := range found.Items {
			text, ok, _ := unstructured.NestedString(found.Items[i].Object, "data", policy.ConfigMapKey)
			if !ok || found.Items[i].GetName() != name {
				continue
			}
			config, err := policy.ParseConfig([]byte(text))
			if err != nil {
				o.Problems = append(o.Problems, fmt.Errorf("ConfigMap %s/%s, key %s: %w; the default configuration is taken for the cluster's", found.Items[i].GetNamespace(), name, policy.ConfigMapKey, err))
				return policy.DefaultConfig()
			}
			return config
		}
	}
	return policy.DefaultConfig()
}

// get reads one object.
func get[T any](ctx context.Context, r *Reader, resource schema.GroupVersionResource, namespace, name string) (*T, error) {
	u, err := r.objects.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, r.readError("get", resource, namespace, err)
	}
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, leftOut(u, err)
	}
	return object, nil
}
