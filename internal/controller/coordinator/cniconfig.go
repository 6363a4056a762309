package coordinator

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"railhead/api/spiderpool/v2beta1"
)

// networkOfCNI says which network the first CNI configuration of a directory
// is of: calico, cilium, or the type of another plugin. Those of meta plugins,
// which call it, are passed over.
func networkOfCNI(dir fs.FS) (string, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return "", err
	}
	for _, entry := range entries { // in order of their names, as runtimes take them
		if !slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(entry.Name())) {
			continue
		}
		data, err := fs.ReadFile(dir, entry.Name())
		if err != nil {
			return "", err
		}
		kind, err := parseCNIType(data)
		if err != nil {
			return "", fmt.Errorf("%s: %w", entry.Name(), err)
		}
		if !strings.HasPrefix(kind, "multus") && kind != "railhead" {
			return kind, nil
		}
	}
	return "", fmt.Errorf("no CNI configuration of a network: %w", fs.ErrNotExist)
}

// parseCNIType is the type of a configuration's main plugin.
func parseCNIType(data []byte) (string, error) {
	type plugin struct {
		Type string `json:"type"`
	}
	var config struct {
		plugin

		Plugins []plugin `json:"plugins"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("no CNI configuration: %w", err)
	}
	kind := config.Type
	if len(config.Plugins) > 0 {
		kind = config.Plugins[0].Type
	}
	switch kind {
	case "":
		return "", fmt.Errorf("no CNI configuration: no plugin has a type: %w", fs.ErrInvalid)
	case "cilium-cni":
		return v2beta1.PodCIDRCilium, nil
	}
	return kind, nil
}
