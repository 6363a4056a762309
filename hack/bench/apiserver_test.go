package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/kubetest"
	"railhead/internal/simulation"
)

// Where the API server has what agents watch.
const (
	podsPath   = "/api/v1/pods"
	leasesPath = "/apis/railhead.io/v1alpha1/addressleases"
)

// apiServer is as much of an API server as an agent asks: the Node and owners of
// pods of a simulated node, its pods as long as real ones, and all that agents
// write. It implements [holder.API] for the AddressLease of the node.
type apiServer struct {
	*kubetest.Server

	node      *simulation.Simulation
	uid       types.UID // of the node
	pods      []metav1.PartialObjectMetadata
	leasePath string
}

// newAPIServer returns one with the pods of a simulated node, and with a lease
// that grants the node addresses for them.
func newAPIServer(ctx context.Context, node *simulation.Simulation) (*apiServer, error) {
	client, err := metadata.NewForConfig(node.RESTConfig())
	if err != nil {
		return nil, err
	}
	self, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Get(ctx, node.NodeName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	a := &apiServer{
		Server: kubetest.New(), node: node, uid: self.UID, pods: list.Items, leasePath: leasesPath + "/" + node.NodeName(),
	}
	for i := range a.pods {
		a.pods[i].ManagedFields = []metav1.ManagedFieldsEntry{managedBy("kube-controller-manager", 60), managedBy("kubelet", 40)}
		a.Set(podsPath, kubetest.Object{
			"metadata": kubetest.ObjectOf(a.pods[i].ObjectMeta), "spec": kubetest.Object{"nodeName": node.NodeName()},
		})
	}
	a.Set(leasesPath, kubetest.ObjectOf(v1alpha1.AddressLease{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AddressLease"},
		ObjectMeta: metav1.ObjectMeta{Name: node.NodeName()},
		Spec:       v1alpha1.AddressLeaseSpec{NodeUID: self.UID},
		Status:     v1alpha1.AddressLeaseStatus{NodeUID: self.UID, Pools: grants(len(a.pods) + railReserve)},
	}))
	return a, nil
}

// handler serves it over HTTP. The Node and owners of pods it asks of the simulation.
func (a *apiServer) handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{
		podsPath, "/api/v1/namespaces/{namespace}/configmaps", leasesPath, leasesPath + "/",
		"/apis/" + v2beta1.GroupVersion.String() + "/", "/apis/" + cniv1.GroupVersion.String() + "/",
	} {
		mux.Handle(path, a.Server)
	}
	mux.Handle("/", &httputil.ReverseProxy{
		Transport: a.node.RESTConfig().Transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "simulation" },
	})
	return mux
}

// Lease implements [holder.API].
func (a *apiServer) Lease(context.Context) (*v1alpha1.AddressLease, error) {
	lease := &v1alpha1.AddressLease{}
	return lease, json.Unmarshal([]byte(kubetest.Text(a.Get(a.leasePath))), lease)
}

// CreateLease implements [holder.API].
func (*apiServer) CreateLease(context.Context, *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	return nil, errors.New("the lease is there from the start")
}

// UpdateLease implements [holder.API].
func (a *apiServer) UpdateLease(ctx context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	a.Edit(a.leasePath, func(o kubetest.Object) { o["spec"] = kubetest.ObjectOf(lease.Spec) })
	return a.Lease(ctx)
}

// managedBy says that a component wrote so many fields. In a cluster that is most
// of what is told of a pod.
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
