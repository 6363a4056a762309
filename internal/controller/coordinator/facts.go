package coordinator

import (
	"errors"
	"io/fs"
)

// facts are what the cluster says of its own network, as it says it.
type facts struct {
	podCIDRType string // of the SpiderCoordinator, never ""
	// isByHand says that hijackCIDR has more than link-local addresses: an
	// administrator wrote down what cannot be found out.
	isByHand bool

	cniConfig    answer[string] // type of the first CNI configuration's main plugin
	kubeadm      answer[string] // ClusterConfiguration as YAML
	managers     answer[[]program]
	nodes        answer[[]node]
	serviceCIDRs answer[[]string]
	calico       answer[[]calicoPool]
	cilium       answer[map[string]string] // cilium-config
	ciliumPools  answer[[]ciliumPool]
}

// answer is what one source says.
type answer[T any] struct {
	source string // in words
	value  T
	// err says why there is no value: fs.ErrNotExist if the source is not
	// there, fs.ErrPermission if it may not be read, errNotAsked if it was not.
	err error
}

// errNotAsked is the error of a source that costs something and was not asked
// yet. discover says when it wants it.
var errNotAsked = errors.New("not asked")

// without says in words why a source says nothing.
func (a answer[T]) without() string {
	switch {
	case errors.Is(a.err, fs.ErrNotExist):
		return a.source + " (not there)"
	case a.err != nil:
		return a.source + " (" + a.err.Error() + ")"
	}
	return a.source
}

// program is a container's command and arguments.
type program struct {
	name string // of the pod
	args []string
}

// node is what is read of a Node.
type node struct {
	name     string
	podCIDRs []string
	args     []string // of k3s or RKE2, from its annotation
}

// calicoPool is an IPPool of calico.
type calicoPool struct {
	name, cidr string
	isDisabled bool
	uses       []string // allowedUses; none: all
}

// ciliumPool is a CiliumPodIPPool.
type ciliumPool struct {
	name  string
	cidrs []string
}
