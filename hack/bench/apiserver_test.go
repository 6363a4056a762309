package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/simulation"
)

const (
	leasesPath    = "/apis/railhead.io/v1alpha1/addressleases"
	endpointsPath = "/apis/spiderpool.spidernet.io/v2beta1"
)

// apiServer is as much of an API server as an agent asks: the Node and owners of
// pods of a simulated node, its pods as long as real ones, one AddressLease, and
// SpiderEndpoints, which it forgets. It implements [holder.API]. It is safe for
// concurrent use.
type apiServer struct {
	pods []metav1.PartialObjectMetadata

	mu      sync.Mutex
	lease   *v1alpha1.AddressLease // nil: there is none
	version int
}

// handler serves it over HTTP. What is not its own, it asks of another.
func (a *apiServer) handler(other http.RoundTripper) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", a.servePods)
	mux.HandleFunc("GET "+leasesPath, a.serveLeases)
	mux.HandleFunc("GET "+leasesPath+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(a.Lease(r.Context()))
	})
	mux.HandleFunc("PUT "+leasesPath+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		lease := &v1alpha1.AddressLease{}
		if err := json.NewDecoder(r.Body).Decode(lease); err != nil {
			answer(w)(nil, err)
			return
		}
		answer(w)(a.UpdateLease(r.Context(), lease))
	})
	mux.HandleFunc("GET "+endpointsPath+"/spiderendpoints", func(w http.ResponseWriter, _ *http.Request) {
		answer(w)(&v2beta1.SpiderEndpointList{
			TypeMeta: metav1.TypeMeta{APIVersion: v2beta1.GroupVersion.String(), Kind: "SpiderEndpointList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		}, nil)
	})
	mux.HandleFunc("POST "+endpointsPath+"/namespaces/{namespace}/spiderendpoints", serveNewEndpoint)
	for path, list := range empty() {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { serveNone(w, r, list) })
	}
	mux.Handle("/", &httputil.ReverseProxy{
		Transport: other,
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "simulation" },
	})
	return mux
}

// empty are the kinds that an agent which attaches pods watches, by their paths,
// and of which there is none here.
func empty() map[string]metav1.TypeMeta {
	pools, networks := v2beta1.GroupVersion.String(), cniv1.GroupVersion.String()
	return map[string]metav1.TypeMeta{
		"/apis/" + pools + "/spidercoordinators":                {APIVersion: pools, Kind: "SpiderCoordinator"},
		"/apis/" + pools + "/spiderippools":                     {APIVersion: pools, Kind: "SpiderIPPool"},
		"/apis/" + pools + "/spiderreservedips":                 {APIVersion: pools, Kind: "SpiderReservedIP"},
		"/apis/" + networks + "/network-attachment-definitions": {APIVersion: networks, Kind: "NetworkAttachmentDefinition"},
		"/api/v1/namespaces/{namespace}/configmaps":             {APIVersion: "v1", Kind: "ConfigMap"},
	}
}

// serveNone lists nothing, or tells a watcher of nothing.
func serveNone(w http.ResponseWriter, r *http.Request, kind metav1.TypeMeta) {
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		kind = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	}
	if r.URL.Query().Get("watch") == "" {
		kind.Kind += "List"
		answer(w)(&metav1.PartialObjectMetadataList{TypeMeta: kind, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil)
		return
	}
	var events []metav1.WatchEvent
	if r.URL.Query().Get("sendInitialEvents") != "" {
		events = append(events, eventOf("BOOKMARK", &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}))
	}
	watch(w, r, events)
}

// serveNewEndpoint takes an endpoint and forgets it.
func serveNewEndpoint(w http.ResponseWriter, r *http.Request) {
	e := &v2beta1.SpiderEndpoint{}
	err := json.NewDecoder(r.Body).Decode(e)
	e.UID, e.ResourceVersion = types.UID("uid-of-"+e.Name), "1"
	answer(w)(e, err)
}

// servePods lists the pods, or tells a watcher of them, and then nothing.
func (a *apiServer) servePods(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "" {
		answer(w)(&metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: a.pods,
		}, nil)
		return
	}
	var events []metav1.WatchEvent
	if r.URL.Query().Get("sendInitialEvents") != "" {
		for i := range a.pods {
			events = append(events, eventOf("ADDED", &a.pods[i]))
		}
		events = append(events, eventOf("BOOKMARK", &metav1.PartialObjectMetadata{
			TypeMeta: a.pods[0].TypeMeta,
			ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			},
		}))
	}
	watch(w, r, events)
}

func eventOf(kind string, pod *metav1.PartialObjectMetadata) metav1.WatchEvent {
	event := metav1.WatchEvent{Type: kind}
	event.Object.Object = pod
	return event
}

// watch tells of events, and nothing more for as long as was asked for.
func watch(w http.ResponseWriter, r *http.Request, events []metav1.WatchEvent) {
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		answer(w)(nil, apierrors.NewBadRequest("timeoutSeconds: "+err.Error()))
		return
	}
	w.Header().Set("Content-Type", "application/json;stream=watch")
	encoder := json.NewEncoder(w)
	for i := range events {
		if encoder.Encode(events[i]) != nil {
			return
		}
	}
	if http.NewResponseController(w).Flush() != nil {
		return
	}
	select {
	case <-r.Context().Done():
	case <-time.After(time.Duration(seconds) * time.Second):
	}
}

// serveLeases lists the lease, or watches that nobody but the agent changes it.
func (a *apiServer) serveLeases(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		watch(w, r, nil)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	list := &v1alpha1.AddressLeaseList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AddressLeaseList"}}
	list.ResourceVersion = strconv.Itoa(a.version)
	if a.lease != nil {
		list.Items = append(list.Items, *a.lease)
	}
	answer(w)(list, nil)
}

// Lease implements [holder.API].
func (a *apiServer) Lease(context.Context) (*v1alpha1.AddressLease, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lease == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "addressleases"}, "")
	}
	return a.lease.DeepCopy(), nil
}

// CreateLease implements [holder.API].
func (a *apiServer) CreateLease(_ context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	return a.write(lease, v1alpha1.AddressLeaseStatus{NodeUID: lease.Spec.NodeUID}), nil
}

// UpdateLease implements [holder.API].
func (a *apiServer) UpdateLease(_ context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	return a.write(lease, lease.Status), nil
}

// grant has the node hold addresses.
func (a *apiServer) grant(pools []v1alpha1.LeasedPool) *v1alpha1.AddressLease {
	a.mu.Lock()
	lease := a.lease
	a.mu.Unlock()
	status := lease.Status
	status.Pools = pools
	return a.write(lease, status)
}

func (a *apiServer) write(lease *v1alpha1.AddressLease, status v1alpha1.AddressLeaseStatus) *v1alpha1.AddressLease {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	now := lease.DeepCopy()
	now.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AddressLease"}
	now.ResourceVersion, now.Generation, now.Status = strconv.Itoa(a.version), int64(a.version), status
	now.Status.ObservedGeneration = now.Generation
	a.lease = now
	return now.DeepCopy()
}

// answer writes an object, or the status that an error is.
func answer(w http.ResponseWriter) func(object any, err error) {
	return func(object any, err error) {
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			status := apierrors.NewInternalError(err).Status()
			if known, ok := err.(apierrors.APIStatus); ok {
				status = known.Status()
			}
			w.WriteHeader(int(status.Code))
			object = status
		}
		_ = json.NewEncoder(w).Encode(object) // who has gone needs no answer
	}
}

// newAPIServer returns one with the pods of a simulated node, and the UID of that
// node.
func newAPIServer(ctx context.Context, node *simulation.Simulation) (*apiServer, types.UID, error) {
	client, err := metadata.NewForConfig(node.RESTConfig())
	if err != nil {
		return nil, "", err
	}
	self, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Get(ctx, node.NodeName(), metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	for i := range list.Items {
		lengthen(&list.Items[i])
	}
	return &apiServer{pods: list.Items}, self.UID, nil
}

// lengthen makes what is told of a pod as long as it is in a cluster, where most
// of it is who wrote which field.
func lengthen(p *metav1.PartialObjectMetadata) {
	p.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	p.ResourceVersion = "1"
	p.ManagedFields = []metav1.ManagedFieldsEntry{managedBy("kube-controller-manager", 60), managedBy("kubelet", 40)}
}

// managedBy says that a component wrote so many fields.
func managedBy(component string, count int) metav1.ManagedFieldsEntry {
	fields := make([]string, count)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"k:{\"type\":\"Field%d\"}":{".":{},"f:status":{}}`, i)
	}
	return metav1.ManagedFieldsEntry{
		Manager: component, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{` + strings.Join(fields, ",") + `}}`)},
	}
}

// serve serves over TLS and HTTP/2, as an API server does, and writes how to reach
// it into a kubeconfig.
func serve(handler http.Handler, kubeconfig string) (*httptest.Server, error) {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "bench"
	config.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: "bench"}
	config.AuthInfos["bench"] = &clientcmdapi.AuthInfo{Token: "bench"}
	config.Clusters["bench"] = &clientcmdapi.Cluster{
		Server:                   server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		server.Close()
		return nil, err
	}
	return server, nil
}
