// Package cgroup makes one cgroup under the same path in every hierarchy of
// the host, enters it, ends all that runs in it and removes it. It works on
// hosts with cgroup v1, with v1 beside v2 (systemd calls them hybrid) and with
// v2. It sets no limits; that is for those who live in the cgroup.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Hierarchy is a tree of cgroups where it is mounted.
type Hierarchy struct {
	Dir         string   `json:"dir"`                   // "/sys/fs/cgroup/cpu,cpuacct"
	V2          bool     `json:"v2,omitempty"`          // cgroup v2, which has one hierarchy for all controllers
	Controllers []string `json:"controllers,omitempty"` // of v1, in the kernel's order; none for a named hierarchy
	Name        string   `json:"name,omitempty"`        // of a named v1 hierarchy: "systemd"
}

// Mounted returns the hierarchies that control something on this host, and for
// v1 also the named ones: those that processes of a container are in. On a
// hybrid host these are the v1 hierarchies; v2 controls nothing there.
func Mounted() ([]Hierarchy, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	list, err := parse(string(mountinfo))
	if err != nil {
		return nil, fmt.Errorf("/proc/self/mountinfo: %w", err)
	}
	return list, nil
}

// parse selects hierarchies from the text of mountinfo, in its order. A
// hierarchy that is mounted twice counts where it was mounted first.
func parse(mountinfo string) ([]Hierarchy, error) {
	var v1, v2 []Hierarchy
	for line := range strings.Lines(mountinfo) {
		h, err := parseLine(line)
		switch {
		case err != nil:
			return nil, err
		case h == nil:
		case h.V2 && len(v2) == 0:
			v2 = append(v2, *h)
		case !h.V2 && !slices.ContainsFunc(v1, h.sameAs):
			v1 = append(v1, *h)
		}
	}
	if slices.ContainsFunc(v1, func(h Hierarchy) bool { return len(h.Controllers) > 0 }) {
		return v1, nil
	}
	if len(v2) == 0 {
		return nil, errors.New("no mount of type cgroup or cgroup2 with controllers: want /sys/fs/cgroup as systemd mounts it")
	}
	return v2, nil
}

// parseLine reads a line of mountinfo (proc_pid_mountinfo(5)); it returns nil
// for what is no whole hierarchy of cgroups.
func parseLine(line string) (*Hierarchy, error) {
	before, after, ok := strings.Cut(line, " - ")
	mount, fs := strings.Fields(before), strings.Fields(after)
	if !ok || len(mount) < 6 || len(fs) < 3 {
		return nil, fmt.Errorf("line %q: want mount, \" - \", type, source and options", strings.TrimSpace(line))
	}
	root, dir := mount[3], unescape(mount[4])
	switch {
	case root != "/":
		return nil, nil
	case fs[0] == "cgroup2":
		return &Hierarchy{Dir: dir, V2: true}, nil
	case fs[0] != "cgroup":
		return nil, nil
	}
	h := &Hierarchy{Dir: dir}
	for option := range strings.SplitSeq(fs[2], ",") {
		name, value, _ := strings.Cut(option, "=")
		switch {
		case name == "name":
			h.Name = value
		case isController(name):
			h.Controllers = append(h.Controllers, name)
		}
	}
	return h, nil
}

// isController tells controllers from the other options of a v1 mount, which
// are those of cgroup1_show_options in the kernel.
func isController(option string) bool {
	switch option {
	case "rw", "ro", "none", "noprefix", "xattr", "cpuset_v2_mode", "favordynmods", "release_agent", "clone_children":
		return false
	}
	return true
}

func (h *Hierarchy) sameAs(other Hierarchy) bool {
	return h.Name == other.Name && slices.Equal(h.Controllers, other.Controllers)
}

// has reports whether a v1 hierarchy has a controller.
func (h *Hierarchy) has(controller string) bool { return slices.Contains(h.Controllers, controller) }

// unescape resolves the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
