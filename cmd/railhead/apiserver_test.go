package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"
)

// apiServer answers as an API server does, from the objects of a file.
type apiServer struct {
	objects map[string][]map[string]any // by path of the resource, without a namespace
	page    int                         // objects in a page at most
	answers map[string]int              // status by path, where it is another than 200

	mu    sync.Mutex
	asked []string        // paths, and what of them was asked
	later func(asked int) // called at each request with how many there were
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
	a := &apiServer{objects: map[string][]map[string]any{}, page: 1000, answers: map[string]int{}}
	for _, path := range resources {
		a.objects[path] = []map[string]any{}
	}
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
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		kind, _ := object["kind"].(string)
		a.objects[resources[kind]] = append(a.objects[resources[kind]], object)
	}
}

// ServeHTTP answers a request.
func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, namespace, name := cutPath(r.URL.Path)
	asMetadata := strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	a.mu.Lock()
	a.asked = append(a.asked, r.Method+" "+r.URL.RequestURI())
	if a.later != nil {
		a.later(len(a.asked))
	}
	a.mu.Unlock()
	objects, ok := a.objects[path]
	switch {
	case a.answers[path] != 0:
		refuse(w, a.answers[path])
	case !ok:
		refuse(w, http.StatusNotFound)
	case r.Method != http.MethodGet, path == resources["Pod"] && !asMetadata && name == "":
		refuse(w, http.StatusMethodNotAllowed)
	case name != "":
		respondOne(w, ofName(ofNamespace(objects, namespace), name), asMetadata)
	default:
		if selected, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); ok {
			objects = ofName(objects, selected)
		}
		a.list(w, r, ofNamespace(objects, namespace), asMetadata)
	}
}

// cutPath is the path of a resource without a namespace, and the namespace and
// the name that are asked for, "" for all.
func cutPath(path string) (resource, namespace, name string) {
	head, rest, ok := strings.Cut(path, "/namespaces/")
	if ok {
		var inside bool
		if namespace, rest, inside = strings.Cut(rest, "/"); !inside {
			return resources["Namespace"], "", namespace
		}
		path = head + "/" + rest
	}
	for _, resource := range resources {
		if name, ok := strings.CutPrefix(path, resource+"/"); ok {
			return resource, namespace, name
		}
	}
	return path, namespace, ""
}

// ofName returns the objects of a name.
func ofName(objects []map[string]any, name string) []map[string]any {
	var list []map[string]any
	for _, o := range objects {
		if metadata, _ := o["metadata"].(map[string]any); metadata["name"] == name {
			list = append(list, o)
		}
	}
	return list
}

// respondOne answers with an object that there is.
func respondOne(w http.ResponseWriter, objects []map[string]any, asMetadata bool) {
	switch {
	case len(objects) == 0:
		refuse(w, http.StatusNotFound)
	case asMetadata:
		respond(w, http.StatusOK, map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": objects[0]["metadata"]})
	default:
		respond(w, http.StatusOK, objects[0])
	}
}

// ofNamespace returns the objects of a namespace, all for "".
func ofNamespace(objects []map[string]any, namespace string) []map[string]any {
	var list []map[string]any
	for _, o := range objects {
		if metadata, _ := o["metadata"].(map[string]any); namespace == "" || metadata["namespace"] == namespace {
			list = append(list, o)
		}
	}
	return list
}

// list answers with a page.
func (a *apiServer) list(w http.ResponseWriter, r *http.Request, objects []map[string]any, asMetadata bool) {
	start, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	end := min(start+a.page, len(objects))
	page := map[string]any{"apiVersion": "v1", "kind": "List", "items": objects[start:end]}
	metadata := map[string]any{"resourceVersion": "7"}
	if end < len(objects) {
		metadata["continue"] = strconv.Itoa(end)
	}
	page["metadata"] = metadata
	if asMetadata {
		page["apiVersion"], page["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	respond(w, http.StatusOK, page)
}

func refuse(w http.ResponseWriter, status int) {
	reason := map[int]string{
		http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound", http.StatusUnauthorized: "Unauthorized",
		http.StatusInternalServerError: "InternalError",
	}[status]
	respond(w, status, map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": status, "reason": reason,
		"message": "the API server says " + strconv.Itoa(status),
	})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
