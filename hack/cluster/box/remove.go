package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Remove removes a directory of machines that have ended, with all that is in
// it, unless something is mounted there.
func Remove(dir string) error { return removeRoot(dir) }

// removeRoot removes a machine's root directory, unless something is mounted
// in it. It neither follows links nor goes into mounts that come meanwhile.
func removeRoot(root string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	root = filepath.Join(dir, filepath.Base(root))
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if mounts := mountsBelow(string(mountinfo), root); len(mounts) > 0 {
		return fmt.Errorf("remove %s: mounts are in it: %q", root, mounts)
	}
	parent, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() { _ = unix.Close(parent) }()
	return removeAt(parent, filepath.Base(root), root)
}

// mountsBelow returns the mount points at a directory and below it. In
// mountinfo, blanks and such are escaped.
func mountsBelow(mountinfo, dir string) []string {
	dir = strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(dir)
	var list []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) > 4 && (fields[4] == dir || strings.HasPrefix(fields[4], dir+"/")) {
			list = append(list, fields[4])
		}
	}
	return list
}

// removeAt removes a file, or a directory with all that is in it.
func removeAt(parent int, name, path string) error {
	err := unix.Unlinkat(parent, name, 0)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	if err := emptyAt(parent, name, path); err != nil {
		return err
	}
	if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

// emptyAt removes all that is in a directory.
func emptyAt(parent int, name, path string) error {
	fd, err := unix.Openat2(parent, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := removeAt(fd, name, filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}
