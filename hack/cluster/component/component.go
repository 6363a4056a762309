// Package component says how the parts of a cluster are started: the command
// line and the files of etcd, of the control plane, and of what runs on a node.
// It is pure: a plan and certificates go in, files and services of machines
// come out. It starts nothing and writes nothing.
package component

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"strings"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/plan"
)

// Where a machine has what its services use. Programs and CNI plugins are put
// there by who makes the machine, and Programs is the first in its PATH: by
// that containerd finds runc and its shim, and kube-proxy and the CNI plugins
// find nft.
const (
	Programs   = "/opt/railhead/bin" // the components, runc, the containerd shim, ctr, kubectl, nft
	CNIPlugins = "/opt/cni/bin"
	EtcdData   = "/var/lib/etcd" // nothing in it is synced: best in memory
)

// volumePlugins has none. The default is in /usr, which is the host's.
const volumePlugins = "/var/lib/kubelet/volume-plugins"

// AdminKubeconfig is the administrator's kubeconfig in the fabric.
const AdminKubeconfig = "/etc/kubernetes/admin.conf"

// Names of the services, which are also those of their logs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Containerd        = "containerd"
	Kubelet           = "kubelet"
	KubeProxy         = "kube-proxy"
)

// Machine is what a machine of the cluster has and runs. A service may be
// started when those before it are ready; all of them get over a start that
// came too early.
type Machine struct {
	Files    []box.File
	Services []box.Service
}

// apiPort is the port of the API server. It is also that of the Service
// "kubernetes", so that its address leads there without any translation.
const apiPort = 443

// APIServerAddress is where nodes, pods and the machines' neighbours reach the
// API server: 10.99.0.1:443.
func APIServerAddress(c *plan.Cluster) string {
	return netip.AddrPortFrom(c.Host[0].Addr(), apiPort).String()
}

// server is the API server in kubeconfigs.
func server(c *plan.Cluster) string { return "https://" + APIServerAddress(c) }

// everywhere is the address to listen on for everybody, in all families.
func everywhere(c *plan.Cluster) string {
	if c.Options.IPv6 {
		return netip.IPv6Unspecified().String()
	}
	return netip.IPv4Unspecified().String()
}

// local is the address to listen on for clients in the same machine.
func local(c *plan.Cluster) string {
	if c.Options.IPv4 {
		return "127.0.0.1"
	}
	return netip.IPv6Loopback().String()
}

// localPort is a port of [local].
func localPort(c *plan.Cluster, port int) string {
	return net.JoinHostPort(local(c), fmt.Sprint(port))
}

// service is a service that is started again whenever it ends.
func service(name string, args ...string) box.Service {
	return box.Service{Name: name, Args: append([]string{program(name)}, args...), Restart: true}
}

func program(name string) string { return path.Join(Programs, name) }

// public and secret are files by who may read them.
func public(name string, content []byte) box.File {
	return box.File{Path: name, Mode: 0o644, Content: content}
}

func secret(name string, content []byte) box.File {
	return box.File{Path: name, Mode: 0o600, Content: content}
}

// joined lists values in the way of command lines.
func joined[T fmt.Stringer](list []T) string {
	return strings.Join(texts(list), ",")
}

func texts[T fmt.Stringer](list []T) []string {
	all := make([]string, len(list))
	for i, v := range list {
		all[i] = v.String()
	}
	return all
}

// addresses takes the addresses out of prefixes.
func addresses(list []netip.Prefix) []netip.Addr {
	all := make([]netip.Addr, len(list))
	for i, p := range list {
		all[i] = p.Addr()
	}
	return all
}
