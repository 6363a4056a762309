// Package pki makes the certificates and keys of one cluster, in memory and
// for one year. It writes no files and keeps nothing: a cluster that starts
// anew gets new ones.
//
// This package is frozen: the certificate phases of kubeadm were looked at in its
// place. They make neither a kubelet's serving certificate nor kube-proxy's, so
// that signing would stay, beside another program to build and its files to read.
package pki

import (
	"crypto/x509/pkix"
	"fmt"
	"net/netip"
	"time"

	"railhead/hack/cluster/plan"
)

// Domain is the cluster's DNS domain.
const Domain = "cluster.local"

// Issuer is what tokens of service accounts say who made them.
const Issuer = "https://kubernetes.default.svc." + Domain

// PKI is everything that the components of a cluster prove themselves with.
type PKI struct {
	CA         *Authority // of all certificates but FrontProxy
	FrontCA    *Authority // of who may speak to aggregated API servers for others
	APIServer  Pair       // which the API server shows
	ToKubelets Pair       // with which the API server calls kubelets
	FrontProxy Pair       // with which it calls aggregated API servers

	Admin             Pair // may do anything
	ControllerManager Pair
	Scheduler         Pair
	KubeProxy         Pair
	Nodes             map[string]Pair // by name: the kubelet as client and as server

	ServiceAccounts KeyPair // signs the tokens of service accounts
}

// New makes the certificates of a planned cluster. They hold from an hour
// before now, because clocks differ, until a year after it.
func New(c *plan.Cluster, now time.Time) (*PKI, error) {
	ca, err := NewAuthority("railhead-cluster-ca", now)
	if err != nil {
		return nil, err
	}
	front, err := NewAuthority("railhead-cluster-front-proxy-ca", now)
	if err != nil {
		return nil, err
	}
	p := &PKI{CA: ca, FrontCA: front, Nodes: map[string]Pair{}}
	if p.ServiceAccounts, err = newKeyPair(); err != nil {
		return nil, err
	}
	if err := p.issueAll(c); err != nil {
		return nil, err
	}
	for _, n := range c.Nodes {
		if p.Nodes[n.Name], err = ca.Issue(nodeLeaf(n)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// issueAll makes the certificates of what there is one of.
func (p *PKI) issueAll(c *plan.Cluster) error {
	for _, one := range []struct {
		into *Pair
		by   *Authority
		leaf Leaf
	}{
		{&p.APIServer, p.CA, apiServerLeaf(c)},
		{&p.ToKubelets, p.CA, administrator("kube-apiserver-kubelet-client")},
		{&p.FrontProxy, p.FrontCA, client(FrontProxyName)},
		{&p.Admin, p.CA, administrator("kubernetes-admin")},
		{&p.ControllerManager, p.CA, client("system:kube-controller-manager")},
		{&p.Scheduler, p.CA, client("system:kube-scheduler")},
		{&p.KubeProxy, p.CA, client("system:kube-proxy")},
	} {
		var err error
		if *one.into, err = one.by.Issue(one.leaf); err != nil {
			return err
		}
	}
	return nil
}

// FrontProxyName is the only name that aggregated API servers take from a
// certificate of the front proxy's authority.
const FrontProxyName = "front-proxy-client"

func client(name string) Leaf {
	return Leaf{Subject: pkix.Name{CommonName: name}, Client: true}
}

// administrator is a client in the group that may do anything.
func administrator(name string) Leaf {
	return Leaf{Subject: pkix.Name{CommonName: name, Organization: []string{"system:masters"}}, Client: true}
}

// apiServerLeaf names the API server by all that its clients call it: pods the
// Service's names and address, nodes the fabric's address, and those beside it
// or behind a forwarder localhost.
func apiServerLeaf(c *plan.Cluster) Leaf {
	const service = "kubernetes"
	leaf := Leaf{
		Subject: pkix.Name{CommonName: "kube-apiserver"},
		Server:  true,
		Names: []string{
			service, service + ".default", service + ".default.svc", service + ".default.svc." + Domain, plan.Fabric, "localhost",
		},
		Addresses: append(loopback(), c.API...),
	}
	for _, p := range c.Host {
		leaf.Addresses = append(leaf.Addresses, p.Addr())
	}
	return leaf
}

// nodeLeaf is a kubelet's. The group and the name's prefix are what makes the
// API server treat it as a node (authorization mode Node).
func nodeLeaf(n plan.Node) Leaf {
	leaf := Leaf{
		Subject:   pkix.Name{CommonName: "system:node:" + n.Name, Organization: []string{"system:nodes"}},
		Client:    true,
		Server:    true,
		Names:     []string{n.Name, "localhost"},
		Addresses: loopback(),
	}
	for _, p := range n.Host {
		leaf.Addresses = append(leaf.Addresses, p.Addr())
	}
	return leaf
}

func loopback() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

// ServiceLeaf is for what a test puts behind a Service: an admission webhook
// or an aggregated API server.
func ServiceLeaf(namespace, service string) Leaf {
	name := fmt.Sprintf("%s.%s.svc", service, namespace)
	return Leaf{
		Subject: pkix.Name{CommonName: name},
		Server:  true,
		Names:   []string{name, name + "." + Domain, service + "." + namespace, service},
	}
}
