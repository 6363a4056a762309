package holder

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Key names one attempt to run a pod.
type Key struct {
	PodUID types.UID `json:"podUID"`
	// Sandbox is the container runtime's ID; empty where it is not known yet.
	Sandbox string `json:"sandbox,omitempty"`
}

// Request is the addresses that a pod needs, all of them or none.
type Request struct {
	Key
	Pod types.NamespacedName
	// Identity of a pod that keeps its addresses over its lives; empty: it does not.
	Identity  string
	Migration bool // the identity runs on another node, too, and moves here
	NICs      []NIC
	// Settle takes what is there: the time of the pod is nearly over.
	Settle bool
}

// NIC is an interface of a pod.
type NIC struct {
	Interface string
	Choices   []Choice // one a family
}

// Choice is one address of an interface.
type Choice struct {
	Pools []PoolRef  // in the order wanted
	Exact netip.Addr // this one and no other, if valid
}

// PoolRef is a SpiderIPPool.
type PoolRef struct {
	Name   string
	Subnet netip.Prefix
}

// Assignment is the addresses of a pod.
type Assignment struct {
	Key
	Pod      types.NamespacedName `json:"pod"`
	Identity string               `json:"identity,omitempty"`
	// Sequence is greater than that of each assignment before: a release that
	// names it frees no later one.
	Sequence  uint64     `json:"sequence"`
	Addresses []Assigned `json:"addresses"` // in the order of the request
	At        time.Time  `json:"at"`
}

// Assigned is one address of an interface.
type Assigned struct {
	Interface string       `json:"interface"`
	Pool      string       `json:"pool"`
	Prefix    netip.Prefix `json:"prefix"` // the address, with the length of its subnet
	Epoch     int64        `json:"epoch"`  // of the grant
	// Doubtful says that somebody may still have it: it is probed on the wire first.
	Doubtful bool `json:"doubtful,omitempty"`
}
