package component

import (
	"railhead/hack/cluster/box"
	"railhead/hack/cluster/pki"
	"railhead/hack/cluster/plan"
)

// Node is a machine with a kubelet. The kubelet ends at once when containerd
// does not answer yet, which its being started again mends.
func Node(c *plan.Cluster, n plan.Node, p *pki.PKI) (Machine, error) {
	m := Machine{Services: []box.Service{containerd(), kubelet(n), kubeProxy()}}
	for _, files := range []func() ([]box.File, error){
		func() ([]box.File, error) { return nodeCredentials(c, n, p) },
		containerdFiles,
		func() ([]box.File, error) { return CNI(n) },
		func() ([]box.File, error) { return kubeletFiles(c) },
		func() ([]box.File, error) { return kubeProxyFiles(c, n) },
	} {
		more, err := files()
		if err != nil {
			return Machine{}, err
		}
		m.Files = append(m.Files, more...)
	}
	return m, nil
}
