package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// prefix begins the first element of each path, so that an empty or mistyped
// path never reaches the cgroups of somebody else.
const prefix = "railhead-"

// Group is a cgroup: a path below each of the hierarchies. Its methods need
// root; they may be called at the same time for groups with common parents.
type Group struct {
	Path        string // "railhead-cluster/7c1e/node1"
	Hierarchies []Hierarchy
}

// New names a cgroup of this host; it need not exist. The path begins with
// "railhead-".
func New(path string) (*Group, error) {
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || !strings.HasPrefix(path, prefix) {
		return nil, fmt.Errorf("cgroup %q: want a relative path that begins with %q", path, prefix)
	}
	hierarchies, err := Mounted()
	if err != nil {
		return nil, err
	}
	return &Group{Path: path, Hierarchies: hierarchies}, nil
}

// makeAttempts is how often Make begins anew because somebody removed a parent
// that had become empty.
const makeAttempts = 10

// Make makes the cgroup and its parents. What a dead machine left under this
// path is removed first; if something still runs there it is an error.
func (g *Group) Make() error {
	if err := g.Remove(); err != nil {
		return err
	}
	for _, h := range g.Hierarchies {
		err := h.make(g.Path)
		for n := 1; n < makeAttempts && isGone(err); n++ {
			err = h.make(g.Path)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("make cgroup: %w", err), g.Remove())
		}
	}
	return nil
}

// make makes a path below the hierarchy, ready for processes.
func (h *Hierarchy) make(path string) error {
	dir := h.Dir
	for element := range strings.SplitSeq(path, "/") {
		if h.V2 {
			if err := Enable(dir); err != nil {
				return err
			}
		}
		dir = filepath.Join(dir, element)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if h.has("cpuset") {
			if err := inheritCPUs(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// inheritCPUs gives a new cpuset of v1 the processors and memory nodes of its
// parent: it begins with none, and takes no process as long as it has none.
func inheritCPUs(dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(own)) != "" {
			continue // the other one may be missing: whoever makes the same parent may be between the two
		}
		parent, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(parent)) == "" {
			return madeAnew(file)
		}
		if err := setCPUs(dir, file, parent); err != nil {
			return err
		}
	}
	return nil
}

// setCPUs gives a cpuset what its parent had.
func setCPUs(dir, file string, parent []byte) error {
	err := os.WriteFile(filepath.Join(dir, file), parent, 0)
	if errors.Is(err, fs.ErrPermission) {
		return madeAnew(file) // root may not write here only what the parent has not
	}
	return err
}

func madeAnew(file string) error {
	return fmt.Errorf("%s of its parent, which was made anew meanwhile: %w", file, fs.ErrNotExist)
}

// Enable hands all controllers that a v2 cgroup has down to its children. A
// cgroup other than that of the host's root must have no processes of its own.
func Enable(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	enabled, err := os.ReadFile(control)
	if err != nil {
		return err
	}
	for _, controller := range missing(string(available), string(enabled)) {
		if err := os.WriteFile(control, []byte("+"+controller), 0); err != nil {
			return fmt.Errorf("hand controller %s down: %w", controller, err)
		}
	}
	return nil
}

// missing returns the words of all that are not in some.
func missing(all, some string) []string {
	var list []string
	for word := range strings.FieldsSeq(all) {
		if !strings.Contains(" "+strings.TrimSpace(some)+" ", " "+word+" ") {
			list = append(list, word)
		}
	}
	return list
}

// Join moves the calling process into the cgroup. It needs [Group.Make].
func (g *Group) Join() error {
	for _, h := range g.Hierarchies {
		if err := os.WriteFile(filepath.Join(h.Dir, g.Path, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}
