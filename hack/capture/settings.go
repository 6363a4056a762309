package main

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"railhead/internal/kernel/sysfs"
)

// settings writes down anew what matters of configuration files, which hold
// much that is nobody's business: passwords, names of hosts, disks.
func (c *copier) settings() {
	c.osRelease()
	for _, name := range containerdConfigs {
		c.containerd(name, importDepth)
	}
	for _, pattern := range crioConfigs {
		for _, name := range c.glob(pattern) {
			c.crio(name)
		}
	}
	c.gpuDriver()
	c.modprobe()
	c.commandLine()
	c.processes()
}

// configLimit bounds configuration files.
const configLimit = 1 << 20

func (c *copier) osRelease() {
	const name = "etc/os-release"
	if text, err := c.read(name, configLimit); err == nil {
		c.keep(c.out.File(name, []byte(osReleaseLines(text))))
	}
}

func osReleaseLines(text string) string {
	return linesThat(text, func(line string) bool {
		key, _, ok := strings.Cut(line, "=")
		return ok && slices.Contains(osRelease, strings.TrimSpace(key))
	})
}

// linesThat returns the lines that are approved of, each with a newline.
func linesThat(text string, approve func(line string) bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); approve(line) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// importDepth bounds how deep configuration files may import others.
const importDepth = 3

// containerd copies the switches of a configuration file and of those that it
// imports.
func (c *copier) containerd(name string, depth int) {
	text, err := c.read(name, configLimit)
	if err != nil {
		return
	}
	config, err := parseContainerd([]byte(text))
	if err != nil {
		c.leaveOut(fmt.Errorf("/%s: it is no TOML that containerd would take", name)) // the parser's error may quote it
		return
	}
	c.keep(c.out.File(name, []byte(config.lines())))
	if depth == 0 {
		return
	}
	for _, pattern := range config.Imports {
		if !path.IsAbs(pattern) {
			pattern = path.Join("/", path.Dir(name), pattern)
		}
		for _, file := range c.glob(pattern) {
			if file != name {
				c.containerd(file, depth-1)
			}
		}
	}
}

// containerdConfig is what is looked at of a configuration of containerd.
type containerdConfig struct {
	Version  int                       `toml:"version"`
	Imports  []string                  `toml:"imports"`
	Disabled []string                  `toml:"disabled_plugins"`
	Plugins  map[string]map[string]any `toml:"plugins"`
}

func parseContainerd(text []byte) (config containerdConfig, err error) {
	return config, toml.Unmarshal(text, &config)
}

// lines writes the version, the imports and the switches down again.
func (config containerdConfig) lines() string {
	var b strings.Builder
	if config.Version != 0 {
		fmt.Fprintf(&b, "version = %d\n", config.Version)
	}
	if len(config.Imports) > 0 {
		fmt.Fprintf(&b, "imports = [%s]\n", quoted(config.Imports))
	}
	disabled := slices.DeleteFunc(slices.Clone(config.Disabled), func(plugin string) bool { return plugin != nriPlugin })
	if len(disabled) > 0 {
		fmt.Fprintf(&b, "disabled_plugins = [%s]\n", quoted(disabled))
	}
	for _, plugin := range slices.Sorted(maps.Keys(containerdSwitches)) {
		key := containerdSwitches[plugin]
		if value, ok := config.Plugins[plugin][key].(bool); ok {
			fmt.Fprintf(&b, "\n[plugins.%q]\n  %s = %t\n", plugin, key, value)
		}
	}
	return b.String()
}

// quoted writes strings as a list of TOML has them.
func quoted(list []string) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = strconv.Quote(s)
	}
	return strings.Join(words, ", ")
}

// crio copies whether CRI-O has NRI on.
func (c *copier) crio(name string) {
	text, err := c.read(name, configLimit)
	if err != nil {
		return
	}
	switches, err := crioLines([]byte(text))
	if err != nil {
		c.leaveOut(fmt.Errorf("/%s: it is no TOML that CRI-O would take", name))
		return
	}
	c.keep(c.out.File(name, []byte(switches)))
}

func crioLines(text []byte) (string, error) {
	var config struct {
		CRIO struct {
			NRI struct {
				Enable *bool `toml:"enable_nri"`
			} `toml:"nri"`
		} `toml:"crio"`
	}
	if err := toml.Unmarshal(text, &config); err != nil {
		return "", err
	}
	if config.CRIO.NRI.Enable == nil {
		return "", nil
	}
	return fmt.Sprintf("[crio.nri]\n  enable_nri = %t\n", *config.CRIO.NRI.Enable), nil
}

// gpuDriver copies which of its two drivers NVIDIA's GPUs run with, and not
// where that was built.
func (c *copier) gpuDriver() {
	const name = "proc/driver/nvidia/version"
	text, err := c.read(name, configLimit)
	if err != nil {
		return
	}
	kind := "Kernel Module"
	if strings.Contains(text, "Open Kernel Module") {
		kind = "Open Kernel Module"
	}
	c.keep(c.out.File(name, []byte("NVRM version: NVIDIA UNIX "+kind+"\n")))
}

// glob returns the files that match a pattern of places on the system, without
// the leading slash.
func (c *copier) glob(pattern string) []string {
	root := c.fs.Path()
	matches, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		c.leaveOut(fmt.Errorf("imports %q: %w", pattern, err))
	}
	for i := range matches {
		matches[i] = strings.TrimPrefix(strings.TrimPrefix(matches[i], root), "/")
	}
	return matches
}

// modprobe copies the options of the modules of RDMA, each to its file.
func (c *copier) modprobe() {
	options, err := c.fs.ModuleOptions()
	c.keep(err)
	lines := map[string]string{}
	var files []string // in the order in which they count
	for _, o := range options {
		if !slices.Contains(rdmaModules, o.Module) {
			continue
		}
		line, err := optionsLine(o)
		if err != nil {
			c.leaveOut(fmt.Errorf("%s: %w", o.File, err))
			continue
		}
		if lines[o.File] == "" {
			files = append(files, o.File)
		}
		lines[o.File] += line
	}
	for _, file := range files {
		c.keep(c.out.File(strings.TrimPrefix(file, "/"), []byte(lines[file])))
	}
}

// optionsLine writes an options line of modprobe.d(5).
func optionsLine(o sysfs.ModuleOption) (string, error) {
	words := []string{"options", o.Module}
	for _, name := range slices.Sorted(maps.Keys(o.Params)) {
		param, err := formatParam(sysfs.Param{Name: name, Value: o.Params[name]})
		if err != nil {
			return "", err
		}
		words = append(words, param)
	}
	return strings.Join(words, " ") + "\n", nil
}

// formatParam writes a parameter as the kernel and modprobe take it. Nothing
// escapes a quote.
func formatParam(p sysfs.Param) (string, error) {
	if strings.ContainsAny(p.Name+p.Value, "\"\\\n") || strings.ContainsAny(p.Name, " \t") {
		return "", fmt.Errorf("parameter %q with a quote, a backslash or spaces that cannot be written down again", p.Name)
	}
	switch {
	case p.Value == "":
		return p.Name, nil
	case strings.ContainsAny(p.Value, " \t\v\f\r"):
		return p.Name + `="` + p.Value + `"`, nil
	default:
		return p.Name + "=" + p.Value, nil
	}
}

// commandLine copies those parameters of the kernel's command line that are
// known to matter: others tell disks, hosts and, now and then, passwords.
func (c *copier) commandLine() {
	const name = "proc/cmdline"
	all, err := c.fs.KernelCommandLine()
	if err != nil {
		c.unreadable(name, err)
		return
	}
	var kept []string
	for _, p := range all {
		if !isKept(p) {
			continue
		}
		param, err := formatParam(p)
		if err != nil {
			c.leaveOut(fmt.Errorf("/%s: %w", name, err))
			continue
		}
		kept = append(kept, param)
	}
	c.keep(c.out.File(name, []byte(strings.Join(kept, " ")+"\n")))
}

func isKept(p sysfs.Param) bool {
	module, _, ofModule := strings.Cut(p.Name, ".")
	return slices.Contains(kernelParameters, moduleName(p.Name)) || ofModule && slices.Contains(rdmaModules, moduleName(module))
}

func (c *copier) processes() {
	found, err := c.fs.Processes(runtimes...)
	if err != nil {
		c.unreadable("proc", err)
	}
	for _, p := range found {
		dir := path.Join("proc", strconv.Itoa(p.PID))
		c.keep(c.out.File(dir+"/comm", []byte(p.Command+"\n")))
		text, err := c.read(dir+"/limits", configLimit)
		if err != nil {
			continue
		}
		limits := linesThat(text, func(line string) bool {
			return slices.ContainsFunc(limitLines, func(start string) bool { return strings.HasPrefix(line, start) })
		})
		c.keep(c.out.File(dir+"/limits", []byte(limits)))
	}
}
