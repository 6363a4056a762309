package check

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

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
		r.NRI = g.exists("/run/nri/nri.sock") || g.exists("/var/run/nri/nri.sock")
		switch p.Command {
		case containerdName:
			g.containerd(&r)
		case crioName:
			g.crio(&r)
		}
		g.node.Runtimes = append(g.node.Runtimes, r)
	}
}

// containerd reads what containerd's configuration says of NRI and CDI. What it
// does not say is as the release has it by default: containerd 2 has both on
// and containerd 1 off. The format tells the release where it is the newer one;
// else NRI's socket does. What cannot be read counts as on, because nothing is
// known against it.
func (g *gatherer) containerd(r *Runtime) {
	for _, file := range containerdConfigs() {
		if !g.exists(file) {
			continue
		}
		r.Config = file
		var settings containerdSettings
		if err := g.readContainerd(file, &settings, configDepth); err != nil {
			g.problem(err)
			r.NRI, r.CDI = true, true
			return
		}
		r.Version = settings.version
		byDefault := settings.version >= containerd2 || r.NRI
		r.NRI = valueOr(settings.nri, byDefault)
		r.CDI = valueOr(settings.cdi, byDefault)
		return
	}
	r.CDI = true
}

func valueOr(value *bool, otherwise bool) bool {
	if value == nil {
		return otherwise
	}
	return *value
}

// configDepth bounds how deep configuration files may import others.
const configDepth = 3

// readContainerd reads a configuration file and then those that it imports,
// whose settings count.
func (g *gatherer) readContainerd(file string, settings *containerdSettings, depth int) error {
	text, err := g.fs.ConfigFile(file, configLimit)
	if err != nil {
		return err
	}
	own, err := parseContainerd(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	settings.merge(own)
	if depth == 0 {
		return nil
	}
	for _, pattern := range own.imports {
		if !path.IsAbs(pattern) {
			pattern = path.Join(path.Dir(file), pattern)
		}
		root := g.fs.Path()
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return fmt.Errorf("%s: import %q: %w", file, pattern, err)
		}
		for _, match := range matches {
			if err := g.readContainerd("/"+strings.TrimPrefix(strings.TrimPrefix(match, root), "/"), settings, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// containerdSettings is what matters of containerd's configuration; nil is not
// said.
type containerdSettings struct {
	version  int
	nri, cdi *bool
	imports  []string
}

// merge takes over what a file that is read later says.
func (s *containerdSettings) merge(later containerdSettings) {
	s.version = max(s.version, later.version)
	s.nri = cmp.Or(later.nri, s.nri)
	s.cdi = cmp.Or(later.cdi, s.cdi)
}

// parseContainerd reads a file of containerd's configuration.
func parseContainerd(text []byte) (containerdSettings, error) {
	var c struct {
		Version         int      `toml:"version"`
		Imports         []string `toml:"imports"`
		DisabledPlugins []string `toml:"disabled_plugins"`
		Plugins         map[string]struct {
			Disable   *bool `toml:"disable"`
			EnableCDI *bool `toml:"enable_cdi"`
		} `toml:"plugins"`
	}
	if err := toml.Unmarshal(text, &c); err != nil {
		return containerdSettings{}, fmt.Errorf("containerd configuration: %w", err)
	}
	s := containerdSettings{
		version: c.Version,
		cdi:     cmp.Or(c.Plugins[criPlugin2].EnableCDI, c.Plugins[criPlugin1].EnableCDI),
		imports: c.Imports,
	}
	disable := c.Plugins[nriPlugin].Disable
	if slices.Contains(c.DisabledPlugins, nriPlugin) {
		off := true
		disable = &off
	}
	if disable != nil {
		on := !*disable
		s.nri = &on
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

// configFile is the file to edit: k3s and RKE2 write containerd's configuration
// themselves, from a template beside it.
func (r Runtime) configFile() string {
	file := cmp.Or(r.Config, "/etc/containerd/config.toml")
	if r.unit() != r.Name {
		return file + ".tmpl"
	}
	return file
}

// unit is the systemd unit that the runtime runs in.
func (r Runtime) unit() string {
	switch {
	case strings.Contains(r.Config, "/k3s/"):
		return "k3s" // k3s-agent on an agent
	case strings.Contains(r.Config, "/rke2/"):
		return "rke2-server" // rke2-agent on an agent
	default:
		return r.Name
	}
}

// criPlugin is the name of the plugin that holds the CRI's settings.
func (r Runtime) criPlugin() string {
	if r.Version >= containerd2 {
		return criPlugin2
	}
	return criPlugin1
}
