package overview

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy/manifest"
)

// Reader reads objects from an API server. It needs the verb list on what it
// reads.
type Reader struct {
	server  string // URL, for people
	objects dynamic.Interface
	names   metadata.Interface
}

// NewReader returns a Reader. It asks nothing yet.
func NewReader(config *rest.Config) (*Reader, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	names, err := metadata.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &Reader{server: config.Host, objects: objects, names: names}, nil
}

// Pools reads what [Pools] needs. The error is why the pools could not be read;
// what else could not is in Problems.
func (r *Reader) Pools(ctx context.Context) (*Objects, error) {
	o := &Objects{}
	var err error
	if o.Pools, err = list[v2beta1.SpiderIPPool](ctx, r, o, ippools); err != nil {
		return nil, err
	}
	o.Subnets = optional[v2beta1.SpiderSubnet](ctx, r, o, subnets)
	o.Reserved = optional[v2beta1.SpiderReservedIP](ctx, r, o, reserved)
	o.Endpoints = optional[v2beta1.SpiderEndpoint](ctx, r, o, endpoints)
	if err := r.ledgers(ctx, o); err != nil {
		o.Problems = append(o.Problems, err)
	}
	return o, nil
}

// Networks reads what [Networks] needs: networks of a namespace, or of all for
// "", and pods of all. The error is why neither kind of network could be read;
// what else could not is in Problems.
func (r *Reader) Networks(ctx context.Context, namespace string) (*Objects, error) {
	o := &Objects{Namespace: namespace}
	var errConfigs, errNADs error
	if o.Configs, errConfigs = list[v2beta1.SpiderMultusConfig](ctx, r, o, configs); errConfigs != nil {
		o.Problems = append(o.Problems, errConfigs)
	}
	if errors.Is(errConfigs, ErrUnreachable) {
		return nil, errConfigs
	}
	if o.NADs, errNADs = list[cniv1.NetworkAttachmentDefinition](ctx, r, o, nads); errNADs != nil {
		o.Problems = append(o.Problems, errNADs)
	}
	if errConfigs != nil && errNADs != nil {
		return nil, errors.Join(errConfigs, errNADs)
	}
	o.Pools = optional[v2beta1.SpiderIPPool](ctx, r, o, ippools)
	var err error
	if o.Pods, err = r.pods(ctx); err != nil {
		o.Problems = append(o.Problems, err)
	}
	return o, nil
}

// pods reads the metadata of all pods that have not ended.
func (r *Reader) pods(ctx context.Context) ([]*metav1.PartialObjectMetadata, error) {
	page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.names.Resource(pods).List(ctx, options)
	}
	found := []*metav1.PartialObjectMetadata{}
	options := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
	err := pager.New(page).EachListItem(ctx, options, func(item runtime.Object) error {
		if pod, ok := item.(*metav1.PartialObjectMetadata); ok {
			pod.ManagedFields = nil
			found = append(found, pod)
		}
		return nil
	})
	if err != nil {
		return nil, r.readError("list", pods, "", err)
	}
	return found, nil
}

// optional reads a kind, and notes why it cannot be read.
func optional[T any](ctx context.Context, r *Reader, o *Objects, resource schema.GroupVersionResource) []*T {
	found, err := list[T](ctx, r, o, resource)
	if err != nil {
		o.Problems = append(o.Problems, err)
	}
	return found
}

// list reads the objects of a resource, in pages, of the namespace that is
// looked at where they are in one. An object that cannot be understood is left
// out, and noted. What is returned is nil with an error only.
func list[T any](ctx context.Context, r *Reader, o *Objects, resource schema.GroupVersionResource) ([]*T, error) {
	page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if isOfCluster[resource] || o.Namespace == "" {
			return r.objects.Resource(resource).List(ctx, options)
		}
		return r.objects.Resource(resource).Namespace(o.Namespace).List(ctx, options)
	}
	found := []*T{}
	err := pager.New(page).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		u, ok := item.(*unstructured.Unstructured)
		if !ok {
			return nil
		}
		u.SetManagedFields(nil)
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
			o.Problems = append(o.Problems, leftOut(u, err))
			return nil
		}
		found = append(found, object)
		return nil
	})
	if err != nil {
		return nil, r.readError("list", resource, o.Namespace, err)
	}
	return found, nil
}

// leftOut says what is wrong with an object that does not have the shape of its
// kind, as admission would; err is why it could not be converted.
func leftOut(u *unstructured.Unstructured, err error) error {
	if text, jsonErr := u.MarshalJSON(); jsonErr == nil {
		if _, errs, _ := manifest.Decode(text); len(errs) > 0 {
			err = errs.ToAggregate()
		}
	}
	name := u.GetName()
	if u.GetNamespace() != "" {
		name = u.GetNamespace() + "/" + name
	}
	return fmt.Errorf("%s %s is left out: %w", u.GetKind(), name, err)
}
