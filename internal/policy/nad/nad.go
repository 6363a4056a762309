// Package nad makes the NetworkAttachmentDefinition of a network: the same
// content for the same network, byte by byte, so that what differs has changed.
// It reads and writes no API.
//
// Source: reference rules of Spiderpool 1.2; Kubernetes Network Custom Resource
// Definition De-facto Standard v1.3.
package nad

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// ovsResource begins the resource of the VFs that a bridge of Open vSwitch offloads to.
const ovsResource = "ovs-cni.network.kubevirt.io/"

// list is a CNI configuration, its plugins in the order in which they run.
type list struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Plugins    []any  `json:"plugins"`
}

// For is the NetworkAttachmentDefinition of n, without an owner. It fails only
// for what no review accepts.
func For(n policy.Network) (*cniv1.NetworkAttachmentDefinition, error) {
	config, err := configOf(n)
	if err != nil {
		return nil, fmt.Errorf("SpiderMultusConfig %s/%s: %w", n.Namespace, n.Name, err)
	}
	return &cniv1.NetworkAttachmentDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: cniv1.GroupVersion.String(), Kind: "NetworkAttachmentDefinition"},
		ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.NAD, Annotations: annotationsOf(n)},
		Spec:       cniv1.NetworkAttachmentDefinitionSpec{Config: config},
	}, nil
}

// annotationsOf are those of the SpiderMultusConfig, but for what kubectl keeps
// about that very object, and the resource whose devices are attached.
func annotationsOf(n policy.Network) map[string]string {
	annotations := map[string]string{}
	for key, value := range n.Annotations {
		if key != lastApplied {
			annotations[key] = value
		}
	}
	switch {
	case n.Type == v2beta1.CNISRIOV || n.Type == v2beta1.CNIIBSRIOV:
		annotations[cniv1.AnnotationResourceName] = n.Resource
	case n.OVS != nil && n.OVS.DeviceID != "":
		annotations[cniv1.AnnotationResourceName] = ovsResource + n.OVS.Bridge
	}
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// lastApplied is where kubectl keeps the manifest of an object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// configOf is the CNI configuration as JSON, "" if the node has it.
func configOf(n policy.Network) (string, error) {
	if n.Type == v2beta1.CNICustom {
		return string(n.Custom), nil
	}
	plugins, err := chain(n)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(list{n.CNIVersion, n.CNIName, plugins}); err != nil {
		return "", fmt.Errorf("encode its CNI configuration: %w", err)
	}
	return string(bytes.TrimSpace(text.Bytes())), nil
}
