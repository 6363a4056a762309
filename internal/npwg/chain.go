package npwg

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/utils"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/policy/annotation"
)

// File is a CNI configuration on the node's disk.
type File struct {
	Path    string
	Content []byte
}

// Chain is the plugins of a network, in the order in which they add it.
type Chain struct {
	Name string // of the CNI network
	// CNIVersion is the configuration's, "" where it has none, which is 0.1.0 to plugins.
	CNIVersion   string
	DisableCheck bool
	DisableGC    bool
	Plugins      []Plugin // one or more
	Resource     string   // whose devices are attached, or ""
	From         string   // where the configuration stands, for messages
}

// Plugin is one plugin of a chain.
type Plugin struct {
	Type         string
	IPAM         string // type of its IPAM, or ""
	Native       bool   // the agent does its work
	Capabilities map[string]bool
	Config       json.RawMessage // as written
}

// types are those of the plugins, in order.
func (c Chain) types() []string {
	list := make([]string, len(c.Plugins))
	for i, p := range c.Plugins {
		list[i] = p.Type
	}
	return list
}

// ChainOf is the chain of a network: that of the NetworkAttachmentDefinition's
// spec.config; else that of the file whose configuration has its name, lists
// before single plugins, in the order of paths. nad is nil for the cluster's own
// default network, which is the only file.
func ChainOf(s Selected, nad *cniv1.NetworkAttachmentDefinition, files []File) (Chain, error) {
	switch {
	case nad == nil && s.Name == "" && len(files) == 1:
		return parseChain(string(files[0].Content), "", "file "+files[0].Path)
	case nad == nil && s.Name == "":
		return Chain{}, fmt.Errorf("the cluster's default network: %d CNI configurations, want the one of the cluster's own CNI", len(files))
	case nad == nil:
		return Chain{}, fmt.Errorf("%s: NetworkAttachmentDefinition %s is not there: want the name of one that is", s.At, s)
	}
	var (
		c   Chain
		err error
	)
	if strings.TrimSpace(nad.Spec.Config) != "" {
		c, err = parseChain(nad.Spec.Config, nad.Name, "spec.config of NetworkAttachmentDefinition "+s.String())
	} else {
		c, err = chainOnDisk(nad.Name, s, files)
	}
	if err != nil {
		return Chain{}, fmt.Errorf("%s: %w", s.At, err)
	}
	c.Resource = nad.Annotations[cniv1.AnnotationResourceName]
	return c, nil
}

// chainOnDisk looks for a configuration by its name.
func chainOnDisk(name string, s Selected, files []File) (Chain, error) {
	rank := func(f File) int {
		return slices.Index([]string{".conflist", ".conf", ".config", ".json"}, path.Ext(f.Path))
	}
	list := slices.DeleteFunc(slices.Clone(files), func(f File) bool { return rank(f) < 0 })
	slices.SortStableFunc(list, func(a, b File) int {
		return cmp.Or(cmp.Compare(min(rank(a), 1), min(rank(b), 1)), cmp.Compare(a.Path, b.Path))
	})
	var broken []string
	for _, f := range list {
		var head struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(f.Content, &head); err != nil {
			broken = append(broken, fmt.Sprintf("%s is no JSON: %v", f.Path, err))
		} else if head.Name == name {
			return parseChain(string(f.Content), name, "file "+f.Path)
		}
	}
	why := ""
	if len(broken) > 0 {
		why = " (" + strings.Join(broken, "; ") + ")"
	}
	return Chain{}, fmt.Errorf(`NetworkAttachmentDefinition %s has no spec.config: want one, or on the node a .conflist or .conf with "name": %q%s`, s, name, why)
}

// parseChain reads a configuration of one plugin or of a list. name is that of
// the network where the configuration has none, "" if it must have one.
func parseChain(text, name, from string) (Chain, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil || fields == nil {
		return Chain{}, fmt.Errorf(`%s: want a JSON object, such as {"type": "macvlan"} or {"plugins": […]}: %s`, from, annotation.JSONError(cmp.Or(err, errors.New("is null"))))
	}
	if _, named := fields["name"]; !named && name != "" {
		fields["name"], _ = json.Marshal(name) // a text always is JSON
	}
	raw := []json.RawMessage{json.RawMessage(text)}
	if list, is := fields["plugins"]; is {
		raw = nil
		if err := json.Unmarshal(list, &raw); err != nil || len(raw) == 0 {
			return Chain{}, fmt.Errorf(`%s: plugins: want a list of one or more CNI plugins, such as [{"type": "macvlan"}]`, from)
		}
	}
	plugins := make([]Plugin, len(raw))
	for i, r := range raw {
		var err error
		if plugins[i], err = parsePlugin(r); err != nil {
			return Chain{}, fmt.Errorf("%s: plugins[%d]: %w", from, i, err)
		}
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return Chain{}, fmt.Errorf("%s: %w", from, err)
	}
	list, err := libcni.NetworkConfFromBytes(whole)
	if err != nil {
		return Chain{}, fmt.Errorf("%s: is no CNI configuration: %w", from, err)
	}
	if utils.ValidateNetworkName(list.Name) != nil {
		return Chain{}, fmt.Errorf(`%s: name: %q is no name of a CNI network: want letters, digits, "_", "." and "-", with a letter or digit first`, from, list.Name)
	}
	return Chain{Name: list.Name, CNIVersion: list.CNIVersion, Plugins: plugins, DisableCheck: list.DisableCheck, DisableGC: list.DisableGC, From: from}, nil
}

func parsePlugin(raw json.RawMessage) (Plugin, error) {
	conf, err := libcni.NetworkPluginConfFromBytes(raw)
	if err != nil {
		return Plugin{}, fmt.Errorf(`want a CNI plugin, such as {"type": "macvlan"}: %s`, annotation.JSONError(err))
	}
	kind := conf.Network.Type
	if strings.ContainsAny(kind, `/\`) || strings.TrimSpace(kind) != kind {
		return Plugin{}, fmt.Errorf("type: %q is no name of a CNI plugin: want the file's name alone", kind)
	}
	if kind == ownPlugin {
		return Plugin{}, fmt.Errorf("type: %q would start itself again and again: want the plugin of a network", kind)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return Plugin{}, fmt.Errorf("is no JSON: %w", err)
	}
	return Plugin{
		Type: kind, IPAM: conf.Network.IPAM.Type, Native: isNative(kind),
		Capabilities: conf.Network.Capabilities, Config: compact.Bytes(),
	}, nil
}

// ownPlugin is the type in the configuration that the runtime reads.
const ownPlugin = "railhead-cni"
