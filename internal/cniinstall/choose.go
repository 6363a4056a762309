package cniinstall

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/containernetworking/cni/libcni"
)

// ClusterNetwork is the cluster's own network as our configuration names it: its
// file, in the directory that ours is in, and its name.
type ClusterNetwork struct {
	File string `json:"file"`
	Name string `json:"name"`
}

// Load reads the network from the directory of configurations, with the plugins
// that other files add to it. Errors name the file.
func (c ClusterNetwork) Load(confDir string) (*libcni.NetworkConfigList, error) {
	list, err := load(filepath.Join(confDir, c.File))
	if err != nil {
		return nil, err
	}
	if list.Name != c.Name {
		return nil, fmt.Errorf("%s: name: %q, want %q; the file has changed", filepath.Join(confDir, c.File), list.Name, c.Name)
	}
	return list, nil
}

// load reads a file as runtimes do.
func load(path string) (*libcni.NetworkConfigList, error) {
	var list *libcni.NetworkConfigList
	var err error
	if filepath.Ext(path) == ".conflist" {
		list, err = libcni.NetworkConfFromFile(path)
	} else {
		list, err = loadSingle(path)
	}
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", path, err)
	}
	if list.Name == "" {
		return nil, fmt.Errorf("network %s: name: missing", path)
	}
	return list, nil
}

// loadSingle reads a file of one plugin, which runtimes still take.
func loadSingle(path string) (*libcni.NetworkConfigList, error) {
	conf, err := libcni.ConfFromFile(path) //nolint:staticcheck // deprecated, and there on nodes
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(conf) //nolint:staticcheck // as above
}

// network is a file of the directory that can be read.
type network struct {
	file string
	list *libcni.NetworkConfigList
}

func (n network) has(types ...string) bool {
	return slices.ContainsFunc(n.list.Plugins, func(p *libcni.PluginConfig) bool { return slices.Contains(types, p.Network.Type) })
}

// multus are the types of the plugins that Multus brings.
func (n network) multus() bool { return n.has("multus", "multus-shim") }

// loopback says whether a network leads nowhere. Some distributions bring such a
// file, and it is the first one until the cluster's own network comes.
func (n network) loopback() bool {
	return !slices.ContainsFunc(n.list.Plugins, func(p *libcni.PluginConfig) bool { return p.Network.Type != "loopback" })
}

// callsUs says whether a network of Multus has ours as the cluster's, which is
// what its configuration becomes where it starts on a node that has ours.
func (n network) callsUs() bool {
	var named struct {
		ClusterNetwork string `json:"clusterNetwork"`
		Delegates      []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"delegates"`
	}
	for _, p := range n.list.Plugins {
		if json.Unmarshal(p.Bytes, &named) != nil {
			continue
		}
		if named.ClusterNetwork == Network || filepath.Base(named.ClusterNetwork) == File {
			return true
		}
		for _, d := range named.Delegates {
			if d.Name == Network || d.Type == Program {
				return true
			}
		}
	}
	return false
}

// choice is what the directory of configurations means for us.
type choice struct {
	cluster  *network // nil: none yet
	multus   *network // in front of us; nil: none
	problems []string
}

// choose looks at all files in the order of runtimes. The cluster's network is
// the first that can be read, leads somewhere, and is neither ours nor Multus's.
func (i *Installer) choose() (choice, error) {
	entries, err := i.disk.list(i.config.ConfDir)
	if err != nil {
		return choice{}, failed("list", i.config.ConfDir, err)
	}
	var c choice
	for _, e := range entries { // sorted
		path := filepath.Join(i.config.ConfDir, e.Name())
		if e.IsDir() || e.Name() == File || !slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(path)) {
			continue
		}
		list, err := load(path)
		if err != nil {
			c.problems = append(c.problems, fmt.Sprintf("%v; mend or remove it: some runtimes stop at it", err))
			continue
		}
		c.take(i.config.ConfDir, network{e.Name(), list})
	}
	if i.disk.exists(filepath.Join(i.config.ConfDir, File+".cilium_bak")) {
		c.problems = append(c.problems, fmt.Sprintf("%s: Cilium renames ours to .cilium_bak; set its cni.exclusive to false",
			filepath.Join(i.config.ConfDir, File)))
	}
	return c, nil
}

// take puts one network in its place.
func (c *choice) take(dir string, n network) {
	path := filepath.Join(dir, n.file)
	switch {
	case n.multus():
		if c.cluster == nil && c.multus == nil {
			c.multus = &n
		}
		return
	case n.has(Program):
		c.problems = append(c.problems, fmt.Sprintf("%s: calls %s, so it is not taken for the cluster's own network; remove it or that plugin", path, Program))
		return
	case c.cluster == nil && !n.loopback():
		c.cluster = &n
	}
	if n.file < File && c.multus == nil {
		c.problems = append(c.problems, fmt.Sprintf("%s: comes before %s, so the runtime does not call Railhead; give it a name that comes after", path, File))
	}
}
