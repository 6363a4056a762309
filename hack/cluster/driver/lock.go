package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrInUse is what Up and Sweep answer while a cluster runs in the directory.
var ErrInUse = errors.New("a cluster is running there")

// errRemoved says that whoever had the lock has removed it since.
var errRemoved = errors.New("the lock was removed meanwhile")

// lockFile also says that the directory is ours, to clean and to remove.
func (d Dir) lockFile() string { return filepath.Join(string(d), lockName) }

const lockName = "railhead-cluster.lock"

// lock takes the lock and writes who has it.
func (d Dir) lock() (*os.File, error) {
	lock, err := os.OpenFile(d.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errRemoved // with the directory
	}
	if err != nil {
		return nil, err
	}
	err = take(lock)
	if err == nil {
		err = d.stillThere(lock)
	}
	if err == nil {
		_, err = lock.WriteAt(fmt.Appendf(nil, "%-10d\n", os.Getpid()), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d, err), letGo(lock))
	}
	return lock, nil
}

// take locks a file until it is closed. The error is ErrInUse if another has.
func take(lock *os.File) error {
	err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrInUse
	}
	return os.NewSyscallError("flock", err)
}

// letGo gives a lock back. Closing alone would not while a process that is
// being started has a copy of the file, which it closes when it executes.
func letGo(lock *os.File) error {
	return errors.Join(os.NewSyscallError("flock", unix.Flock(int(lock.Fd()), unix.LOCK_UN)), lock.Close())
}

// stillThere finds out whether the file that was locked is still the lock. It
// has none of the name if its last owner removed it before it let go.
func (d Dir) stillThere(lock *os.File) error {
	held, err := lock.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(d.lockFile())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(held, named) {
		return errRemoved
	}
	return err
}

// signal sends a signal to the process that has the lock. One that has just
// ended is none: a process that held the lock while we had hold of the process
// is the one whose number is in the file.
func (d Dir) signal(s unix.Signal) error {
	lock, err := os.Open(d.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	text := make([]byte, 32)
	n, _ := lock.ReadAt(text, 0) // it is shorter than that
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return nil // it has the lock, and is about to write its number
	}
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer func() { _ = unix.Close(process) }()
	if err := take(lock); !errors.Is(err, ErrInUse) {
		_ = unix.Flock(int(lock.Fd()), unix.LOCK_UN)
		return err // free: it has ended
	}
	if err := unix.PidfdSendSignal(process, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end the driver %d: %w", pid, err)
	}
	return nil
}
