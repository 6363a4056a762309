package coordinator

import (
	"context"
	"fmt"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader asks the API server for facts. A source that is not there, or that
// may not be read, is an answer; any other error ends the look-up, so that a
// moment without API server is not taken for a cluster without sources.
type reader struct {
	live   client.Reader
	cilium types.NamespacedName
	cni    fs.FS // nil: none was named
	// nodes lists the nodes, from a cache where there is one.
	nodes func(context.Context) ([]corev1.Node, error)
}

// systemNamespace is where kubeadm and control planes keep theirs.
const systemNamespace = "kube-system"

// cheap asks all sources but the nodes.
func (r reader) cheap(ctx context.Context) (facts, error) {
	var f facts
	f.nodes = answer[[]node]{source: "Nodes", err: errNotAsked}
	f.cniConfig = r.readCNI()
	steps := []func() error{
		func() (err error) { f.kubeadm, err = r.readKubeadm(ctx); return err },
		func() (err error) { f.managers, err = r.readManagers(ctx); return err },
		func() (err error) { f.serviceCIDRs, err = r.readServiceCIDRs(ctx); return err },
		func() (err error) { f.calico, err = r.readCalico(ctx); return err },
		func() (err error) { f.cilium, err = r.readCilium(ctx); return err },
		func() (err error) { f.ciliumPools, err = r.readCiliumPools(ctx); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return facts{}, err
		}
	}
	return f, nil
}

func (r reader) readCNI() answer[string] {
	a := answer[string]{source: "CNI configuration", err: fs.ErrNotExist}
	if r.cni != nil {
		a.value, a.err = networkOfCNI(r.cni)
	}
	return a
}

func (r reader) readKubeadm(ctx context.Context) (answer[string], error) {
	a := answer[string]{source: "ConfigMap kube-system/kubeadm-config"}
	var configMap corev1.ConfigMap
	err := r.live.Get(ctx, types.NamespacedName{Namespace: systemNamespace, Name: "kubeadm-config"}, &configMap)
	a.value = configMap.Data["ClusterConfiguration"]
	return answered(a, err)
}

// managerLabels are those that installers give a kube-controller-manager.
func managerLabels() []client.MatchingLabels {
	return []client.MatchingLabels{{"component": "kube-controller-manager"}, {"k8s-app": "kube-controller-manager"}}
}

func (r reader) readManagers(ctx context.Context) (answer[[]program], error) {
	a := answer[[]program]{source: "pods of kube-controller-manager in kube-system"}
	for _, labels := range managerLabels() {
		var pods corev1.PodList
		if err := r.live.List(ctx, &pods, client.InNamespace(systemNamespace), labels); err != nil {
			return answered(a, err)
		}
		for _, pod := range pods.Items {
			p := program{name: pod.Namespace + "/" + pod.Name}
			for _, container := range pod.Spec.Containers {
				p.args = append(append(p.args, container.Command...), container.Args...)
			}
			a.value = append(a.value, p)
		}
	}
	return a, nil
}

func (r reader) readServiceCIDRs(ctx context.Context) (answer[[]string], error) {
	a := answer[[]string]{source: "ServiceCIDRs of networking.k8s.io"}
	items, err := r.list(ctx, serviceCIDRKinds())
	for _, item := range items {
		cidrs, _, _ := unstructured.NestedStringSlice(item.Object, "spec", "cidrs")
		a.value = append(a.value, cidrs...)
	}
	return answered(a, err)
}

func (r reader) readCalico(ctx context.Context) (answer[[]calicoPool], error) {
	a := answer[[]calicoPool]{source: "calico's IPPools"}
	items, err := r.list(ctx, calicoKinds())
	for _, item := range items {
		pool := calicoPool{name: item.GetName()}
		pool.cidr, _, _ = unstructured.NestedString(item.Object, "spec", "cidr")
		pool.isDisabled, _, _ = unstructured.NestedBool(item.Object, "spec", "disabled")
		pool.uses, _, _ = unstructured.NestedStringSlice(item.Object, "spec", "allowedUses")
		a.value = append(a.value, pool)
	}
	return answered(a, err)
}

func (r reader) readCilium(ctx context.Context) (answer[map[string]string], error) {
	a := answer[map[string]string]{source: "ConfigMap " + r.cilium.String()}
	var configMap corev1.ConfigMap
	err := r.live.Get(ctx, r.cilium, &configMap)
	a.value = configMap.Data
	return answered(a, err)
}

func (r reader) readCiliumPools(ctx context.Context) (answer[[]ciliumPool], error) {
	a := answer[[]ciliumPool]{source: "CiliumPodIPPools"}
	items, err := r.list(ctx, ciliumKinds())
	for _, item := range items {
		pool := ciliumPool{name: item.GetName()}
		for _, family := range []string{"ipv4", "ipv6"} {
			cidrs, _, _ := unstructured.NestedSlice(item.Object, "spec", family, "cidrs")
			pool.cidrs = append(pool.cidrs, textsOf(cidrs)...)
		}
		a.value = append(a.value, pool)
	}
	return answered(a, err)
}

// textsOf are CIDRs as cilium writes them: texts, or objects with a cidr.
func textsOf(list []any) []string {
	var texts []string
	for _, item := range list {
		switch item := item.(type) {
		case string:
			texts = append(texts, item)
		case map[string]any:
			if text, ok := item["cidr"].(string); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// readNodes adds to facts what nodes say.
func (r reader) readNodes(ctx context.Context) (answer[[]node], error) {
	a := answer[[]node]{source: "Nodes"}
	nodes, err := r.nodes(ctx)
	for _, n := range nodes {
		read := node{name: n.Name, podCIDRs: n.Spec.PodCIDRs}
		if len(read.podCIDRs) == 0 && n.Spec.PodCIDR != "" {
			read.podCIDRs = []string{n.Spec.PodCIDR}
		}
		for _, key := range argsAnnotations() {
			// One that cannot be read says nothing, as one that is not there.
			if args, err := parseNodeArgs(n.Annotations[key]); err == nil {
				read.args = args
			}
		}
		a.value = append(a.value, read)
	}
	return answered(a, err)
}

// argsAnnotations are where k3s and RKE2 write how a node's server was started.
func argsAnnotations() []string { return []string{"k3s.io/node-args", "rke2.io/node-args"} }

// list lists objects of the first of several kinds, versions of one another,
// that the cluster has.
func (r reader) list(ctx context.Context, kinds []schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var err error
	for _, kind := range kinds {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err = r.live.List(ctx, &list); err == nil {
			return list.Items, nil
		}
		if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return nil, err
}

// answered sorts an error into answers and failures.
func answered[T any](a answer[T], err error) (answer[T], error) {
	switch {
	case err == nil:
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		a.err = fs.ErrNotExist
	case apierrors.IsForbidden(err):
		a.err = fmt.Errorf("the controller's role does not allow to read it: %w", fs.ErrPermission)
	default:
		return a, fmt.Errorf("%s: %w", a.source, err)
	}
	return a, nil
}
