package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	sriovv1 "railhead/api/sriovnetwork/v1"
	"railhead/internal/golden"
)

// TestWrong holds what is said of documents with all that can be wrong with how
// they are written. Each must be found at the line that it is on.
func TestWrong(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata/wrong/*.yaml", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, strings.TrimSuffix(file, ".yaml")+".txt", said(Documents(stream)))
		})
	}
}

// said returns what is said of documents, a line each.
func said(docs []Document) string {
	var b strings.Builder
	for _, d := range docs {
		o, errs, err := d.Decode()
		name := ""
		if o != nil {
			name = " " + o.GetName()
		}
		fmt.Fprintf(&b, "--- line %d%s\n", d.Line, name)
		if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
		}
		for _, e := range errs {
			fmt.Fprintf(&b, "%d: %v\n", d.LineOf(e.Field), e)
		}
	}
	return b.String()
}

// TestDecode decodes one object of every kind, in every way that values are
// written.
func TestDecode(t *testing.T) {
	t.Parallel()
	const group = "apiVersion: spiderpool.spidernet.io/v2beta1\n"
	meta := func(version, kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: version, Kind: kind}
	}
	named := metav1.ObjectMeta{Name: "a"}
	tests := []struct {
		name, doc string
		want      Object
	}{
		{
			"pool", group + `
kind: SpiderIPPool
metadata: {name: a, creationTimestamp: null, someday: {new: 1}}
spec: {subnet: 10.0.0.0/24, ips: [10.0.0.1], gateway: ~, default: yes, disable: Off, vlan: 0x10,
  podAffinity: {matchLabels: {a: b}}}
status: {allocatedIPCount: 1e2, newer: true}
`,
			&v2beta1.SpiderIPPool{
				TypeMeta: meta("spiderpool.spidernet.io/v2beta1", "SpiderIPPool"), ObjectMeta: named,
				Spec: v2beta1.IPPoolSpec{
					Subnet: "10.0.0.0/24", IPs: []string{"10.0.0.1"}, Default: new(true), Disable: new(false), VLAN: new(int64(16)),
					PodAffinity: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
				},
				Status: v2beta1.IPPoolStatus{AllocatedIPCount: new(int64(100))},
			},
		},
		{
			"pool of JSON", `{"apiVersion":"spiderpool.spidernet.io/v2beta1","kind":"SpiderIPPool","metadata":{"name":"a"},
			"spec":{"subnet":"10.0.0.0\/24","ipVersion":4.0,"routes":[{"dst":"\ud83d\ude00","gw":"b"}],"ips":null}}`,
			&v2beta1.SpiderIPPool{
				TypeMeta: meta("spiderpool.spidernet.io/v2beta1", "SpiderIPPool"), ObjectMeta: named,
				Spec: v2beta1.IPPoolSpec{Subnet: "10.0.0.0/24", IPVersion: new(int64(4)), Routes: []v2beta1.Route{{Dst: "😀", Gw: "b"}}},
			},
		},
		{
			"subnet in braces", `{apiVersion: spiderpool.spidernet.io/v2beta1, kind: SpiderSubnet, spec: {subnet: "fd00::/64"}}`,
			&v2beta1.SpiderSubnet{
				TypeMeta: meta("spiderpool.spidernet.io/v2beta1", "SpiderSubnet"),
				Spec:     v2beta1.SubnetSpec{Subnet: "fd00::/64"},
			},
		},
		{
			"reserved", group + "kind: SpiderReservedIP\r\nspec:\r\n  ips:\r\n  - 10.0.0.1\r\n",
			&v2beta1.SpiderReservedIP{
				TypeMeta: meta("spiderpool.spidernet.io/v2beta1", "SpiderReservedIP"),
				Spec:     v2beta1.ReservedIPSpec{IPs: []string{"10.0.0.1"}},
			},
		},
		{
			"endpoint", group + "kind: SpiderEndpoint\nstatus: {current: {uid: u, node: w1, ips: [{interface: net1, vlan: 7}]}}",
			&v2beta1.SpiderEndpoint{
				TypeMeta: meta("spiderpool.spidernet.io/v2beta1", "SpiderEndpoint"),
				Status: v2beta1.EndpointStatus{Current: v2beta1.EndpointAllocation{
					UID: "u", Node: "w1", IPs: []v2beta1.EndpointInterface{{Interface: "net1", VLAN: new(int64(7))}},
				}},
			},
		},
		{
			"coordinator with anchors", group + `
kind: SpiderCoordinator
metadata: &m {name: a}
spec:
  <<: {mode: auto, podRPFilter: 1}
  mode: overlay
  podRPFilter: -1
  hijackCIDR: &c [10.0.0.0/8]
status: {overlayPodCIDR: *c}
`,
			&v2beta1.SpiderCoordinator{
				TypeMeta: meta("spiderpool.spidernet.io/v2beta1", "SpiderCoordinator"), ObjectMeta: named,
				Spec:   v2beta1.CoordinatorSpec{Mode: new("overlay"), PodRPFilter: new(-1), HijackCIDR: []string{"10.0.0.0/8"}},
				Status: v2beta1.CoordinatorStatus{OverlayPodCIDR: []string{"10.0.0.0/8"}},
			},
		},
		{
			"network", group + "kind: SpiderMultusConfig\nspec: {cniType: vlan, vlan: {master: [e], mtu: 9000, vlanMode: auto, bond: {name: b, mode: 4}}}",
			&v2beta1.SpiderMultusConfig{
				TypeMeta: meta("spiderpool.spidernet.io/v2beta1", "SpiderMultusConfig"),
				Spec: v2beta1.MultusConfigSpec{CNIType: new("vlan"), Vlan: &v2beta1.VlanSpec{
					Parent:   v2beta1.Parent{Master: []string{"e"}, MTU: new(int32(9000)), Bond: &v2beta1.Bond{Name: "b", Mode: 4}},
					VLANMode: new("auto"),
				}},
			},
		},
		{
			"attachment", "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nspec:\n  config: |\n    {\"a\":\n    ---\n    1}\n",
			&cniv1.NetworkAttachmentDefinition{
				TypeMeta: meta("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition"),
				Spec:     cniv1.NetworkAttachmentDefinitionSpec{Config: "{\"a\":\n---\n1}\n"},
			},
		},
		{
			"policy", `
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: {name: a}
spec: {resourceName: r, nodeSelector: {a: ""}, numVfs: 12, nicSelector: {deviceID: "1017", rootDevices: [0000:af:00.0], vendor: 15b3}}
`,
			&sriovv1.SriovNetworkNodePolicy{
				TypeMeta: meta("sriovnetwork.openshift.io/v1", "SriovNetworkNodePolicy"), ObjectMeta: named,
				Spec: sriovv1.NodePolicySpec{
					ResourceName: "r", NodeSelector: map[string]string{"a": ""}, NumVFs: 12,
					NICSelector: sriovv1.NICSelector{DeviceID: new("1017"), RootDevices: []string{"0000:af:00.0"}, Vendor: new("15b3")},
				},
			},
		},
		{
			"ledger", "apiVersion: railhead.io/v1alpha1\nkind: PoolLedger\nspec: {pool: p, runs: [{addresses: a, node: w1}]}",
			&v1alpha1.PoolLedger{
				TypeMeta: meta("railhead.io/v1alpha1", "PoolLedger"),
				Spec:     v1alpha1.PoolLedgerSpec{Pool: "p", Runs: []v1alpha1.Run{{Addresses: "a", Node: "w1"}}},
			},
		},
		{
			"lease", "apiVersion: railhead.io/v1alpha1\nkind: AddressLease\nspec: {nodeUID: u}",
			&v1alpha1.AddressLease{TypeMeta: meta("railhead.io/v1alpha1", "AddressLease"), Spec: v1alpha1.AddressLeaseSpec{NodeUID: "u"}},
		},
	}
	seen := map[string]bool{}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, errs, err := Decode([]byte(test.doc))
			if err != nil || len(errs) > 0 {
				t.Fatal(err, errs)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
		seen[test.want.GetObjectKind().GroupVersionKind().Kind] = true
	}
	for _, k := range kinds {
		if !seen[k.kind] {
			t.Errorf("no test decodes a %s", k.kind)
		}
	}
}

// TestDecodeNone holds which errors documents without an object have.
func TestDecodeNone(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]error{
		"":                                      ErrEmpty,
		"# only\n---\n\n":                       ErrEmpty,
		"kind: Pod\napiVersion: v1":             ErrUnknownKind,
		"kind: List\napiVersion: v1\nitems: []": ErrEmpty,
	} {
		if o, errs, err := Decode([]byte(doc)); !errors.Is(err, want) || o != nil || errs != nil {
			t.Errorf("%q: got %v, %v, %v, want %v", doc, o, errs, err, want)
		}
	}
	if _, _, err := Decode([]byte("a: 1\n---\na: 2\n")); err == nil {
		t.Error("two documents were taken as one")
	}
}

// TestDecodeRest holds that one wrong field hides none of the others.
func TestDecodeRest(t *testing.T) {
	t.Parallel()
	o, errs, err := Decode([]byte(`
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: a, labels: {app: 1, b: c}}
spec: {subnet: 10.0.0.0/24, ips: [1, 10.0.0.2], gateway: [], routes: [{dst: 1, gw: g}]}
`))
	if err != nil || len(errs) != 4 {
		t.Fatal(err, errs)
	}
	want := &v2beta1.SpiderIPPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: "spiderpool.spidernet.io/v2beta1", Kind: "SpiderIPPool"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "", "b": "c"}},
		Spec: v2beta1.IPPoolSpec{
			Subnet: "10.0.0.0/24", IPs: []string{"", "10.0.0.2"}, Routes: []v2beta1.Route{{Gw: "g"}},
		},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
