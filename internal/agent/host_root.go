package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// seen is a path of the node as this process sees it.
func (r *networking) seen(path string) string {
	return filepath.Join(r.config.CNI.HostRoot, filepath.Join("/", path))
}

// seenNetNS is the path of a network namespace as this process sees it. Runtimes
// keep them in /var/run/netns, and /var/run is a link to /run on the node: an
// absolute one, which would lead out of HostRoot into our own /run: where it cannot be
// followed, nobody knows whether the namespace is there.
func (r *networking) seenNetNS(path string) (string, error) {
	if r.config.CNI.HostRoot == "" || path == "" {
		return path, nil
	}
	dir, err := resolve(r.config.CNI.HostRoot, filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return r.seen(path), nil // opening it says so, too
	}
	if err != nil {
		return "", fmt.Errorf("where %s of the node is in %s: %w", path, r.config.CNI.HostRoot, err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// resolve returns where a path below a root leads, with symbolic links as they
// are for who has that root.
func resolve(root, path string) (string, error) {
	dir, err := unix.Open(cmp.Or(root, "/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(dir) }()
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	return filepath.EvalSymlinks("/proc/self/fd/" + strconv.Itoa(fd))
}
