package box

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
)

// Spec is a machine. All paths but Dir and the sources of Binds are those of
// the machine, absolute.
type Spec struct {
	Name string `json:"name"` // for messages, and the host's name unless Hostname is set
	// Dir is a directory of the host, absolute: Dir/root becomes the root and
	// is made if need be, Dir/log has one file a service. A container runtime
	// in the machine wants it on a file system that overlayfs can lie upon,
	// so neither tmpfs nor overlayfs.
	Dir string `json:"dir"`
	// Disk is the size in bytes of a disk of the machine's own, a file in Dir
	// that is its root. Without one the root is a directory on the host's.
	Disk     int64             `json:"disk,omitempty"`
	Cgroup   string            `json:"cgroup"` // below every hierarchy, begins with "railhead-"
	Hostname string            `json:"hostname,omitempty"`
	Hosts    []Host            `json:"hosts,omitempty"` // of /etc/hosts, beside localhost and the machine
	Env      []string          `json:"env,omitempty"`   // of all its programs, beside PATH and HOME
	Tmpfs    []string          `json:"tmpfs,omitempty"` // directories in memory, beside /run, /tmp and /dev/shm
	Devices  []Device          `json:"devices,omitempty"`
	Binds    []Bind            `json:"binds,omitempty"`   // made after Tmpfs and Devices
	Files    []File            `json:"files,omitempty"`   // written last, and over what the machine has of itself
	Sysctls  map[string]string `json:"sysctls,omitempty"` // "net/ipv4/ip_forward": of its namespaces only
}

// Host is a line of /etc/hosts.
type Host struct {
	Addr  netip.Addr `json:"addr"`
	Names []string   `json:"names"`
}

// Bind shows a file or directory of the host in the machine, with what is
// mounted below it now.
type Bind struct {
	Source   string `json:"source"` // on the host, absolute
	Target   string `json:"target"`
	Writable bool   `json:"writable,omitempty"`
}

// Device is a device node.
type Device struct {
	Path  string      `json:"path"`
	Mode  fs.FileMode `json:"mode"`
	Block bool        `json:"block,omitempty"`
	Major uint32      `json:"major"`
	Minor uint32      `json:"minor"`
}

// File is a file, with the directories that lead to it.
type File struct {
	Path    string      `json:"path"`
	Mode    fs.FileMode `json:"mode"`
	Content []byte      `json:"content"`
}

// Service is a program that the machine keeps running.
type Service struct {
	Name  string   `json:"name"`
	Args  []string `json:"args"` // the program first, looked up in PATH if it has no slash
	Env   []string `json:"env,omitempty"`
	Dir   string   `json:"dir,omitempty"`
	Ready []string `json:"-"` // a program that is run until it ends well; the service is ready then
	// Restart starts it again when it ends by itself, after a pause that grows.
	Restart bool `json:"restart,omitempty"`
}

// validate names all that cannot be.
func (s *Spec) validate() error {
	var errs []error
	if s.Name == "" || strings.ContainsAny(s.Name, "/ ") {
		errs = append(errs, fmt.Errorf("name %q: want a word", s.Name))
	}
	if !filepath.IsAbs(s.Dir) {
		errs = append(errs, fmt.Errorf("directory %q: want an absolute path", s.Dir))
	}
	for _, path := range s.paths() {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			errs = append(errs, fmt.Errorf("path %q in the machine: want an absolute one below /", path))
		}
	}
	for _, b := range s.Binds {
		if !filepath.IsAbs(b.Source) {
			errs = append(errs, fmt.Errorf("source %q of a bind: want an absolute path", b.Source))
		}
	}
	for name := range s.Sysctls {
		if !filepath.IsLocal(name) {
			errs = append(errs, fmt.Errorf("sysctl %q: want a path below /proc/sys", name))
		}
	}
	return errors.Join(errs...)
}

// paths are those in the machine that the specification names.
func (s *Spec) paths() []string {
	paths := append([]string(nil), s.Tmpfs...)
	for _, d := range s.Devices {
		paths = append(paths, d.Path)
	}
	for _, b := range s.Binds {
		paths = append(paths, b.Target)
	}
	for _, f := range s.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

// root is the directory of the host that becomes the machine's root.
func (s *Spec) root() string { return filepath.Join(s.Dir, "root") }

// log is the file of the host that a service writes to.
func (s *Spec) log(service string) string { return filepath.Join(s.Dir, "log", service+".log") }

// hostname is the machine's host name.
func (s *Spec) hostname() string {
	if s.Hostname != "" {
		return s.Hostname
	}
	return s.Name
}
