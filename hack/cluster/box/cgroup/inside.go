package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Names of the cgroups that a machine has in its own: its first process goes
// into Init where it may not stay at the top, and starts all others in Runtime.
const (
	initName    = "init"
	runtimeName = "runtime"
)

// Mount mounts the hierarchies anew, at dir, as distributions have them: v2 on
// dir itself, v1 below it. Called in a cgroup namespace of its own it shows
// that namespace's cgroup as the root. It returns them where they are now.
func Mount(dir string, hierarchies []Hierarchy) ([]Hierarchy, error) {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if hierarchies[0].V2 {
		err := unix.Mount("cgroup2", dir, "cgroup2", flags, "")
		return []Hierarchy{{Dir: dir, V2: true}}, mountError(dir, err)
	}
	if err := unix.Mount("cgroup", dir, "tmpfs", flags, "mode=755"); err != nil {
		return nil, mountError(dir, err)
	}
	var mounted []Hierarchy
	for _, h := range hierarchies {
		h.Dir = filepath.Join(dir, h.label())
		if err := h.mount(flags); err != nil {
			return nil, err
		}
		mounted = append(mounted, h)
	}
	return mounted, nil
}

// mount mounts a v1 hierarchy, with a link for each of several controllers.
func (h *Hierarchy) mount(flags uintptr) error {
	if err := os.Mkdir(h.Dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("cgroup", h.Dir, "cgroup", flags, h.options()); err != nil {
		return mountError(h.Dir, err)
	}
	if len(h.Controllers) < 2 {
		return nil
	}
	for _, controller := range h.Controllers {
		if err := os.Symlink(h.label(), filepath.Join(filepath.Dir(h.Dir), controller)); err != nil {
			return err
		}
	}
	return nil
}

// label is the name that the directory of a v1 hierarchy has by custom.
func (h *Hierarchy) label() string {
	if len(h.Controllers) == 0 {
		return h.Name
	}
	return strings.Join(h.Controllers, ",")
}

// options are those that mount a v1 hierarchy.
func (h *Hierarchy) options() string {
	options := h.Controllers
	if len(options) == 0 {
		options = []string{"none"}
	}
	if h.Name != "" {
		options = append(options[:len(options):len(options)], "name="+h.Name)
	}
	return strings.Join(options, ",")
}

func mountError(dir string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "mount cgroups at", Path: dir, Err: err}
}

// Nursery is the cgroup that a machine's programs are born in.
type Nursery struct {
	dir *os.File // of v2
	v1  []string
}

// NewNursery makes it, given the hierarchies as [Mount] returned them, and in
// v2 hands the machine's controllers down to it. For that, because in v2 only
// leaves have processes, it moves the calling process into another child.
func NewNursery(hierarchies []Hierarchy) (*Nursery, error) {
	var n Nursery
	for _, h := range hierarchies {
		if h.V2 {
			if err := leaveRoot(h); err != nil {
				return nil, err
			}
		}
		if err := h.make(runtimeName); err != nil {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
		dir := filepath.Join(h.Dir, runtimeName)
		if !h.V2 {
			n.v1 = append(n.v1, dir)
			continue
		}
		var err error
		if n.dir, err = os.Open(dir); err != nil {
			return nil, err
		}
	}
	return &n, nil
}

// leaveRoot moves the caller from the root of a v2 hierarchy into a leaf.
func leaveRoot(h Hierarchy) error {
	leaf := Group{Path: initName, Hierarchies: []Hierarchy{h}}
	if err := os.Mkdir(filepath.Join(h.Dir, initName), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return leaf.Join()
}

// EnterThread moves the calling thread into the nursery of v1, where children
// begin where the thread is that makes them. The caller keeps it locked.
func (n *Nursery) EnterThread() error {
	for _, dir := range n.v1 {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0); err != nil {
			return fmt.Errorf("enter cgroup: %w", err)
		}
	}
	return nil
}

// FD is what v2 wants to be given when a child is made (CLONE_INTO_CGROUP),
// and whether this is v2.
func (n *Nursery) FD() (int, bool) {
	if n.dir == nil {
		return -1, false
	}
	return int(n.dir.Fd()), true
}
