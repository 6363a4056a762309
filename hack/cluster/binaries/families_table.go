package binaries

import "strings"

// allFamilies is the order in which they are made.
var allFamilies = []Family{Debian, CNI, Multus, Etcd, Containerd, Kubernetes}

// ofClusters are those that a cluster is made of.
var ofClusters = []Family{Debian, CNI, Etcd, Containerd, Kubernetes}

// source is what is compiled of a family's module, and what programs are told
// of their own version: packages built as part of another module cannot know.
type source struct {
	programs map[string]compiled
	stamps   []stamp
	space    int64 // that sources, compiled packages and programs take, in bytes
}

// compiled is a program's package, and the module whose version is its own.
type compiled struct {
	pkg, module string
}

// stamp is a variable that says a version when asked with --version.
type stamp struct {
	variable string
	module   string              // whose version is meant
	text     func(string) string // what of it
}

// The modules that programs come from.
const (
	cni         = "github.com/containernetworking/cni"
	plugins     = "github.com/containernetworking/plugins"
	multus      = "gopkg.in/k8snetworkplumbingwg/multus-cni.v4"
	etcd        = "go.etcd.io/etcd/server/v3"
	containerd  = "github.com/containerd/containerd/v2"
	kubernetes  = "k8s.io/kubernetes"
	coreDNS     = "github.com/coredns/coredns"
	kubeVersion = "k8s.io/component-base/version." // a package
)

// modules is by family; its go.mod is in the directory of that name.
var modules = map[Family]source{
	CNI: {
		space: 150e6,
		programs: map[string]compiled{
			"bridge":      {plugins + "/plugins/main/bridge", plugins},
			"host-device": {plugins + "/plugins/main/host-device", plugins},
			"host-local":  {plugins + "/plugins/ipam/host-local", plugins},
			"ipvlan":      {plugins + "/plugins/main/ipvlan", plugins},
			"loopback":    {plugins + "/plugins/main/loopback", plugins},
			"macvlan":     {plugins + "/plugins/main/macvlan", plugins},
			"portmap":     {plugins + "/plugins/meta/portmap", plugins},
			"ptp":         {plugins + "/plugins/main/ptp", plugins},
			"sbr":         {plugins + "/plugins/meta/sbr", plugins},
			"static":      {plugins + "/plugins/ipam/static", plugins},
			"tuning":      {plugins + "/plugins/meta/tuning", plugins},
			"vlan":        {plugins + "/plugins/main/vlan", plugins},
			"cnitool":     {cni + "/cnitool", cni},
		},
		stamps: []stamp{{plugins + "/pkg/utils/buildversion.BuildVersion", plugins, whole}},
	},
	Multus: {
		space: 800e6,
		programs: map[string]compiled{
			"multus-daemon": {multus + "/cmd/multus-daemon", multus},
			"multus-shim":   {multus + "/cmd/multus-shim", multus},
		},
		stamps: []stamp{{multus + "/pkg/multus.version", multus, whole}},
	},
	Etcd: {
		space:    600e6,
		programs: map[string]compiled{"etcd": {etcd, etcd}},
	},
	Containerd: {
		space: 1200e6,
		programs: map[string]compiled{
			"containerd":              {containerd + "/cmd/containerd", containerd},
			"containerd-shim-runc-v2": {containerd + "/cmd/containerd-shim-runc-v2", containerd},
			"ctr":                     {containerd + "/cmd/ctr", containerd},
		},
		stamps: []stamp{{containerd + "/version.Version", containerd, whole}},
	},
	Kubernetes: {
		space: 5500e6,
		programs: map[string]compiled{
			"kube-apiserver":          {kubernetes + "/cmd/kube-apiserver", kubernetes},
			"kube-controller-manager": {kubernetes + "/cmd/kube-controller-manager", kubernetes},
			"kube-proxy":              {kubernetes + "/cmd/kube-proxy", kubernetes},
			"kube-scheduler":          {kubernetes + "/cmd/kube-scheduler", kubernetes},
			"kubectl":                 {kubernetes + "/cmd/kubectl", kubernetes},
			"kubelet":                 {kubernetes + "/cmd/kubelet", kubernetes},
			"coredns":                 {"railhead/hack/cluster/binaries/kubernetes/coredns", coreDNS},
		},
		stamps: []stamp{
			{kubeVersion + "gitVersion", kubernetes, whole},
			{kubeVersion + "gitMajor", kubernetes, part(0)},
			{kubeVersion + "gitMinor", kubernetes, part(1)},
			{kubeVersion + "gitTreeState", kubernetes, func(string) string { return "clean" }},
			{kubeVersion + "gitCommit", kubernetes, func(string) string { return "" }}, // a module does not tell
		},
	},
}

// whole is v1.36.3.
func whole(version string) string { return version }

// part is 1, 36 or 3 of v1.36.3.
func part(i int) func(string) string {
	return func(version string) string {
		return strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)[i]
	}
}
