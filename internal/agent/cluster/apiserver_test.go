package cluster

import (
	"fmt"
	"slices"
	"strings"

	"railhead/internal/kubetest"
)

// Where the API server has what the tests are about.
const (
	podsPath         = "/api/v1/pods"
	nodesPath        = "/api/v1/nodes"
	namespacesPath   = "/api/v1/namespaces"
	configMapsPath   = "/api/v1/namespaces/railhead-system/configmaps"
	nadsPath         = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
	spiderPath       = "/apis/spiderpool.spidernet.io/v2beta1/"
	poolsPath        = spiderPath + "spiderippools"
	coordinatorsPath = spiderPath + "spidercoordinators"
	replicaSetsPath  = "/apis/apps/v1/replicasets"
)

// fields of an object as JSON has it.
type content = kubetest.Object

// apiServer is an API server whose objects have UIDs by their names.
type apiServer struct{ *kubetest.Server }

func newAPIServer() *apiServer {
	a := &apiServer{kubetest.New()}
	a.set(nodesPath, content{
		"metadata": content{"name": "n1", "uid": "node-1", "labels": content{"zone": "a"}, "managedFields": []any{content{"manager": "kubelet"}}},
		"status": content{
			"addresses": []any{
				content{"type": "Hostname", "address": "n1"},
				content{"type": "ExternalIP", "address": "192.0.2.1"},
				content{"type": "InternalIP", "address": "10.0.0.1"},
				content{"type": "InternalIP", "address": "fd00::1"},
			},
			"images": []any{content{"names": []any{"x"}}},
		},
	})
	a.set(nodesPath, content{"metadata": content{"name": "n2"}})
	a.set(namespacesPath, content{"metadata": content{"name": "ai", "labels": content{"team": "a"}}})
	return a
}

// set makes or changes an object of a collection.
func (a *apiServer) set(collection string, o content) {
	if meta := kubetest.Meta(o); meta["uid"] == nil {
		meta["uid"] = "uid-" + fmt.Sprint(meta["name"])
	}
	a.Set(collection, o)
}

// delete has an object go: "name", or "namespace/name".
func (a *apiServer) delete(collection, key string) {
	namespace, name, ok := strings.Cut(key, "/")
	switch at := strings.LastIndex(collection, "/"); {
	case !ok:
		name = key
	case !strings.Contains(collection, "/namespaces/"):
		collection = collection[:at] + "/namespaces/" + namespace + collection[at:]
	}
	a.Delete(collection + "/" + name)
}

// requests is how many were sent that are no watches and no lists.
func (a *apiServer) requests() (n int) {
	a.Change(func() {
		for asked, times := range a.Asked {
			if !strings.HasPrefix(asked, "watch ") && !strings.HasPrefix(asked, "list ") {
				n += times
			}
		}
	})
	return n
}

// sent are the bodies of what was written.
func (a *apiServer) sent() (bodies []content) {
	a.Change(func() { bodies = slices.Clone(a.Sent) })
	return bodies
}
