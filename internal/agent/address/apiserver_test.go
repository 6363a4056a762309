package address

import (
	"strings"

	"railhead/internal/kubetest"
)

// Where the API server has what the tests are about.
const (
	leasesPath    = "/apis/railhead.io/v1alpha1/addressleases"
	endpointsPath = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/ai/spiderendpoints"
	podsPath      = "/api/v1/namespaces/ai/pods"
	nodesPath     = "/api/v1/nodes"
)

type object = kubetest.Object

// newAPIServer returns an API server with the node.
func newAPIServer() *kubetest.Server {
	s := kubetest.New()
	s.Set(nodesPath, object{"metadata": object{"name": "n1", "uid": "node-uid"}})
	return s
}

// counts is how often something was asked of the objects of a collection.
func counts(s *kubetest.Server, verb, collection string) (n int) {
	s.Change(func() {
		for asked, times := range s.Asked {
			if strings.HasPrefix(asked, verb+" "+collection+"/") {
				n += times
			}
		}
	})
	return n
}
