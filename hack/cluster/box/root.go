package box

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/box/cgroup"
)

// machine is what the first process makes of itself and its namespaces.
type machine struct {
	spec        Spec
	hierarchies []cgroup.Hierarchy // on the host, then where the machine has them mounted
	trees       []tree
	links       map[string]string // in /, as on the host
	nursery     *cgroup.Nursery
}

// tree is a part of the host's file system that is mounted nowhere yet.
type tree struct {
	fd     int
	target string
}

// steps are in the order in which they are taken. What is the host's is cloned
// first, so that all paths after "enter root" are the machine's: links that
// its programs made lead nowhere else.
func (m *machine) steps() []step {
	return []step{
		{"own mounts", m.ownMounts},
		{"clone binds", m.cloneTrees},
		{"enter root", m.enterRoot},
		{"make directories", m.makeDirs},
		{"mount file systems", m.mountFileSystems},
		{"mount cgroups", m.mountCgroups},
		{"make devices", m.makeDevices},
		{"mount binds", m.mountTrees},
		{"write files", m.writeFiles},
		{"shadow sysctls", m.shadowSysctls},
		{"set sysctls", m.setSysctls},
		{"name host", m.nameHost},
		{"raise loopback", raiseLoopback},
		{"share mounts", shareMounts},
		{"make nursery", m.makeNursery},
	}
}

// ownMounts cuts our copy of the host's mounts off from it, and makes a mount
// of the directory that is to be the root.
func (m *machine) ownMounts() error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if m.spec.Disk > 0 {
		return m.spec.mountDisk()
	}
	return mount(m.spec.root(), m.spec.root(), "", unix.MS_BIND, "")
}

// cloneTrees takes hold of what the machine has of the host: /usr, read-only,
// with the links that lead into it, and what the specification names.
func (m *machine) cloneTrees() error {
	m.links = map[string]string{}
	binds := []Bind{{Source: "/usr", Target: "/usr"}}
	for _, dir := range usrLinks {
		target, err := os.Readlink(dir)
		if err == nil {
			m.links[dir] = target
		} else if _, err := os.Stat(dir); err == nil {
			binds = append(binds, Bind{Source: dir, Target: dir})
		}
	}
	if _, err := os.Stat(alternatives); err == nil {
		binds = append(binds, Bind{Source: alternatives, Target: alternatives})
	}
	for _, bind := range append(binds, m.spec.Binds...) {
		fd, err := clone(bind)
		if err != nil {
			return err
		}
		m.trees = append(m.trees, tree{fd, bind.Target})
	}
	return nil
}

// clone copies mounts as a tree of their own.
func clone(bind Bind) (int, error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE
	fd, err := unix.OpenTree(unix.AT_FDCWD, bind.Source, flags)
	if err != nil {
		return -1, &os.PathError{Op: "open_tree", Path: bind.Source, Err: err}
	}
	if bind.Writable {
		return fd, nil
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return -1, &os.PathError{Op: "make read-only", Path: bind.Source, Err: err}
	}
	return fd, nil
}

// enterRoot makes the machine's directory our root, and lets go of the host's.
// Both roots are on the same place for a moment, which pivot_root(2) describes.
func (m *machine) enterRoot() error {
	if err := os.Chdir(m.spec.root()); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	return os.Chdir("/")
}

// makeDirs makes what a root directory has, on the first start and on others.
func (m *machine) makeDirs() error {
	for _, dir := range directories {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for path, target := range m.links {
		if err := link(target, path); err != nil {
			return err
		}
	}
	return link("../run", "/var/run")
}

// link makes a symbolic link unless it is there.
func link(target, path string) error {
	if now, err := os.Readlink(path); err == nil && now == target {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// mountTrees puts what was cloned in its places.
func (m *machine) mountTrees() error {
	for _, t := range m.trees {
		if err := t.mount(); err != nil {
			return err
		}
	}
	return nil
}

// mount makes a place of the right kind and mounts the tree there.
func (t tree) mount() error {
	var stat unix.Stat_t
	if err := unix.Fstat(t.fd, &stat); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if err := makePlace(t.target, stat.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return err
	}
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "move_mount", Path: t.target, Err: err}
	}
	return os.NewSyscallError("close", unix.Close(t.fd))
}

// makePlace makes an empty directory or file to mount something on.
func makePlace(path string, isDir bool) error {
	if isDir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// shareMounts lets mounts of containers reach the machine, and those of the
// machine its containers (mountPropagation: Bidirectional).
func shareMounts() error { return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "") }

// mount is mount(2) with an error that names the place.
func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		if kind != "" {
			return fmt.Errorf("mount %s at %s: %w", kind, target, err)
		}
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}
