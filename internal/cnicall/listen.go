package cnicall

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// ErrInUse is of a socket that another agent serves.
var ErrInUse = errors.New("another agent has the socket")

// maxSocketPath is how many bytes the kernel takes, less what a new socket has
// behind its name until it is there.
const maxSocketPath = 107 - len(beside)

const (
	beside     = ".new"
	lockSuffix = ".lock"
)

// Listener is the socket of an agent that is alive.
type Listener struct {
	*net.UnixListener

	path  string
	made  fs.FileInfo  // the socket
	close func() error // once
}

// Listen makes the socket at a path, for its owner only, and the directory if
// there is none. What an agent left that is dead is replaced, without a moment in
// which there is no socket; while one lives, the error is ErrInUse. Who lives is
// told by a lock beside the socket, which ends with its process.
func Listen(path string) (*Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket %s: a path of %d bytes, want at most %d", path, len(path), maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // who may call is the socket's mode, and asked of each peer
		return nil, fmt.Errorf("socket %s: make its directory: %w", path, err)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("socket %s: there is something else (%s); remove it", path, info.Mode())
	}
	lock, err := lockFile(path + lockSuffix)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l, err := bind(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket %s: %w", path, err), unlock(lock))
	}
	made, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket %s: %w", path, err), l.Close(), unlock(lock))
	}
	return &Listener{l, path, made, sync.OnceValue(func() error {
		return errors.Join(l.Close(), remove(path), unlock(lock))
	})}, nil
}

// Check returns an error if the path no longer leads to this socket: somebody
// removed it or put another in its place, and nobody can call any more. Its
// agent then does best to end and to start again.
func (l *Listener) Check() error {
	there, err := os.Lstat(l.path)
	if err != nil {
		return fmt.Errorf("socket %s: somebody removed it: %w", l.path, err)
	}
	if !os.SameFile(there, l.made) {
		return fmt.Errorf("socket %s: somebody put another in its place", l.path)
	}
	return nil
}

// bind makes the socket beside its place, closes it to others and gives it its name.
func bind(path string) (*net.UnixListener, error) {
	if err := remove(path + beside); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + beside, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the name is another by then
	err = os.Chmod(path+beside, 0o600)
	if err == nil {
		err = os.Rename(path+beside, path)
	}
	if err != nil {
		_ = os.Remove(path + beside)
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close takes the socket and its lock away. It may be called several times, and
// at once: each returns when all is gone.
func (l *Listener) Close() error { return l.close() }

// remove removes a file, and is content where there is none.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lockFile locks a file without waiting. A file that its last holder removed
// meanwhile is none: the lock would be of something that nobody else finds.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("%w: %s is locked", ErrInUse, path), f.Close())
		}
		if err != nil {
			return nil, errors.Join(os.NewSyscallError("flock "+path, err), f.Close())
		}
		ours, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(ours, there) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// unlock removes the file while it is locked, so that nobody's is removed but ours.
func unlock(f *os.File) error {
	return errors.Join(remove(f.Name()), f.Close())
}
