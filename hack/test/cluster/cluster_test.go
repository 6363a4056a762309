// Package cluster tests Railhead on a real Kubernetes cluster: the shipped
// manifests, controller and agents, on two nodes with eight rails and both families.
package cluster

import (
	"testing"

	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/testcluster"
)

const (
	root       = "../../.."
	acceptance = "../api/testdata/acceptance"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Config{
		Options:  plan.Options{Nodes: 2, Rails: 8, IPv4: true, IPv6: true},
		Variable: "RAILHEAD_CLUSTER", Target: "cluster-test",
	})
}

// cluster is a running cluster and what these tests ask of it.
type cluster struct{ *testcluster.Cluster }

func require(t *testing.T) *cluster {
	t.Helper()
	return &cluster{testcluster.Require(t)}
}
