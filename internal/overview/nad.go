package overview

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/policy/nad"
)

// compare holds a NetworkAttachmentDefinition, nil if there is none, against
// what its SpiderMultusConfig says.
func (n *NAD) compare(c *policy.Catalog, obj *v2beta1.SpiderMultusConfig, have *cniv1.NetworkAttachmentDefinition) {
	if have == nil {
		n.State = NADMissing
		return
	}
	network, ok := c.Network(obj.Namespace, obj.Name)
	if !ok {
		return
	}
	want, err := nad.For(network)
	if err != nil {
		n.Why = err.Error()
		return
	}
	if differ := differences(want, have); len(differ) > 0 {
		n.State, n.Why = NADDiffers, strings.Join(differ, ", ")
		return
	}
	n.State = NADPresent
}

// differences names what differs. Annotations of others are theirs, and so is
// how a configuration is written.
func differences(want, have *cniv1.NetworkAttachmentDefinition) []string {
	var differ []string
	if !sameJSON(want.Spec.Config, have.Spec.Config) {
		differ = append(differ, "spec.config")
	}
	for _, key := range slices.Sorted(maps.Keys(want.Annotations)) {
		if have.Annotations[key] != want.Annotations[key] {
			differ = append(differ, "annotation "+key)
		}
	}
	return differ
}

func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// mainType is the type of a CNI configuration, of the first plugin where it has
// several; empty where there is none.
func mainType(config string) string {
	var conf struct {
		Type    string `json:"type"`
		Plugins []struct {
			Type string `json:"type"`
		} `json:"plugins"`
	}
	if json.Unmarshal([]byte(config), &conf) != nil {
		return ""
	}
	if len(conf.Plugins) > 0 {
		return conf.Plugins[0].Type
	}
	return conf.Type
}
