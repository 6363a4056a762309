package check

import (
	"cmp"
	"fmt"
	"os"
	"path"

	"github.com/pelletier/go-toml/v2"

	"railhead/internal/kernel/sysfs"
)

// Runtime is a container runtime that runs on the node.
type Runtime struct {
	Name    string // "containerd" or "crio"
	PID     int
	Memlock *sysfs.Limit // nil where it cannot be read
	Config  string       // its configuration file; empty where there is none
	Version int          // of the configuration's format: containerd 2 has 3
	NRI     bool         // whether its node resource interface is on
	CDI     bool         // whether its container device interface is on
}

// containerdConfigs are where containerd's configuration may be, k3s' and
// RKE2's own first.
func containerdConfigs() []string {
	return []string{
		"/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
		"/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
		"/etc/containerd/config.toml",
	}
}

const (
	nriPlugin      = "io.containerd.nri.v1.nri"
	criPlugin2     = "io.containerd.cri.v1.runtime" // containerd 2
	criPlugin1     = "io.containerd.grpc.v1.cri"    // containerd 1
	containerd2    = 3                              // the format of containerd 2's configuration
	containerdName = "containerd"
	crioName       = "crio"
	crioDropIns    = "/etc/crio/crio.conf.d"
)

// runtimes finds the running container runtimes and how they are set up.
func (g *gatherer) runtimes() {
	processes, err := g.fs.Processes(containerdName, crioName)
	g.problem(err)
	seen := map[string]bool{}
	for _, p := range processes {
		if seen[p.Command] {
			continue
		}
		seen[p.Command] = true
		r := Runtime{Name: p.Command, PID: p.PID}
		limit, err := g.fs.MemlockLimit(p.PID)
		g.problem(err)
		if err == nil {
			r.Memlock = &limit
		}
		switch p.Command {
		case containerdName:
			g.containerd(&r)
		case crioName:
			g.crio(&r)
		}
		r.NRI = r.NRI || g.exists("/run/nri/nri.sock") || g.exists("/var/run/nri/nri.sock")
		g.node.Runtimes = append(g.node.Runtimes, r)
	}
}

// containerd reads what containerd's configuration says of NRI and CDI. Where
// it cannot be read they count as on, because nothing is known against them.
func (g *gatherer) containerd(r *Runtime) {
	r.CDI = true
	for _, file := range containerdConfigs() {
		if !g.exists(file) {
			continue
		}
		r.NRI = true
		text, err := g.fs.ConfigFile(file, configLimit)
		g.problem(err)
		if err != nil {
			return
		}
		c, err := parseContainerd(text)
		if err != nil {
			g.problem(fmt.Errorf("%s: %w", file, err))
			return
		}
		r.Config, r.Version = file, c.version
		r.NRI, r.CDI = c.nri, c.cdi
		return
	}
}

// containerdSettings is what matters of containerd's configuration.
type containerdSettings struct {
	version  int
	nri, cdi bool
}

// parseContainerd reads containerd's configuration. What it does not say is as
// the release that writes that format has it by default: containerd 2 has NRI
// and CDI on, containerd 1 has them off.
func parseContainerd(text []byte) (containerdSettings, error) {
	var c struct {
		Version int `toml:"version"`
		Plugins map[string]struct {
			Disable   *bool `toml:"disable"`
			EnableCDI *bool `toml:"enable_cdi"`
		} `toml:"plugins"`
	}
	if err := toml.Unmarshal(text, &c); err != nil {
		return containerdSettings{}, fmt.Errorf("containerd configuration: %w", err)
	}
	s := containerdSettings{version: c.Version, nri: c.Version >= containerd2, cdi: c.Version >= containerd2}
	if disable := c.Plugins[nriPlugin].Disable; disable != nil {
		s.nri = !*disable
	}
	if cdi := cmp.Or(c.Plugins[criPlugin2].EnableCDI, c.Plugins[criPlugin1].EnableCDI); cdi != nil {
		s.cdi = *cdi
	}
	return s, nil
}

// crio reads what CRI-O's configuration says of NRI. CDI cannot be switched off
// there, and NRI's default differs by release: its socket tells.
func (g *gatherer) crio(r *Runtime) {
	r.CDI = true
	files := []string{"/etc/crio/crio.conf"}
	dropIns, err := os.ReadDir(g.fs.Path(crioDropIns))
	g.problem(err)
	for _, f := range dropIns {
		files = append(files, path.Join(crioDropIns, f.Name()))
	}
	for _, file := range files {
		text, err := g.fs.ConfigFile(file, configLimit)
		g.problem(err)
		if err != nil {
			continue
		}
		nri, err := parseCRIO(text)
		if err != nil {
			g.problem(fmt.Errorf("%s: %w", file, err))
			continue
		}
		if nri != nil {
			r.Config, r.NRI = file, *nri
		}
	}
}

// parseCRIO returns what CRI-O's configuration says of NRI, or nil.
func parseCRIO(text []byte) (nri *bool, err error) {
	var c struct {
		CRIO struct {
			NRI struct {
				Enable *bool `toml:"enable_nri"`
			} `toml:"nri"`
		} `toml:"crio"`
	}
	if err := toml.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("CRI-O configuration: %w", err)
	}
	return c.CRIO.NRI.Enable, nil
}

func (r Runtime) configFile() string { return cmp.Or(r.Config, "/etc/containerd/config.toml") }

// criPlugin is the name of the plugin that holds the CRI's settings.
func (r Runtime) criPlugin() string {
	if r.Version >= containerd2 {
		return criPlugin2
	}
	return criPlugin1
}
