package cniinstall

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	cniversion "github.com/containernetworking/cni/pkg/version"
)

const networkMode = 0o600

func (i *Installer) file() string { return filepath.Join(i.config.ConfDir, File) }

// installNetwork brings our configuration in line with the cluster's own network:
// there while that is there, and not where Multus is in front.
func (i *Installer) installNetwork(s *State) error {
	c, err := i.choose()
	if err != nil {
		return err
	}
	s.Problems = append(s.Problems, c.problems...)
	if c.cluster != nil {
		s.Cluster = ClusterNetwork{File: c.cluster.file, Name: c.cluster.list.Name}
	}
	if c.multus != nil {
		return i.below(s, c)
	}
	if c.cluster == nil {
		return i.wait(s)
	}
	s.Phase = Installed
	return i.writeNetwork(s, *c.cluster)
}

// below leaves Multus in front: who has it set it up on purpose, and it calls us
// for the networks that ask for us. Ours goes, unless Multus itself has taken it
// for the cluster's network: it would have none.
func (i *Installer) below(s *State, c choice) error {
	s.Phase = Below
	multus := filepath.Join(i.config.ConfDir, c.multus.file)
	if !c.multus.callsUs() {
		i.missingSince = time.Time{}
		return i.withdraw(s)
	}
	s.Problems = append(s.Problems, fmt.Sprintf("%s: has our network as the cluster's; name the cluster's own in it, or remove Multus, which Railhead replaces", multus))
	if c.cluster == nil {
		return i.wait(s)
	}
	return i.writeNetwork(s, *c.cluster)
}

// wait takes our configuration away once the cluster's network has been gone for
// a while. With it the node would look ready for pods, and have none started.
func (i *Installer) wait(s *State) error {
	if i.missingSince.IsZero() {
		i.missingSince = i.now()
	}
	if i.now().Sub(i.missingSince) < i.grace {
		return nil
	}
	return i.withdraw(s)
}

// withdraw removes our configuration, if there is one.
func (i *Installer) withdraw(s *State) error {
	if !i.disk.exists(i.file()) {
		return nil
	}
	return i.removeNetwork(s)
}

// writeNetwork writes our configuration, if it is not there or is another.
func (i *Installer) writeNetwork(s *State, cluster network) error {
	i.missingSince = time.Time{}
	data, err := render(cluster, i.config.Socket)
	if err != nil {
		return fmt.Errorf("network of %s: %w", filepath.Join(i.config.ConfDir, cluster.file), err)
	}
	if right, err := i.disk.holds(i.file(), data, networkMode); right && err == nil {
		return nil
	}
	if err := i.disk.write(i.file(), data, networkMode); err != nil {
		return failed("write", i.file(), err)
	}
	s.Changed = append(s.Changed, i.file())
	return nil
}

// removeNetwork removes our configuration, and what Cilium may have made of it.
func (i *Installer) removeNetwork(s *State) error {
	var errs []error
	for _, path := range []string{i.file(), i.file() + ".cilium_bak", temporaryOf(i.file())} {
		there := i.disk.exists(path)
		if err := i.disk.remove(path); err != nil {
			errs = append(errs, failed("remove", path, err))
		} else if there {
			s.Changed = append(s.Changed, path)
		}
	}
	return errors.Join(append(errs, i.disk.syncDir(i.config.ConfDir))...)
}

// spoken are the CNI versions of our program, oldest first. Lists of plugins came
// with 0.3.0.
func spoken() []string { return []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} }

// list is our configuration.
type list struct {
	CNIVersion   string   `json:"cniVersion"`
	CNIVersions  []string `json:"cniVersions,omitempty"`
	Name         string   `json:"name"`
	DisableCheck bool     `json:"disableCheck,omitempty"`
	DisableGC    bool     `json:"disableGC,omitempty"`
	Plugins      []plugin `json:"plugins"`
}

type plugin struct {
	Type           string          `json:"type"`
	Capabilities   map[string]bool `json:"capabilities,omitempty"`
	Socket         string          `json:"socket,omitempty"`
	ClusterNetwork ClusterNetwork  `json:"clusterNetwork"`
}

// render makes our configuration of the cluster's. The runtime then speaks to us
// as it would to that network: in the same versions, with the same capabilities
// and the same verbs.
func render(cluster network, socket string) ([]byte, error) {
	var said struct {
		CNIVersion  string   `json:"cniVersion"`
		CNIVersions []string `json:"cniVersions"`
	}
	if err := json.Unmarshal(cluster.list.Bytes, &said); err != nil {
		return nil, err
	}
	p := plugin{Type: Program, Socket: socket, ClusterNetwork: ClusterNetwork{File: cluster.file, Name: cluster.list.Name}}
	for _, theirs := range cluster.list.Plugins {
		for capability, on := range theirs.Network.Capabilities {
			if !on {
				continue
			}
			if p.Capabilities == nil {
				p.Capabilities = map[string]bool{}
			}
			p.Capabilities[capability] = true
		}
	}
	ours := list{
		CNIVersion: version(said.CNIVersion), Name: Network, Plugins: []plugin{p},
		DisableCheck: cluster.list.DisableCheck, DisableGC: cluster.list.DisableGC,
	}
	for _, v := range said.CNIVersions {
		if slices.Contains(spoken(), v) {
			ours.CNIVersions = append(ours.CNIVersions, v)
		}
	}
	data, err := json.MarshalIndent(ours, "", "  ")
	return append(data, '\n'), err
}

// version is the CNI version next to one that is perhaps not ours: networks may
// say none, one of before there were lists, or one that is to come.
func version(theirs string) string {
	known := spoken()
	if slices.Contains(known, theirs) {
		return theirs
	}
	if above, err := cniversion.GreaterThan(theirs, known[0]); err == nil && above {
		return known[len(known)-1]
	}
	return "0.3.1"
}
