package driver

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/box"
)

// DefaultDir is where a cluster keeps its state unless told otherwise. It is
// on a disk: a node's images need a file system that overlayfs can write to.
const DefaultDir = "/var/tmp/railhead-cluster"

// Dir is the state of one cluster on the host.
type Dir string

// At is the directory that a user means from where we are; a driver is somewhere
// else. One that cannot be is refused by whoever gets it.
func At(path string) Dir {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return Dir(abs)
	}
	return Dir(path)
}

// Exists tells whether the directory is a cluster's, running or not.
func (d Dir) Exists() bool {
	_, err := os.Lstat(d.lockFile())
	return err == nil
}

// Socket is where a running driver takes orders.
func (d Dir) Socket() string { return filepath.Join(string(d), "driver.sock") }

// Kubeconfig is the administrator's.
func (d Dir) Kubeconfig() string { return filepath.Join(string(d), "kubeconfig") }

// DriverLog is what the driver itself says.
func (d Dir) DriverLog() string { return filepath.Join(string(d), "driver.log") }

// Log is what a component says.
func (d Dir) Log(machine, component string) string {
	return filepath.Join(d.machine(machine), "log", component+".log")
}

func (d Dir) machine(name string) string { return filepath.Join(string(d), name) }

// Cgroup is the path of the cluster's control groups below each hierarchy. No
// two directories share one.
func (d Dir) Cgroup() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(filepath.Clean(string(d))))
	return filepath.Join(cgroupParent, fmt.Sprintf("%016x", h.Sum64()))
}

// cgroupParent is the control group that all clusters of a host are below.
const cgroupParent = "railhead-cluster"

// maxSocket is how long the path of a socket may be: sun_path, without the
// byte that ends it.
const maxSocket = 107

func (d Dir) validate() error {
	if !filepath.IsAbs(string(d)) {
		return fmt.Errorf("directory %q of the cluster: want an absolute path", string(d))
	}
	if n := len(d.Socket()); n > maxSocket {
		return fmt.Errorf("directory %s of the cluster: the path of its socket has %d bytes; want at most %d", d, n, maxSocket)
	}
	return nil
}

// acquire locks a directory for one cluster, makes it if need be, and removes
// what an earlier one left that did not end well. The lock ends with release
// or with the process.
func (d Dir) acquire() (release func() error, err error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	lock, err := d.ownAndLock()
	for n := 1; n < lockAttempts && errors.Is(err, errRemoved); n++ {
		lock, err = d.ownAndLock()
	}
	if err != nil {
		return nil, err
	}
	if err := d.clean(); err != nil {
		return nil, errors.Join(err, letGo(lock))
	}
	return func() error { return letGo(lock) }, nil
}

// lockAttempts is how often the directory may vanish while it is locked,
// because clusters end there.
const lockAttempts = 10

func (d Dir) ownAndLock() (*os.File, error) {
	if err := d.own(); err != nil {
		return nil, err
	}
	return d.lock()
}

// own makes the directory, or finds that it is one of a cluster. Any other is
// refused: what is in it would be removed.
func (d Dir) own() error {
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return errRemoved
	}
	if err != nil {
		return err
	}
	isLock := func(e fs.DirEntry) bool { return e.Name() == lockName }
	if len(entries) > 0 && !slices.ContainsFunc(entries, isLock) {
		return fmt.Errorf("directory %s of the cluster: has %q in it and is no cluster's; want a new or an empty one", d, entries[0].Name())
	}
	return nil
}

// clean ends what may still run of a cluster and removes its files, but for
// the lock. Call it with the lock held.
func (d Dir) clean() error {
	if err := box.Sweep(d.Cgroup()); err != nil {
		return err
	}
	entries, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if path := filepath.Join(string(d), e.Name()); path != d.lockFile() {
			errs = append(errs, box.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// remove removes the directory with the lock held. The lock goes after all
// that it stands for, and of the directory nothing that came later: from then
// on it may be another cluster's.
func (d Dir) remove() error {
	if err := d.clean(); err != nil {
		return err
	}
	if err := os.Remove(d.lockFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch err := unix.Rmdir(string(d)); {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTEMPTY):
		return nil
	case errors.Is(err, unix.ENOTDIR): // a link to one, which is not ours
		return nil
	default:
		return &fs.PathError{Op: "rmdir", Path: string(d), Err: err}
	}
}

// Sweep removes what is left of a cluster that could not do so itself. The
// error is [ErrInUse] while one runs in the directory. A directory that is no
// cluster's stays as it is.
func (d Dir) Sweep() error {
	if !d.Exists() {
		return box.Sweep(d.Cgroup())
	}
	release, err := d.acquire()
	if err != nil {
		return err
	}
	return errors.Join(d.remove(), release())
}
