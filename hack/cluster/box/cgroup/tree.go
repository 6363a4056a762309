package cgroup

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

// eachBelow calls fn for the children of a cgroup.
func eachBelow(dir string, fn func(string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ignoreGone(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := fn(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// members returns the processes that are in a cgroup itself, without those
// that our PID namespace has no number for.
func members(dir string) ([]int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, ignoreGone(err)
	}
	var pids []int
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			return nil, fmt.Errorf("%s: process %q: want a number", dir, line)
		}
		if pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// isGone reports whether an error says that a cgroup is gone: a file that is
// already open says it in its own way.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// ignoreGone takes it for no error that a cgroup is gone.
func ignoreGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}
