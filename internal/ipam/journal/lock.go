package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld is of a directory that somebody else writes in: two that keep one
// journal would say the opposite of each other.
var ErrHeld = errors.New("the directory is in use")

// lockName is the file that is locked. It stays where it is: the lock is of the
// open file, and ends with its process, however that ends.
const lockName = "lock"

// lock locks a directory without waiting, and leaves word of who has it.
func lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s is locked by %s", ErrHeld, path, holderOf(path))
	} else if err != nil {
		err = os.NewSyscallError("flock "+path, err)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	sign(f)
	return f, nil
}

// sign leaves word of this process. On a full disk there is none, and the lock
// holds all the same.
func sign(f *os.File) {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "process %d (%s) on %s\n", os.Getpid(), filepath.Base(os.Args[0]), host), 0)
	}
}

// holderOf is the word that was left.
func holderOf(path string) string {
	said, err := os.ReadFile(path)
	if said = bytes.TrimSpace(said); err != nil || len(said) == 0 {
		return "a process that left no word"
	}
	return string(said)
}
