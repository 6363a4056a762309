package address

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// requestMost bounds a question to the API server, so that one which is not
// answered does not keep others waiting for good.
const requestMost = 15 * time.Second

// publishRate is how many requests a second tell others of addresses, and
// publishBurst how many at once: a node that starts has a hundred pods, and a
// cluster a thousand nodes.
const (
	publishRate  = 50
	publishBurst = 100
)

// client asks the API server for what a node's addresses need. It is not
// client-go's: that links the types of all of Kubernetes, which cost each node
// 11 MB of memory.
type client struct {
	node      string
	leases    rest.Interface
	endpoints rest.Interface
	metadata  metadata.Interface // pods, and the Node
}

// newClient returns the client of a node. All that it asks shares connections.
// The lease has no limit of requests: one writer batches all that it writes.
func newClient(config *rest.Config, node string) (*client, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &client{node: node}
	if c.leases, err = restClient(config, transport, v1alpha1.GroupVersion, v1alpha1.AddToScheme, -1, 0); err != nil {
		return nil, err
	}
	if c.endpoints, err = restClient(config, transport, v2beta1.GroupVersion, v2beta1.AddToScheme, publishRate, publishBurst); err != nil {
		return nil, err
	}
	c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), transport)
	return c, err
}

// restClient returns a client of the kinds of one API version.
func restClient(config *rest.Config, transport *http.Client, version schema.GroupVersion, add func(*runtime.Scheme) error,
	qps float32, burst int,
) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, fmt.Errorf("scheme of %s: %w", version, err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS, config.Burst, config.RateLimiter = qps, burst, nil
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return rest.RESTClientForConfigAndClient(config, transport)
}

const leaseResource = "addressleases"

// Lease reads the node's lease, live. It implements [holder.API], as the
// methods below do.
func (c *client) Lease(ctx context.Context) (*v1alpha1.AddressLease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	lease := &v1alpha1.AddressLease{}
	if err := c.leases.Get().Resource(leaseResource).Name(c.node).Do(ctx).Into(lease); err != nil {
		return nil, err
	}
	return lease, nil
}

// CreateLease makes the node's lease.
func (c *client) CreateLease(ctx context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	made := &v1alpha1.AddressLease{}
	if err := c.leases.Post().Resource(leaseResource).Body(lease).Do(ctx).Into(made); err != nil {
		return nil, err
	}
	return made, nil
}

// UpdateLease writes the lease's spec, if the lease is still the version given.
func (c *client) UpdateLease(ctx context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	written := &v1alpha1.AddressLease{}
	if err := c.leases.Put().Resource(leaseResource).Name(lease.Name).Body(lease).Do(ctx).Into(written); err != nil {
		return nil, err
	}
	return written, nil
}

// listLease returns the node's lease, nil where there is none, and the version
// to watch from. That is newer than the lease, whose own version the API server
// may have forgotten.
func (c *client) listLease(ctx context.Context) (*v1alpha1.AddressLease, string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	list := &v1alpha1.AddressLeaseList{}
	err := c.leases.Get().Resource(leaseResource).Param("fieldSelector", c.ownLease()).Do(ctx).Into(list)
	switch {
	case err != nil:
		return nil, "", err
	case len(list.Items) == 0:
		return nil, list.ResourceVersion, nil
	}
	return &list.Items[0], list.ResourceVersion, nil
}

// watchLease tells of the node's lease from a version on, for about as long as
// is given.
func (c *client) watchLease(ctx context.Context, version string, seconds int) (watch.Interface, error) {
	return c.leases.Get().Resource(leaseResource).
		Param("fieldSelector", c.ownLease()).
		Param("watch", "true").
		Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", fmt.Sprint(seconds)).
		Param("resourceVersion", version).
		Watch(ctx)
}

func (c *client) ownLease() string {
	return fields.OneTermEqualSelector("metadata.name", c.node).String()
}

// How new an answer has to be, as the resource version of a question.
const (
	live       = ""  // nothing newer was there when it was asked
	fromMemory = "0" // of the API server, which may be some seconds behind
)

// nodeUID reads the UID of the Node object.
func (c *client) nodeUID(ctx context.Context, version string) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	nodes := c.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	object, err := nodes.Get(ctx, c.node, metav1.GetOptions{ResourceVersion: version})
	if err != nil {
		return "", fmt.Errorf("node %s: %w", c.node, err)
	}
	return object.UID, nil
}

// pods asks for the metadata of pods.
func (c *client) pods() metadata.Getter {
	return c.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
}
