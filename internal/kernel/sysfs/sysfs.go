// Package sysfs reads what the kernel says about RDMA devices, network
// devices, PCI functions, modules and processes in /sys, /proc, /etc and /dev.
//
// All readers hang off an [FS], which is rooted at a value, so that a test, a
// captured archive or another namespace's sysfs is read by the same code.
// Parsers take strings and do no I/O. The package keeps no state, starts no
// goroutines and never logs; everything in it is safe for concurrent use.
//
// # What is absent
//
// An attribute that a driver does not offer, or that has no value now (the
// kernel says so by ENOENT, ENODEV, ENXIO, EINVAL or EOPNOTSUPP), is the zero
// value that its field documents, and no error. An attribute that is there and
// cannot be read or understood is an error beside everything else that was
// read: methods that return one device return it with the error, and methods
// that return a list return the whole list with all errors joined.
//
// A device that is not there, or goes while it is read, is an error for which
// errors.Is(err, [os.ErrNotExist]) holds; lists leave it out. Nothing here
// needs a privilege beyond reading the files, which are readable by all unless
// a method says otherwise.
package sysfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FS is a tree that holds sys, proc, etc and dev directories. The zero value
// reads the running system.
type FS struct {
	root   string
	sys    string
	before *before // nil but in tests
}

// New returns an FS whose sys, proc, etc and dev directories lie below root.
func New(root string) FS { return FS{root: root} }

// WithSys returns an FS that reads sysfs at dir instead of root/sys, such as
// a sysfs mount that shows another network namespace. Reads of proc, etc and
// dev are unchanged.
//
// What a sysfs mount shows in class/net, class/infiniband and the other
// directories that belong to a network namespace is fixed when it is mounted,
// to the namespace of the thread that mounts it. A thread that enters another
// namespace afterwards still sees the old one there. (It is otherwise with
// proc: see [FS.Sysctl].)
func (fs FS) WithSys(dir string) FS {
	fs.sys = dir
	return fs
}

// Path returns the path of a file given by its place on a running system,
// such as "/proc/modules".
func (fs FS) Path(elem ...string) string {
	return filepath.Join(append([]string{"/", fs.root}, elem...)...)
}

// Sys returns the path of a file below the sysfs mount.
func (fs FS) Sys(elem ...string) string {
	if fs.sys != "" {
		return filepath.Join(append([]string{fs.sys}, elem...)...)
	}
	return fs.Path(append([]string{"sys"}, elem...)...)
}

// names lists the directories and links of a directory in natural order. It
// leaves plain files out: class directories hold some that are no devices,
// such as net/bonding_masters. A directory that is not there holds nothing.
func (fs FS) names(dir string) ([]string, error) {
	fs.before.call(dir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.Type().IsRegular() {
			found = append(found, e.Name())
		}
	}
	slices.SortFunc(found, compareNatural)
	return found, nil
}

// each reads the named objects one by one. Those that are gone are left out;
// of the others it returns what was read and all errors.
func each[T any](names []string, read func(string) (T, error)) ([]T, error) {
	found := make([]T, 0, len(names))
	var errs []error
	for _, name := range names {
		v, err := read(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		found = append(found, v)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return found, errors.Join(errs...)
}

// checkName refuses the name of an object that would lead to another
// directory.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%w: name %.64q, want the name of one file", os.ErrInvalid, name)
	}
	return nil
}
