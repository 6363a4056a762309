package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"railhead/internal/kubetest"
)

// apiServer is an API server with the objects of a file.
type apiServer struct {
	*kubetest.Server

	answers map[string]int  // status by path of the collection, where it is another than 200
	asked   []string        // methods, paths, and what of them was asked
	later   func(asked int) // called at each request with how many there were
}

// resources has the path of each kind.
var resources = map[string]string{
	"SpiderIPPool":                "/apis/spiderpool.spidernet.io/v2beta1/spiderippools",
	"SpiderSubnet":                "/apis/spiderpool.spidernet.io/v2beta1/spidersubnets",
	"SpiderReservedIP":            "/apis/spiderpool.spidernet.io/v2beta1/spiderreservedips",
	"SpiderEndpoint":              "/apis/spiderpool.spidernet.io/v2beta1/spiderendpoints",
	"SpiderMultusConfig":          "/apis/spiderpool.spidernet.io/v2beta1/spidermultusconfigs",
	"NetworkAttachmentDefinition": "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions",
	"Pod":                         "/api/v1/pods",
	"PoolLedger":                  "/apis/railhead.io/v1alpha1/poolledgers",
	"AddressLease":                "/apis/railhead.io/v1alpha1/addressleases",
	"Namespace":                   "/api/v1/namespaces",
	"Node":                        "/api/v1/nodes",
	"ConfigMap":                   "/api/v1/configmaps",
	"ReplicaSet":                  "/apis/apps/v1/replicasets",
	"Job":                         "/apis/batch/v1/jobs",
	"Event":                       "/api/v1/events",
}

// newAPIServer starts an API server with the objects of a file of
// testdata/cluster, none for "", and returns the kubeconfig for it.
func newAPIServer(t *testing.T, file string) (server *apiServer, kubeconfig string) {
	t.Helper()
	a := &apiServer{Server: kubetest.New(), answers: map[string]int{}}
	a.Hook = a.permits
	if file != "" {
		a.load(t, filepath.Join("testdata", "cluster", file))
	}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: test,
clusters: [{name: test, cluster: {server: %q}}], users: [{name: test}],
contexts: [{name: test, context: {cluster: test, user: test, namespace: ai}}]}`, s.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return a, kubeconfig
}

func (a *apiServer) load(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object kubetest.Object
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		kind, _ := object["kind"].(string)
		a.Set(resources[kind], object)
	}
}

// permits notes what is asked, and refuses to write and to list whole pods.
func (a *apiServer) permits(verb string, r *http.Request) int {
	a.asked = append(a.asked, r.Method+" "+r.URL.RequestURI())
	if a.later != nil {
		a.later(len(a.asked))
	}
	collection := kubetest.Collection(r.URL.Path)
	isWhole := !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	switch {
	case a.answers[collection] != 0:
		return a.answers[collection]
	case r.Method != http.MethodGet, verb == "list" && collection == resources["Pod"] && isWhole:
		return http.StatusMethodNotAllowed
	}
	return 0
}

// paths are those of the objects of a kind.
func (a *apiServer) paths(kind string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a.Objects)), func(path string) bool {
		return kubetest.Collection(path) != resources[kind]
	})
}

// keep drops all objects of a kind but one, or all for "".
func (a *apiServer) keep(kind, name string) {
	for _, path := range a.paths(kind) {
		if kubetest.Meta(a.Objects[path])["name"] != name {
			a.Delete(path)
		}
	}
}

// object is one of the API server's, to be changed before that is asked.
func (a *apiServer) object(t *testing.T, kind, name string) kubetest.Object {
	t.Helper()
	for _, path := range a.paths(kind) {
		if kubetest.Meta(a.Objects[path])["name"] == name {
			return a.Objects[path]
		}
	}
	t.Fatalf("there is no object %s %s", kind, name)
	return nil
}
