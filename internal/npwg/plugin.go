package npwg

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Capabilities that the agent gives of itself.
const (
	capabilityDeviceID       = "deviceID"
	capabilityDeviceInfoFile = "CNIDeviceInfoFile"
)

// Call is what one call of a chain has beyond its networks.
type Call struct {
	Kubelet        map[string]json.RawMessage // the runtime's runtimeConfig
	DeviceID       string                     // of the device to attach, or ""
	DeviceInfoFile string                     // path where a plugin leaves what it attached, or ""
	// PrevResult is what the plugin before answered, in the chain's CNI version; nil for the first.
	PrevResult json.RawMessage
}

// PluginConfig is what a chain's i-th plugin is given, as JSON with sorted keys.
// Values that stay are kept as written. Plugins that the agent is itself read the
// same.
func (c Chain) PluginConfig(i int, s Selected, call Call) ([]byte, error) {
	p := c.Plugins[i]
	config := map[string]json.RawMessage{}
	if err := json.Unmarshal(p.Config, &config); err != nil {
		return nil, fmt.Errorf("%s: plugin %s: %w", c.From, p.Type, err)
	}
	set := func(key string, value any) error {
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("%s: plugin %s: %s: %w", c.From, p.Type, key, err)
		}
		config[key] = raw
		return nil
	}
	args, err := mergeArgs(config["args"], s.CNIArgs)
	if err != nil {
		return nil, fmt.Errorf("%s: plugin %s: %w", c.From, p.Type, err)
	}
	for _, put := range []struct {
		key   string
		value any
		is    bool
	}{
		{"name", c.Name, true},
		{"cniVersion", c.CNIVersion, c.CNIVersion != ""},
		{"args", args, args != nil},
		{"deviceID", call.DeviceID, call.DeviceID != ""},
		{"pciBusID", call.DeviceID, call.DeviceID != ""},
		{"prevResult", call.PrevResult, call.PrevResult != nil},
	} {
		if !put.is {
			continue
		}
		if err := set(put.key, put.value); err != nil {
			return nil, err
		}
	}
	if runtime := p.runtimeConfig(s, call); len(runtime) > 0 {
		if err := set("runtimeConfig", runtime); err != nil {
			return nil, err
		}
	}
	whole, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("%s: plugin %s: %w", c.From, p.Type, err)
	}
	return whole, nil
}

// runtimeConfig is what of a call's capabilities the plugin takes.
func (p Plugin) runtimeConfig(s Selected, call Call) map[string]any {
	taken := map[string]any{}
	for capability, value := range requested(s, call.Kubelet) {
		if p.Can(capability) {
			taken[capability] = value
		}
	}
	if call.DeviceID != "" && p.Can(capabilityDeviceID) {
		taken[capabilityDeviceID] = call.DeviceID
	}
	if call.DeviceInfoFile != "" && p.Can(capabilityDeviceInfoFile) {
		taken[capabilityDeviceInfoFile] = call.DeviceInfoFile
	}
	return taken
}

// mergeArgs puts the pod's arguments into args.cni; nil where the pod has none.
func mergeArgs(written json.RawMessage, pod map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if len(pod) == 0 {
		return nil, nil
	}
	args, err := object("args", written)
	if err != nil {
		return nil, err
	}
	cni, err := object("args.cni", args["cni"])
	if err != nil {
		return nil, err
	}
	maps.Copy(cni, pod)
	if args["cni"], err = json.Marshal(cni); err != nil {
		return nil, fmt.Errorf("args.cni: %w", err)
	}
	return args, nil
}

// object is a JSON object by its keys, an empty one where there is none.
func object(key string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if raw == nil {
		return fields, nil
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("%s: %s: the pod's cni-args go into it, want a JSON object", key, raw)
	}
	if fields == nil { // it was null
		fields = map[string]json.RawMessage{}
	}
	return fields, nil
}
