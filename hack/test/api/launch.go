package api

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// launchDir has a link to the test program for each program that envtest starts.
const launchDir = "launch"

// pidSuffix is of the file beside the link that has the number of the process.
const pidSuffix = ".pid"

// Launch replaces the test program by the program that it was started as a
// launcher of, if it was. Call it first in TestMain.
//
// What envtest starts would outlive a test program that is killed, and etcd
// would go on writing for ever. So the test program starts itself, asks the
// kernel to end it with its parent, and becomes the program.
func Launch() {
	self := os.Args[0]
	if filepath.Base(filepath.Dir(self)) != launchDir {
		return
	}
	runtime.LockOSThread()
	err := errors.Join(
		unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0),
		os.WriteFile(self+pidSuffix, []byte(strconv.Itoa(os.Getpid())), 0o600),
	)
	if err == nil {
		program := filepath.Join(filepath.Dir(self), "..", "program", filepath.Base(self))
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	fmt.Fprintf(os.Stderr, "launch %s: %v\n", self, err)
	os.Exit(1)
}

// launchers makes launchers of programs and returns their paths.
func (c *control) launchers(names ...string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		program, err := c.programs.Path(name)
		if err != nil {
			return nil, err
		}
		launcher := filepath.Join(sub(c.home, launchDir), name)
		if err := os.Symlink(program, filepath.Join(sub(c.home, "program"), name)); err != nil {
			return nil, err
		}
		if err := os.Symlink(self, launcher); err != nil {
			return nil, err
		}
		paths = append(paths, launcher)
	}
	return paths, nil
}
