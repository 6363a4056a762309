package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// nearMost is how many names that are near are told.
const nearMost = 3

// NAD returns a NetworkAttachmentDefinition: its names, annotations and spec. The
// error says which there are whose names are near, and is apierrors.IsNotFound,
// unless they were not read yet.
func (c *Cache) NAD(namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
	if nad, ok := c.nads.get(namespace, name).(*cniv1.NetworkAttachmentDefinition); ok {
		return nad, nil
	}
	what := "NetworkAttachmentDefinition " + title(namespace, name)
	if why := c.whyNotRead(c.nads); why != nil {
		return nil, fmt.Errorf("%s is not known: the agent has read none yet: %w", what, why)
	}
	resource := cniv1.GroupVersion.WithResource("network-attachment-definitions").GroupResource()
	return nil, &absence{fmt.Sprintf("there is no %s: %s", what, c.nearNADs(namespace, name)), apierrors.NewNotFound(resource, name)}
}

// ReadNAD is NAD with one question to the API server where that knows of none: one
// that was made a moment before its pod is told of later than the pod. Where it is
// not there either, or cannot be asked for, the error is NAD's; an error that is
// apierrors.IsNotFound is the API server's word.
func (c *Cache) ReadNAD(ctx context.Context, namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
	nad, unknown := c.NAD(namespace, name)
	if unknown == nil {
		return nad, nil
	}
	nad, err := c.client.getNAD(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, unknown
	case err != nil:
		return nil, fmt.Errorf("NetworkAttachmentDefinition %s is not known here, and the API server does not tell of it: %w", title(namespace, name), err)
	}
	trimNAD(nad)
	return nad, nil
}

// getNAD reads a NetworkAttachmentDefinition, live.
func (c *client) getNAD(ctx context.Context, namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	nad := &cniv1.NetworkAttachmentDefinition{}
	err := c.networks.Get().Namespace(namespace).Resource("network-attachment-definitions").Name(name).Do(ctx).Into(nad)
	return nad, err
}

// nearNADs says what there is instead.
func (c *Cache) nearNADs(namespace, name string) string {
	var beside, elsewhere []string
	for _, key := range c.nads.names() {
		switch {
		case key.Namespace == namespace:
			beside = append(beside, key.Name)
		case key.Name == name:
			elsewhere = append(elsewhere, key.Namespace)
		}
	}
	slices.Sort(elsewhere)
	near := policy.Nearest(name, beside)
	near = near[:min(len(near), nearMost)]
	switch {
	case len(elsewhere) > 0:
		return fmt.Sprintf("namespace %s has one of this name, want %s", elsewhere[0], title(elsewhere[0], name))
	case len(near) == 0:
		return fmt.Sprintf("namespace %s has none", namespace)
	case len(near) == len(beside):
		return fmt.Sprintf("namespace %s has %s", namespace, strings.Join(near, ", "))
	}
	return fmt.Sprintf("of the %d in namespace %s, these are near: %s", len(beside), namespace, strings.Join(near, ", "))
}

// clusterCoordinator is the name of the SpiderCoordinator that counts.
const clusterCoordinator = "default"

// Coordinator returns what the cluster's SpiderCoordinator says, with its defaults
// filled in, and what the controller found out. What both point to is shared. The
// error says that there is none, which is apierrors.IsNotFound, or which rules it
// breaks.
func (c *Cache) Coordinator() (v2beta1.CoordinatorSpec, v2beta1.CoordinatorStatus, error) {
	found, ok := c.coordinators.get("", clusterCoordinator).(*v2beta1.SpiderCoordinator)
	if !ok {
		return v2beta1.CoordinatorSpec{}, v2beta1.CoordinatorStatus{}, c.whyNoCoordinator()
	}
	spec, ok := c.catalog.Coordinator(clusterCoordinator)
	if !ok {
		return v2beta1.CoordinatorSpec{}, v2beta1.CoordinatorStatus{},
			fmt.Errorf("SpiderCoordinator %s breaks rules: %w", clusterCoordinator, c.catalog.Review(found, nil).Errors.ToAggregate())
	}
	return spec, found.Status, nil
}

func (c *Cache) whyNoCoordinator() error {
	if why := c.whyNotRead(c.coordinators); why != nil {
		return fmt.Errorf("SpiderCoordinator %s is not known: the agent has read none yet: %w", clusterCoordinator, why)
	}
	resource := v2beta1.GroupVersion.WithResource("spidercoordinators").GroupResource()
	return &absence{
		fmt.Sprintf("there is no SpiderCoordinator %s: railhead-controller makes one when it starts", clusterCoordinator),
		apierrors.NewNotFound(resource, clusterCoordinator),
	}
}

// whyNotRead says why what a store has was never read; nil if it was.
func (c *Cache) whyNotRead(store *mirror) error {
	for _, k := range c.kinds {
		if k.store == store {
			return k.whyNotRead()
		}
	}
	return nil
}

// trimNode leaves a Node its names, labels, annotations and addresses.
func trimNode(o metav1.Object) {
	trimMeta(o)
	if n, ok := o.(*node); ok {
		n.ObjectMeta = metav1.ObjectMeta{
			Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: known(n.Labels), Annotations: known(n.Annotations),
		}
	}
}

// Node returns the metadata of the node's own object, and the addresses that it
// says the node has, in its order, those that are reached from within the cluster
// first. Before it was read, labels are nil, and there is no more than its name.
func (c *Cache) Node() (metav1.ObjectMeta, []netip.Addr) {
	n, ok := c.nodes.get("", c.node).(*node)
	if !ok {
		return metav1.ObjectMeta{Name: c.node}, nil
	}
	var addresses []netip.Addr
	for _, kind := range []string{"InternalIP", "ExternalIP"} {
		for _, a := range n.Status.Addresses {
			if parsed, err := netip.ParseAddr(a.Address); err == nil && a.Type == kind && !slices.Contains(addresses, parsed.Unmap()) {
				addresses = append(addresses, parsed.Unmap())
			}
		}
	}
	return n.ObjectMeta, addresses
}
