package policy

import (
	"encoding/json"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"railhead/api/spiderpool/v2beta1"
)

// Network is a SpiderMultusConfig that keeps the rules, with its defaults and
// with new spellings only. It is never changed once made.
type Network struct {
	Namespace, Name string
	UID             types.UID
	// Broken says which rules it breaks after all, and all but its names may be
	// wrong then. Only Catalog.NetworksFor answers such a Network.
	Broken string

	Type       v2beta1.CNIType
	NAD        string // name of the NetworkAttachmentDefinition, in the same namespace
	CNIName    string // name of the CNI network
	CNIVersion string
	Masters    []string // netdevs on the node; IPoIB has one, VFs have none
	Bond       *Bond
	MTU        int32 // 0: not said
	VLAN       int32 // 0: none
	VLANAuto   bool  // the VLAN comes with the address
	// Resource that pods on this network ask for, as "prefix/name"; "" if none.
	Resource      string
	RDMAIsolation bool
	Pools         Pools

	SRIOV  *SRIOV
	IB     *IB
	OVS    *OVS
	Custom json.RawMessage // nil: looked up by name on the node

	Coordinated bool
	Coordinator *v2beta1.CoordinatorSpec // as written, with new spellings; nil if nothing was
	IPAM        bool
	Chain       []json.RawMessage

	// Inject has, for each of the two annotation keys that the network carries, its values.
	Inject map[string][]string
	// Annotations of the SpiderMultusConfig, which its NetworkAttachmentDefinition has too.
	Annotations map[string]string
}

// key names the SpiderMultusConfig.
func (n Network) key() types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
}

// nadKey names the NetworkAttachmentDefinition.
func (n Network) nadKey() types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: n.NAD}
}

// parent is what the network stands on: the bond, else the first master, else the resource.
func (n Network) parent() string {
	switch {
	case n.Bond != nil:
		return n.Bond.Name
	case len(n.Masters) > 0:
		return n.Masters[0]
	}
	return n.Resource
}

// injections are the annotation keys that the network carries, with each of their values.
func (n Network) injections() iter.Seq[injection] {
	return func(yield func(injection) bool) {
		for key, values := range n.Inject {
			for _, value := range values {
				if !yield(injection{key, value}) {
					return
				}
			}
		}
	}
}

// Bond is a bond of masters.
type Bond struct {
	Name    string
	Mode    int
	Options string // "key=value;key=value"
}

// Pools are names of pools in the user's order, with wildcards.
type Pools struct {
	IPv4, IPv6        []string
	MatchMasterSubnet bool
}

// SRIOV is what only VFs of Ethernet NICs have.
type SRIOV struct {
	MinTxRateMbps, MaxTxRateMbps int
}

// IB is what only VFs of InfiniBand HCAs have.
type IB struct {
	Pkey, LinkState string
	IBKubernetes    bool
}

// OVS is what only ports of Open vSwitch have.
type OVS struct {
	Bridge, DeviceID string
	Trunk            []v2beta1.Trunk
}
