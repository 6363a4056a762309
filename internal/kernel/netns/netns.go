// Package netns opens network namespaces, tells them apart, finds those of
// other processes, and runs functions inside one.
//
// It makes no namespaces, moves nothing between them, and never keeps one
// alive except through an [NS] that is open. To talk netlink in another
// namespace, open the socket there (rtnl.Config.NetNS and its like) rather
// than use [NS.Do]: no thread of ours has to move for it.
package netns

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// NS is an open network namespace. It keeps the namespace alive, and with it
// all devices in it, until it is closed. It is safe for concurrent use, but
// not with Close.
type NS struct {
	file *os.File
	id   ID
}

// Open opens the namespace that path leads to: /proc/<pid>/ns/net, or a file
// in /run/netns on which one is mounted. The path of a process needs the right
// to trace that process (PTRACE_MODE_READ: the same user and capabilities, or
// CAP_SYS_PTRACE).
//
// The error is fs.ErrNotExist or fs.ErrPermission where that is the reason. A
// process that ends while it is opened may give either.
func Open(path string) (*NS, error) {
	// O_NONBLOCK, because path may turn out to be a pipe.
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	id, err := identify(int(file.Fd()))
	if err != nil {
		_ = file.Close() // it was not written to
		return nil, fmt.Errorf("network namespace %s: %w", path, err)
	}
	return &NS{file: file, id: id}, nil
}

// OpenPID opens the namespace of a process, by its number in our PID
// namespace. See [Open] for privileges and errors.
func OpenPID(pid int) (*NS, error) { return Open(fmt.Sprintf("/proc/%d/ns/net", pid)) }

// Current opens the namespace of the calling thread: that of the process,
// unless called within [NS.Do].
func Current() (*NS, error) { return Open("/proc/thread-self/ns/net") }

// identify returns the identity of the network namespace that fd refers to,
// and an error if it refers to something else.
func identify(fd int) (ID, error) {
	var where unix.Statfs_t
	if err := unix.Fstatfs(fd, &where); err != nil {
		return ID{}, &fs.PathError{Op: "statfs", Path: "namespace", Err: err}
	}
	if where.Type != unix.NSFS_MAGIC {
		return ID{}, fmt.Errorf("a file of file system type %#x, want a namespace (%#x)", where.Type, unix.NSFS_MAGIC)
	}
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	if err != nil {
		return ID{}, os.NewSyscallError("ioctl NS_GET_NSTYPE", err)
	}
	if kind != unix.CLONE_NEWNET {
		return ID{}, fmt.Errorf("a namespace of type %#x, want network (%#x)", kind, unix.CLONE_NEWNET)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return ID{}, os.NewSyscallError("fstat", err)
	}
	return ID{Dev: st.Dev, Ino: st.Ino}, nil
}

// ID returns the identity of the namespace.
func (ns *NS) ID() ID { return ns.id }

// FD returns the file descriptor, valid until Close; -1 after it.
func (ns *NS) FD() int { return int(ns.file.Fd()) }

// Close closes the namespace. Unless something else keeps it alive, the kernel
// then ends it in the background: virtual links in it vanish, and hardware
// goes back to the initial namespace.
func (ns *NS) Close() error { return ns.file.Close() }
