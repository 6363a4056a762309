package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/utils"
	"github.com/containernetworking/cni/pkg/version"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	cniv1 "railhead/api/cni/v1"
)

// coordinatorPlugin is the type of the plugin that tunes a pod's routes.
const coordinatorPlugin = "coordinator"

// plugin is one CNI plugin's configuration.
type plugin struct {
	kind   string
	config json.RawMessage // compact, keys in the order written
}

// reviewNAD says what the rules say of a NetworkAttachmentDefinition, whoever
// made it, after old, which is nil on create.
func reviewNAD(obj, old *cniv1.NetworkAttachmentDefinition) Review {
	var r Review
	if obj.DeletionTimestamp != nil || old != nil && obj.Spec == old.Spec {
		return r
	}
	name := field.NewPath("metadata", "name")
	if obj.Name != "" && len(validation.IsDNS1123Subdomain(obj.Name)) > 0 {
		r.refuse(name, obj.Name, "want the name of a NetworkAttachmentDefinition: %s", subdomain)
	} else if detail := unselectable(obj.Name); detail != "" {
		r.warn(name, "%s", detail)
	}
	if strings.TrimSpace(obj.Spec.Config) == "" {
		return r
	}
	at := field.NewPath("spec", "config")
	unknown, err := checkConfig(obj.Spec.Config)
	if err != nil {
		r.refuse(at, obj.Spec.Config, "%s", err)
	}
	if unknown != "" {
		r.warn(at, "cniVersion %q is not known here: known are %s", unknown, strings.Join(version.All.SupportedVersions(), ", "))
	}
	return r
}

// readCustom reads a configuration that users wrote as a whole.
func (d *draft) readCustom(text string, at *field.Path) {
	if strings.TrimSpace(text) == "" {
		return
	}
	unknown, err := checkConfig(text)
	if err != nil {
		d.fail(field.Invalid(at, text, err.Error()))
		return
	}
	if unknown != "" {
		d.warn(at, "cniVersion %q is not known here: known are %s", unknown, strings.Join(version.All.SupportedVersions(), ", "))
	}
	d.Custom = json.RawMessage(text)
}

// checkConfig wants a CNI configuration, or a list of plugins. A name may be
// absent: the NetworkAttachmentDefinition's is put in. It returns a version
// that is well-formed and newer than what is known.
func checkConfig(text string) (unknownVersion string, err error) {
	fields, err := object(text)
	if err != nil {
		return "", err
	}
	var head struct {
		CNIVersion string `json:"cniVersion"`
		Name       string `json:"name"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return "", fmt.Errorf(`cniVersion and name must be strings: %w`, err)
	}
	if _, named := fields["name"]; named && utils.ValidateNetworkName(head.Name) != nil {
		return "", fmt.Errorf(`name %q is no name of a CNI network: want letters, digits, "_", "." and "-", with a letter or digit first`, head.Name)
	}
	if err := checkPlugins(text, fields); err != nil {
		return "", err
	}
	if head.CNIVersion == "" || slices.Contains(version.All.SupportedVersions(), head.CNIVersion) {
		return "", nil
	}
	if _, _, _, err := version.ParseVersion(head.CNIVersion); err != nil {
		return "", fmt.Errorf(`cniVersion %q is no version: want one such as "1.0.0"`, head.CNIVersion)
	}
	return head.CNIVersion, nil
}

// checkPlugins wants one plugin, or a list of them that libcni loads.
func checkPlugins(text string, fields map[string]json.RawMessage) error {
	list, ok := fields["plugins"]
	if !ok {
		_, err := parsePlugin(text)
		return err
	}
	var plugins []json.RawMessage
	if err := json.Unmarshal(list, &plugins); err != nil || len(plugins) == 0 {
		return errors.New(`plugins must be a list of one or more CNI plugins, such as [{"type": "macvlan"}]`)
	}
	for i, p := range plugins {
		if _, err := parsePlugin(string(p)); err != nil {
			return fmt.Errorf("plugins[%d]: %w", i, err)
		}
	}
	if _, named := fields["name"]; !named {
		fields["name"] = json.RawMessage(`"name"`)
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("is no JSON: %w", err)
	}
	if _, err := libcni.NetworkConfFromBytes(whole); err != nil {
		return fmt.Errorf("is no list of CNI plugins: %w", err)
	}
	return nil
}

// parsePlugin wants the configuration of one CNI plugin.
func parsePlugin(text string) (plugin, error) {
	fields, err := object(text)
	if err != nil {
		return plugin{}, err
	}
	kind, typed := fields["type"]
	var p plugin
	switch {
	case !typed && fields["plugins"] != nil:
		return plugin{}, errors.New(`is a list of plugins: want one plugin, a JSON object with a type`)
	case !typed || json.Unmarshal(kind, &p.kind) != nil || p.kind == "":
		return plugin{}, errors.New(`has no type: want a JSON object such as {"type": "tuning"}`)
	case strings.ContainsAny(p.kind, `/\`) || strings.TrimSpace(p.kind) != p.kind:
		return plugin{}, fmt.Errorf("type %q is no name of a CNI plugin: want the file's name alone", p.kind)
	}
	if _, err := libcni.NetworkPluginConfFromBytes([]byte(text)); err != nil {
		return plugin{}, fmt.Errorf("is no configuration of a CNI plugin: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return plugin{}, fmt.Errorf("is no JSON: %w", err)
	}
	p.config = compact.Bytes()
	return p, nil
}

// object wants a JSON object.
func object(text string) (fields map[string]json.RawMessage, err error) {
	err = json.Unmarshal([]byte(text), &fields)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other || err == nil && fields == nil {
		return nil, errors.New(`is JSON and no object: want one such as {"type": "macvlan"}`)
	}
	if err != nil {
		return nil, fmt.Errorf(`is no JSON: want an object such as {"type": "macvlan"} (%w)`, err)
	}
	return fields, nil
}
