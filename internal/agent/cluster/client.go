package cluster

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
)

// requestMost bounds a question to the API server that somebody waits for.
const requestMost = 10 * time.Second

// What one node asks a second, and at once: it may start a hundred pods, and a
// cluster a thousand nodes. What is written waits for itself alone.
const (
	rate  = 50
	burst = 100
)

// client asks the API server. It is not client-go's: that links the types of all
// of Kubernetes, which cost each node 11 MB of memory.
type client struct {
	namespace string // of the ConfigMaps
	core      rest.Interface
	networks  rest.Interface // k8s.cni.cncf.io
	spider    rest.Interface // spiderpool.spidernet.io
	reader    metadata.Interface
	writer    metadata.Interface
	events    rest.Interface
}

// newClient returns a client, all of whose questions share connections.
func newClient(config *rest.Config, namespace string) (*client, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &client{namespace: namespace}
	for _, r := range []struct {
		into    *rest.Interface
		version schema.GroupVersion
		add     func(*runtime.Scheme) error
		qps     float32
	}{
		{&c.core, coreVersion(), addCore, -1},
		{&c.networks, cniv1.GroupVersion, cniv1.AddToScheme, -1},
		{&c.spider, v2beta1.GroupVersion, v2beta1.AddToScheme, -1},
		{&c.events, coreVersion(), addCore, rate},
	} {
		if *r.into, err = restClient(config, transport, r.version, r.add, r.qps); err != nil {
			return nil, err
		}
	}
	limited := metadata.ConfigFor(config) // a copy, which says who asks
	limited.QPS, limited.Burst, limited.RateLimiter = rate, burst, nil
	if c.reader, err = metadata.NewForConfigAndClient(limited, transport); err != nil {
		return nil, err
	}
	c.writer, err = metadata.NewForConfigAndClient(limited, transport)
	return c, err
}

// restClient returns a client of the kinds of one API version.
func restClient(config *rest.Config, transport *http.Client, version schema.GroupVersion, add func(*runtime.Scheme) error, qps float32) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &version, "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS, config.Burst, config.RateLimiter = qps, burst, nil
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return rest.RESTClientForConfigAndClient(config, transport)
}

// questions are how a collection is asked for, or those of it that a selector of
// fields selects.
type questions struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// of asks for whole objects, in a namespace unless that is empty.
func of(client rest.Interface, resource, namespace string, selected fields.Selector) questions {
	request := func(options metav1.ListOptions) *rest.Request {
		options.FieldSelector = selected.String()
		return client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).
			SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
	}
	return questions{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return request(options).Do(ctx).Get()
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return request(options).Watch(ctx)
		},
	}
}

// metadataOf asks for metadata alone.
func metadataOf(objects metadata.ResourceInterface, selected fields.Selector) questions {
	return questions{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selected.String()
			return objects.List(ctx, options)
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selected.String()
			return objects.Watch(ctx, options)
		},
	}
}

func podResource() schema.GroupVersionResource { return coreVersion().WithResource("pods") }

// get reads the metadata of an object, live.
func (c *client) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	return c.reader.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}
