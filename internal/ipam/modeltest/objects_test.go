package modeltest

import (
	"net/netip"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/ipam"
	"railhead/internal/ipam/holder"
)

// Objects of the simulated API are never changed in place.
type nodeObject struct {
	name   string
	uid    types.UID
	fenced bool // out-of-service taint
}

type poolObject struct {
	name      string
	uid       types.UID
	subnet    netip.Prefix
	addresses *netipx.IPSet
	closed    string
	deleting  bool
}

func (p *poolObject) pool() ipam.Pool {
	return ipam.Pool{Name: p.name, UID: p.uid, Subnet: p.subnet, Addresses: p.addresses, Closed: p.closed, Deleting: p.deleting}
}

func (p *poolObject) ref() holder.PoolRef { return holder.PoolRef{Name: p.name, Subnet: p.subnet} }

type podObject struct {
	name      types.NamespacedName
	uid       types.UID
	node      string
	nodeUID   types.UID
	identity  string
	migration bool
	nics      []holder.NIC
	ending    bool
}

// owner tells whose an address is: that of a life of a pod, or of an identity
// over all its lives.
func (p *podObject) owner() string {
	if p.identity != "" {
		return p.identity
	}
	return string(p.uid)
}

// A use is what is published of a pod: its SpiderEndpoint.
type use struct {
	pod      types.NamespacedName
	node     string
	given    holder.Assignment
	foreign  netip.Addr // of a pod from before Railhead
	poolName string
}
