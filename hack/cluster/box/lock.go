package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes a machine's directory for its own: until the file is closed here
// and the machine has ended there can be no other machine.
func lock(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		err = &fs.PathError{Op: "lock", Path: dir, Err: err}
		return nil, errors.Join(fmt.Errorf("%w: a machine runs there", err), file.Close())
	}
	return file, nil
}

// unlock gives a lock back. Closing alone would not while a process that is
// being started has a copy of the file, which it closes when it executes.
func unlock(file *os.File) {
	_ = unix.Flock(int(file.Fd()), unix.LOCK_UN)
	_ = file.Close()
}
