package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel lets go of a cgroup some time after its last process was waited
// for, and tells nobody when: removal is tried again, ever less often.
const (
	removeLimit = time.Minute
	removeFirst = 2 * time.Millisecond
	removeMost  = 100 * time.Millisecond
)

// Remove removes the cgroup with all below it, and those of its parents that
// have become empty. If it does not exist that is well; if processes are in it
// or below, nothing is removed and the error names some.
func (g *Group) Remove() error {
	for _, h := range g.Hierarchies {
		if err := checkEmpty(filepath.Join(h.Dir, g.Path)); err != nil {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	deadline := time.Now().Add(removeLimit)
	var errs []error
	for _, h := range g.Hierarchies {
		if err := removeUntil(filepath.Join(h.Dir, g.Path), deadline); err != nil {
			errs = append(errs, fmt.Errorf("remove cgroup: %w", err))
			continue
		}
		removeParents(h.Dir, filepath.Dir(g.Path))
	}
	return errors.Join(errs...)
}

// checkEmpty returns an error if processes are in a cgroup or below it.
func checkEmpty(dir string) error {
	pids, err := members(dir)
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		err := fmt.Errorf("%w: processes %v are in it", unix.EBUSY, pids[:min(len(pids), 10)])
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return eachBelow(dir, checkEmpty)
}

// removeUntil tries until the cgroup is gone.
func removeUntil(dir string, deadline time.Time) error {
	for pause := removeFirst; ; pause = min(2*pause, removeMost) {
		err := removeTree(dir)
		if err == nil || !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
	}
}

// removeTree removes a cgroup, children first.
func removeTree(dir string) error {
	if err := eachBelow(dir, removeTree); err != nil {
		return err
	}
	if err := unix.Rmdir(dir); err != nil && !isGone(err) {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// removeParents removes a path below a hierarchy from its end, as far as it is
// empty. Those that others use stay.
func removeParents(root, path string) {
	for path != "." {
		if unix.Rmdir(filepath.Join(root, path)) != nil {
			return
		}
		path = filepath.Dir(path)
	}
}
