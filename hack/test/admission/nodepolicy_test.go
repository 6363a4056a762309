package admission

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// TestNodePolicy holds what the API server takes of a SriovNetworkNodePolicy, of
// which the definition has all rules.
func TestNodePolicy(t *testing.T) {
	t.Parallel()
	const nic = "{resourceName: r, nodeSelector: {}, numVfs: 8, nicSelector: {vendor: 15b3}"
	tests := []struct{ name, spec, want string }{
		{
			"as printed in spec/002",
			`{nodeSelector: {kubernetes.io/os: "linux"}, resourceName: mellanoxrdma, priority: 99, numVfs: 12,
			nicSelector: {deviceID: "1017", rootDevices: [0000:af:00.0], vendor: "15b3"}, deviceType: netdevice, isRdma: true}`, "",
		},
		{"everything", nic + `, mtu: 9000, needVhostNet: true, excludeTopology: true, linkType: ETH, eSwitchMode: switchdev, vdpaType: vhost,
			bridge: {ovs: {bridge: {datapathType: netdev, failMode: secure}, uplink: {interface: {type: dpdk, mtuRequest: 9000}}}}}`, ""},
		{"user space", nic + ", deviceType: vfio-pci}", ""},
		{"no VFs said", "{resourceName: r, nodeSelector: {}, nicSelector: {vendor: 15b3}}", "spec.numVfs: Required value"},
		{"empty selector", "{resourceName: r, nodeSelector: {}, numVfs: 8, nicSelector: {}}", "spec.nicSelector: Invalid value: selects no NIC: want at least one of"},
		{"empty lists", "{resourceName: r, nodeSelector: {}, numVfs: 8, nicSelector: {pfNames: [], rootDevices: []}}", "spec.nicSelector: Invalid value: selects no NIC"},
		{"vendor", "{resourceName: r, nodeSelector: {}, numVfs: 8, nicSelector: {vendor: mellanox}}", "spec.nicSelector.vendor: Invalid value"},
		{"resource with prefix", strings.Replace(nic, "r,", "spidernet.io/r,", 1) + "}", "spec.resourceName: Invalid value"},
		{"priority", nic + ", priority: 100}", "spec.priority: Invalid value: 100"},
		{"RDMA in user space", nic + ", deviceType: vfio-pci, isRdma: true}", "spec.isRdma: Invalid value: vfio-pci takes the VF from the driver that RDMA needs"},
		{"switchdev on InfiniBand", nic + ", linkType: IB, eSwitchMode: switchdev}", "spec.eSwitchMode: Invalid value: switchdev is for Ethernet links"},
		{"vDPA without switchdev", nic + ", vdpaType: virtio}", "spec.vdpaType: Invalid value: vDPA needs eSwitchMode switchdev"},
		{"bridge of others' VFs", nic + ", eSwitchMode: switchdev, externallyManaged: true, bridge: {ovs: {}}}", "spec.bridge: Invalid value: a bridge needs"},
	}
	admit := admission(t, "sriovnetwork.openshift.io_sriovnetworknodepolicies.yaml")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			errs := admit(t, test.spec)
			switch {
			case test.want == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs)
			case test.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want)):
				t.Errorf("got %v, want %q alone", errs, test.want)
			}
		})
	}
}

// crds is where the definitions are that the chart installs.
const crds = "../../../charts/railhead/crds/"

// admission returns a function that does to a new object, given as the YAML of its
// spec, what the API server does by a definition: defaults, schema, CEL rules.
func admission(t *testing.T, definition string) func(t *testing.T, spec string) field.ErrorList {
	t.Helper()
	data, err := os.ReadFile(crds + definition)
	if err != nil {
		t.Fatal(err)
	}
	var crd crdv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		t.Fatalf("%s: %v", definition, err)
	}
	var props apiextensions.JSONSchemaProps
	if err := crdv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return func(t *testing.T, spec string) field.ErrorList {
		t.Helper()
		var object map[string]any
		if err := yaml.Unmarshal([]byte("spec: "+spec), &object); err != nil {
			t.Fatal(err)
		}
		defaulting.Default(object, structural)
		if errs := validation.ValidateCustomResource(nil, object, validator); len(errs) > 0 {
			return errs
		}
		errs, _ := rules.Validate(t.Context(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
		return errs
	}
}
