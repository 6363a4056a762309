package coordinator

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// testFacts are of a cluster that says nothing, but for what change says.
func testFacts(change func(*facts)) facts {
	f := facts{
		podCIDRType:  "auto",
		cniConfig:    answer[string]{source: "CNI configuration", err: fs.ErrNotExist},
		kubeadm:      answer[string]{source: "kubeadm-config", err: fs.ErrNotExist},
		managers:     answer[[]program]{source: "managers"},
		nodes:        answer[[]node]{source: "Nodes"},
		serviceCIDRs: answer[[]string]{source: "ServiceCIDRs", err: fs.ErrNotExist},
		calico:       answer[[]calicoPool]{source: "IPPools", err: fs.ErrNotExist},
		cilium:       answer[map[string]string]{source: "cilium-config", err: fs.ErrNotExist},
		ciliumPools:  answer[[]ciliumPool]{source: "CiliumPodIPPools", err: fs.ErrNotExist},
	}
	change(&f)
	return f
}

func found[T any](source string, value T) answer[T] { return answer[T]{source: source, value: value} }

const kubeadmConfiguration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.34.1
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16,fd00:10:244::/56
  serviceSubnet: 10.96.0.0/16,fd00:10:96::/112
`

func TestDiscover(t *testing.T) {
	t.Parallel()
	forbidden := fmt.Errorf("the controller's role does not allow to read it: %w", fs.ErrPermission)
	for name, tt := range map[string]struct {
		facts    facts
		network  string
		pods     string
		services string
		reason   string
	}{
		"kubeadm, two families": {
			facts:   testFacts(func(f *facts) { f.kubeadm = found("kubeadm-config", kubeadmConfiguration) }),
			network: "cluster", pods: "10.244.0.0/16 fd00:10:244::/56", services: "10.96.0.0/16 fd00:10:96::/112",
		},
		"kubeadm, with ServiceCIDRs that were added": {
			facts: testFacts(func(f *facts) {
				f.kubeadm = found("kubeadm-config", kubeadmConfiguration)
				f.serviceCIDRs = found("ServiceCIDRs", []string{"10.97.0.0/16", "10.96.0.0/16"})
			}),
			network: "cluster", pods: "10.244.0.0/16 fd00:10:244::/56", services: "10.96.0.0/15",
		},
		"kubeadm without podSubnet, flags of the manager": {
			facts: testFacts(func(f *facts) {
				f.kubeadm = found("kubeadm-config", "networking: {serviceSubnet: 10.96.0.0/12}")
				f.managers = found("managers", []program{{"kube-system/kcm-a", []string{"kube-controller-manager", "--cluster-cidr=10.8.0.0/14", "--v=2"}}})
			}),
			network: "cluster", pods: "10.8.0.0/14", services: "10.96.0.0/12",
		},
		"managers, flags apart": {
			facts: testFacts(func(f *facts) {
				f.managers = found("managers", []program{{"a", nil}, {"b", []string{"kube-controller-manager", "--cluster-cidr", "10.8.0.0/14,fd00::/56", "--service-cluster-ip-range", "10.3.0.0/24"}}})
			}),
			network: "cluster", pods: "10.8.0.0/14 fd00::/56", services: "10.3.0.0/24",
		},
		"k3s with flags": {
			facts: testFacts(func(f *facts) {
				f.nodes = found("Nodes", []node{
					{name: "agent", args: []string{"agent"}, podCIDRs: []string{"10.52.1.0/24"}},
					{name: "server", args: []string{"server", "--cluster-cidr", "10.52.0.0/16", "--service-cidr=10.53.0.0/16"}, podCIDRs: []string{"10.52.0.0/24"}},
				})
			}),
			network: "cluster", pods: "10.52.0.0/16", services: "10.53.0.0/16",
		},
		"k3s without flags": {
			facts: testFacts(func(f *facts) {
				f.nodes = found("Nodes", []node{{name: "server", args: []string{"server"}, podCIDRs: []string{"10.42.0.0/24"}}, {name: "agent", args: []string{"agent"}, podCIDRs: []string{"10.42.1.0/24"}}})
			}),
			network: "cluster", pods: "10.42.0.0/23", services: "10.43.0.0/16",
		},
		"k3s of IPv6 alone": {
			facts: testFacts(func(f *facts) {
				f.nodes = found("Nodes", []node{{name: "server", args: []string{"server"}, podCIDRs: []string{"fd00:42::/64"}}})
			}),
			network: "cluster", pods: "fd00:42::/64", services: "fd00:43::/112",
		},
		"RKE2, flags of its manager": {
			facts: testFacts(func(f *facts) {
				f.managers = found("managers", []program{{"kcm", []string{"kube-controller-manager", "--cluster-cidr=10.42.0.0/16", "--service-cluster-ip-range=10.43.0.0/16"}}})
			}),
			network: "cluster", pods: "10.42.0.0/16", services: "10.43.0.0/16",
		},
		"GKE or AKS: nodes and ServiceCIDRs": {
			facts: testFacts(func(f *facts) {
				f.serviceCIDRs = found("ServiceCIDRs", []string{"34.118.224.0/20"})
				f.nodes = found("Nodes", []node{{name: "a", podCIDRs: []string{"10.4.0.0/24"}}, {name: "b", podCIDRs: []string{"10.4.1.0/24"}}, {name: "new"}, {name: "c", podCIDRs: []string{"10.4.4.0/24"}}})
			}),
			network: "cluster", pods: "10.4.0.0/23 10.4.4.0/24", services: "34.118.224.0/20",
		},
		"EKS: pods have addresses of the cloud": {
			facts: testFacts(func(f *facts) {
				f.serviceCIDRs = found("ServiceCIDRs", []string{"172.20.0.0/16"})
				f.nodes = found("Nodes", []node{{name: "a"}, {name: "b"}})
			}),
			network: "cluster", services: "172.20.0.0/16",
			reason: "no CIDR of pods found (podCIDRType auto, network cluster); looked at kubeadm-config (not there); managers (none of 0 has --cluster-cidr); Nodes (none of 2 has spec.podCIDRs, as where the cloud's network gives pods their addresses). Let one of these say it, or write it by hand: podCIDRType: none, and the CIDRs of pods and Services in hijackCIDR",
		},
		"nothing may be read": {
			facts: testFacts(func(f *facts) {
				f.kubeadm.err, f.managers.err, f.nodes.err, f.serviceCIDRs.err, f.calico.err, f.cilium.err = forbidden, forbidden, forbidden, forbidden, forbidden, forbidden
			}),
			network: "cluster",
			reason: "no CIDR of pods found (podCIDRType auto, network cluster); looked at kubeadm-config (the controller's role does not allow to read it: permission denied); managers (the controller's role does not allow to read it: permission denied); Nodes (the controller's role does not allow to read it: permission denied). " +
				"no CIDR of Services found; looked at ServiceCIDRs (the controller's role does not allow to read it: permission denied); kubeadm-config (the controller's role does not allow to read it: permission denied); managers (the controller's role does not allow to read it: permission denied); Nodes (the controller's role does not allow to read it: permission denied). " + byHand,
		},
		"none needs Services only": {
			facts: testFacts(func(f *facts) {
				f.podCIDRType = "none"
				f.serviceCIDRs = found("ServiceCIDRs", []string{"10.96.0.0/12"})
			}),
			network: "none", services: "10.96.0.0/12",
		},
		"none, and nothing by hand": {
			facts:   testFacts(func(f *facts) { f.podCIDRType = "none" }),
			network: "none",
			reason:  "no CIDR of Services found; looked at ServiceCIDRs (not there); kubeadm-config (not there); managers (none of 0 has --service-cluster-ip-range). " + byHand,
		},
		"none, by hand": {
			facts:   testFacts(func(f *facts) { f.podCIDRType, f.isByHand = "none", true }),
			network: "none",
		},
		"calico, one pool disabled and one for tunnels": {
			facts: testFacts(func(f *facts) {
				f.kubeadm = found("kubeadm-config", kubeadmConfiguration)
				f.calico = found("IPPools", []calicoPool{
					{name: "v4", cidr: "10.20.0.0/16"},
					{name: "old", cidr: "10.30.0.0/16", isDisabled: true},
					{name: "tunnels", cidr: "10.40.0.0/16", uses: []string{"Tunnel"}},
					{name: "v6", cidr: "fd00:20::/48", uses: []string{"Workload", "Tunnel"}},
				})
			}),
			network: "calico", pods: "10.20.0.0/16 fd00:20::/48", services: "10.96.0.0/16 fd00:10:96::/112",
		},
		"calico wanted and all pools disabled": {
			facts: testFacts(func(f *facts) {
				f.podCIDRType = "calico"
				f.kubeadm = found("kubeadm-config", kubeadmConfiguration)
				f.calico = found("IPPools", []calicoPool{{name: "old", cidr: "10.30.0.0/16", isDisabled: true}})
			}),
			network: "calico", services: "10.96.0.0/16 fd00:10:96::/112",
			reason: "no CIDR of pods found (podCIDRType calico, network calico); looked at IPPools (none of 1 serves pods). " + byHand,
		},
		"cilium, cluster-pool": {
			facts: testFacts(func(f *facts) {
				f.kubeadm = found("kubeadm-config", kubeadmConfiguration)
				f.cilium = found("cilium-config", map[string]string{"ipam": "cluster-pool", "cluster-pool-ipv4-cidr": "10.0.0.0/8", "cluster-pool-ipv6-cidr": "fd00::/104"})
			}),
			network: "cilium", pods: "10.0.0.0/8 fd00::/104", services: "10.96.0.0/16 fd00:10:96::/112",
		},
		"cilium, kubernetes": {
			facts: testFacts(func(f *facts) {
				f.kubeadm = found("kubeadm-config", kubeadmConfiguration)
				f.cilium = found("cilium-config", map[string]string{"ipam": "kubernetes"})
			}),
			network: "cilium", pods: "10.244.0.0/16 fd00:10:244::/56", services: "10.96.0.0/16 fd00:10:96::/112",
		},
		"cilium, multi-pool": {
			facts: testFacts(func(f *facts) {
				f.kubeadm = found("kubeadm-config", kubeadmConfiguration)
				f.cilium = found("cilium-config", map[string]string{"ipam": "multi-pool"})
				f.ciliumPools = found("CiliumPodIPPools", []ciliumPool{{"default", []string{"10.10.0.0/16"}}, {"mars", []string{"10.20.0.0/16", "fd00:20::/104"}}})
			}),
			network: "cilium", pods: "10.10.0.0/16 10.20.0.0/16 fd00:20::/104", services: "10.96.0.0/16 fd00:10:96::/112",
		},
		"cilium, multi-pool without the kind": {
			facts: testFacts(func(f *facts) {
				f.serviceCIDRs = found("ServiceCIDRs", []string{"10.96.0.0/12"})
				f.cilium = found("cilium-config", map[string]string{"ipam": "multi-pool"})
			}),
			network: "cilium", services: "10.96.0.0/12",
			reason: "no CIDR of pods found (podCIDRType auto, network cilium); looked at CiliumPodIPPools (not there). " + byHand,
		},
		"cilium, eni": {
			facts: testFacts(func(f *facts) {
				f.serviceCIDRs = found("ServiceCIDRs", []string{"10.96.0.0/12"})
				f.cilium = found("cilium-config", map[string]string{"ipam": "eni"})
			}),
			network: "cilium", services: "10.96.0.0/12",
			reason: `no CIDR of pods found (podCIDRType auto, network cilium); looked at cilium-config (ipam is "eni", and none of the keys ["ipv4-native-routing-cidr" "ipv6-native-routing-cidr"] has a CIDR). ` + byHand,
		},
		"cilium, eni with its network": {
			facts: testFacts(func(f *facts) {
				f.serviceCIDRs = found("ServiceCIDRs", []string{"10.96.0.0/12"})
				f.cilium = found("cilium-config", map[string]string{"ipam": "eni", "ipv4-native-routing-cidr": "192.168.0.0/16"})
			}),
			network: "cilium", pods: "192.168.0.0/16", services: "10.96.0.0/12",
		},
		"objects of both, as after a migration": {
			facts: testFacts(func(f *facts) {
				f.serviceCIDRs = found("ServiceCIDRs", []string{"10.96.0.0/12"})
				f.calico = found("IPPools", []calicoPool{{name: "v4", cidr: "10.20.0.0/16"}})
				f.cilium = found("cilium-config", map[string]string{"cluster-pool-ipv4-cidr": "10.0.0.0/16 10.1.0.0/16"})
			}),
			network: "calico and cilium", pods: "10.0.0.0/15 10.20.0.0/16", services: "10.96.0.0/12",
		},
		"objects of both, and the CNI configuration says which": {
			facts: testFacts(func(f *facts) {
				f.serviceCIDRs = found("ServiceCIDRs", []string{"10.96.0.0/12"})
				f.cniConfig = found("CNI configuration", "cilium")
				f.calico = found("IPPools", []calicoPool{{name: "v4", cidr: "10.20.0.0/16"}})
				f.cilium = found("cilium-config", map[string]string{"cluster-pool-ipv4-cidr": "10.0.0.0/16"})
			}),
			network: "cilium", pods: "10.0.0.0/16", services: "10.96.0.0/12",
		},
		"what is no CIDR is said": {
			facts: testFacts(func(f *facts) {
				f.podCIDRType = "cluster"
				f.kubeadm = found("kubeadm-config", "networking: {podSubnet: 10.0.0.0, serviceSubnet: 10.96.0.0/12}")
				f.managers.err = forbidden
			}),
			network: "cluster", services: "10.96.0.0/12",
			reason: `no CIDR of pods found (podCIDRType cluster, network cluster); looked at kubeadm-config ("10.0.0.0" is no CIDR); managers (the controller's role does not allow to read it: permission denied); Nodes (none of 0 has spec.podCIDRs, as where the cloud's network gives pods their addresses). ` + byHand,
		},
		"kubeadm that is no YAML": {
			facts: testFacts(func(f *facts) {
				f.serviceCIDRs = found("ServiceCIDRs", []string{"10.96.0.0/12"})
				f.kubeadm = found("kubeadm-config", "{")
				f.nodes = found("Nodes", []node{{name: "a", podCIDRs: []string{"10.4.0.0/24"}}})
			}),
			network: "cluster", pods: "10.4.0.0/24", services: "10.96.0.0/12",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := discover(tt.facts)
			if got.network != tt.network || strings.Join(textsOfPrefixes(got.pods), " ") != tt.pods || strings.Join(textsOfPrefixes(got.services), " ") != tt.services {
				t.Errorf("network %s, pods %v, Services %v; want %s, %s, %s", got.network, got.pods, got.services, tt.network, tt.pods, tt.services)
			}
			if diff := cmp.Diff(tt.reason, got.reason); diff != "" {
				t.Errorf("reason (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWantsNodes: nodes are asked for only where the others say too little.
func TestWantsNodes(t *testing.T) {
	t.Parallel()
	notAsked := func(change func(*facts)) facts {
		return testFacts(func(f *facts) { f.nodes.err = errNotAsked; change(f) })
	}
	for name, tt := range map[string]struct {
		facts facts
		want  bool
	}{
		"kubeadm says all":      {notAsked(func(f *facts) { f.kubeadm = found("kubeadm-config", kubeadmConfiguration) }), false},
		"Services are missing":  {notAsked(func(f *facts) { f.kubeadm = found("kubeadm-config", "networking: {podSubnet: 10.0.0.0/16}") }), true},
		"nothing else is there": {notAsked(func(*facts) {}), true},
		"calico and ServiceCIDR": {notAsked(func(f *facts) {
			f.calico = found("IPPools", []calicoPool{{cidr: "10.0.0.0/16"}})
			f.serviceCIDRs = found("", []string{"10.1.0.0/16"})
		}), false},
	} {
		if got := discover(tt.facts).wantsNodes; got != tt.want {
			t.Errorf("%s: wants nodes %v, want %v", name, got, tt.want)
		}
	}
}

func TestFlagValues(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"joined":             {[]string{"--cluster-cidr=10.0.0.0/8"}, []string{"10.0.0.0/8"}},
		"apart":              {[]string{"--v", "2", "--cluster-cidr", "10.0.0.0/8,fd00::/64"}, []string{"10.0.0.0/8", "fd00::/64"}},
		"one dash":           {[]string{"-cluster-cidr=10.0.0.0/8"}, []string{"10.0.0.0/8"}},
		"several times":      {[]string{"--cluster-cidr=10.0.0.0/8", "--cluster-cidr=fd00::/64"}, []string{"10.0.0.0/8", "fd00::/64"}},
		"of a shell":         {[]string{"/bin/sh", "-c", "exec kcm --cluster-cidr=\"10.0.0.0/8\" \\\n --v=2 1>>/var/log/kcm.log"}, []string{"10.0.0.0/8"}},
		"without value":      {[]string{"--cluster-cidr", "--v=2"}, nil},
		"at the end":         {[]string{"--cluster-cidr"}, nil},
		"begins another":     {[]string{"--cluster-cidr-x=10.0.0.0/8"}, nil},
		"is another's value": {[]string{"--name=--cluster-cidr"}, nil},
	} {
		if diff := cmp.Diff(tt.want, flagValues(tt.args, "cluster-cidr")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNetworkOfCNI(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, tt := range map[string]struct {
		files fstest.MapFS
		want  string
		err   string
	}{
		"calico below multus": {fstest.MapFS{
			"00-multus.conf":     file(`{"type":"multus-shim"}`),
			"10-calico.conflist": file(`{"name":"k8s-pod-network","plugins":[{"type":"calico"},{"type":"portmap"}]}`),
			"calico-kubeconfig":  file(`x`),
		}, "calico", ""},
		"cilium":  {fstest.MapFS{"05-cilium.conflist": file(`{"plugins":[{"type":"cilium-cni"}]}`)}, "cilium", ""},
		"flannel": {fstest.MapFS{"10-flannel.conflist": file(`{"plugins":[{"type":"flannel"}]}`)}, "flannel", ""},
		"bare":    {fstest.MapFS{"10-bridge.conf": file(`{"type":"bridge"}`)}, "bridge", ""},
		"none":    {fstest.MapFS{"README": file(`x`)}, "", "no CNI configuration of a network: file does not exist"},
		"no JSON": {fstest.MapFS{"10-x.conf": file(`{`)}, "", "10-x.conf: no CNI configuration: unexpected end of JSON input"},
		"no type": {fstest.MapFS{"10-x.conf": file(`{}`)}, "", "10-x.conf: no CNI configuration: no plugin has a type: invalid argument"},
	} {
		got, err := networkOfCNI(tt.files)
		if got != tt.want || tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, tt.want, tt.err)
		}
	}
}

// FuzzDiscover: whatever clusters say, what is found is merged and in order,
// and without a reason there is something for both.
func FuzzDiscover(f *testing.F) {
	f.Add(kubeadmConfiguration, "--cluster-cidr=10.0.0.0/8", `["server","--service-cidr","10.0.0.0/8"]`, "10.0.1.0/24", "multi-pool")
	f.Add("", "", "[]", "fd00::/64", "kubernetes")
	f.Fuzz(func(t *testing.T, kubeadm, arg, annotation, cidr, mode string) {
		args, err := parseNodeArgs(annotation)
		if err != nil {
			args = nil
		}
		for _, kind := range []string{"auto", "cluster", "calico", "cilium", "none"} {
			got := discover(testFacts(func(f *facts) {
				f.podCIDRType = kind
				f.kubeadm = found("kubeadm-config", kubeadm)
				f.managers = found("managers", []program{{"kcm", []string{arg}}})
				f.nodes = found("Nodes", []node{{"n", []string{cidr}, args}})
				f.cilium = found("cilium-config", map[string]string{"ipam": mode, "cluster-pool-ipv4-cidr": cidr})
			}))
			if got.reason == "" && (len(got.services) == 0 || len(got.pods) == 0 && kind != "none") {
				t.Fatalf("%s: ready with pods %v and Services %v", kind, got.pods, got.services)
			}
			for _, list := range [][]string{textsOfPrefixes(got.pods), textsOfPrefixes(got.services)} {
				var again search
				again.add("itself", list)
				if diff := cmp.Diff(list, textsOfPrefixes(again.prefixes())); diff != "" {
					t.Fatalf("%s: not merged:\n%s", kind, diff)
				}
			}
		}
	})
}

// FuzzFlagValues: a value that is found is found again in the plain form.
func FuzzFlagValues(f *testing.F) {
	f.Add("kcm", "--cluster-cidr", "10.0.0.0/8,fd00::/64")
	f.Add("sh -c 'kcm --cluster-cidr=10.0.0.0/8'", "-cluster-cidr=", "--")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		values := flagValues([]string{a, b, c}, "cluster-cidr")
		if len(values) == 0 {
			return
		}
		list := strings.Join(values, ",")
		for _, plain := range [][]string{{"--cluster-cidr=" + list}, {"kcm", "--v=2", "-cluster-cidr=" + list}} {
			if diff := cmp.Diff(values, flagValues(plain, "cluster-cidr")); diff != "" {
				t.Fatalf("of %q (-want +got):\n%s", plain, diff)
			}
		}
	})
}

// FuzzParseCNIType: a type that is found is found again as the only one.
func FuzzParseCNIType(f *testing.F) {
	f.Add([]byte(`{"type":"bridge"}`))
	f.Add([]byte(`{"plugins":[{"type":"cilium-cni"},{"type":"portmap"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, err := parseCNIType(data)
		if (kind == "") != (err != nil) {
			t.Fatalf("%q, %v", kind, err)
		}
		if err != nil {
			return
		}
		text, err := json.Marshal(map[string]any{"plugins": []any{map[string]any{"type": kind}}})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseCNIType(text); again != kind || err != nil {
			t.Fatalf("%q becomes %q, %v", kind, again, err)
		}
	})
}
