package cniinstall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	errReadOnly = syscall.EROFS
	errNoSpace  = syscall.ENOSPC
)

// suffix is of files that are not there yet. Runtimes do not read such names, and
// who has the lock of a directory is the only one to write them.
const suffix = ".railhead.tmp"

// disk is the node's file system. Each step of it asks before first, if that is
// set: so tests let steps fail.
type disk struct {
	before func(step, path string) error
}

func (d disk) step(step, path string, do func() error) error {
	if d.before != nil {
		if err := d.before(step, path); err != nil {
			return &fs.PathError{Op: step, Path: path, Err: err}
		}
	}
	return do()
}

func (d disk) read(path string) (data []byte, err error) {
	err = d.step("read", path, func() error { data, err = os.ReadFile(path); return err })
	return data, err
}

func (d disk) list(dir string) (entries []fs.DirEntry, err error) {
	err = d.step("readdir", dir, func() error { entries, err = os.ReadDir(dir); return err })
	return entries, err
}

func (d disk) lstat(path string) (info fs.FileInfo, err error) {
	err = d.step("lstat", path, func() error { info, err = os.Lstat(path); return err })
	return info, err
}

func (d disk) exists(path string) bool {
	_, err := d.lstat(path)
	return err == nil
}

// remove removes a file, and is content where there is none.
func (d disk) remove(path string) error {
	err := d.step("remove", path, func() error { return os.Remove(path) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// lock waits until nobody else has a directory. The lock is of the directory
// itself, so that nothing stays behind, and ends with the process.
func (d disk) lock(ctx context.Context, dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	try := func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
	for err = d.step("lock", dir, try); errors.Is(err, unix.EWOULDBLOCK); err = d.step("lock", dir, try) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s is locked by another installer: %w", dir, ctx.Err()), f.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return f.Close, nil
}

// write makes a file with this content under a name: after a crash there is what
// was there, or all of this.
func (d disk) write(path string, data []byte, mode fs.FileMode) error {
	temporary := temporaryOf(path)
	return d.place(temporary, path, true, func() error { return d.writeSynced(temporary, data, mode) })
}

// link gives a file one more name, or makes a copy of it on file systems that
// know no such thing. Unless it may replace, it leaves alone what came meanwhile,
// and the error is fs.ErrExist.
func (d disk) link(existing, path string, data []byte, mode fs.FileMode, replace bool) error {
	temporary := temporaryOf(path)
	return d.place(temporary, path, replace, func() error {
		if d.step("link", path, func() error { return os.Link(existing, temporary) }) == nil {
			return nil
		}
		return d.writeSynced(temporary, data, mode)
	})
}

// place makes a file beside its place and gives it its name.
func (d disk) place(temporary, path string, replace bool, make func() error) error {
	err := d.remove(temporary) // of an installer that was killed
	if err == nil {
		err = make()
	}
	if err == nil {
		err = d.step("rename", path, func() error { return rename(temporary, path, replace) })
	}
	if err != nil {
		return errors.Join(err, d.remove(temporary))
	}
	return d.syncDir(filepath.Dir(path))
}

func rename(from, to string, replace bool) error {
	if replace {
		return os.Rename(from, to)
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system cannot; nothing was there a moment ago
		return os.Rename(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func (d disk) writeSynced(path string, data []byte, mode fs.FileMode) error {
	var f *os.File
	err := d.step("create", path, func() (err error) {
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		return err
	})
	if err != nil {
		return err
	}
	err = d.step("write", path, func() error { _, err := f.Write(data); return err })
	if err == nil {
		err = d.step("chmod", path, func() error { return f.Chmod(mode) }) // whatever the umask
	}
	if err == nil {
		err = d.step("sync", path, f.Sync)
	}
	return errors.Join(err, f.Close())
}

// syncDir makes names last.
func (d disk) syncDir(dir string) error {
	return d.step("syncdir", dir, func() error {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// holds says whether a regular file has this content and mode.
func (d disk) holds(path string, data []byte, mode fs.FileMode) (bool, error) {
	info, err := d.lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || info.Mode() != mode || info.Size() != int64(len(data)) {
		return false, err
	}
	there, err := d.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Equal(there, data), err
}

func temporaryOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
}
