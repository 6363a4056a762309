// Package debian fetches Debian packages with this machine's apt and unpacks
// them into directories. Nothing is installed, no maintainer script runs, and
// the machine's own package lists are neither read nor changed.
package debian

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"railhead/hack/program"
)

// listsFreshFor is how long package lists are used before the mirror is asked again: sid moves daily, and every move
// would make everything anew.
const listsFreshFor = 7 * 24 * time.Hour

// Config chooses a suite. Dir, Suite and Architecture must be set; the zero value of the others works.
type Config struct {
	Dir          string // the suite's own directory: lists, downloads, a lock
	Suite        string // trixie
	Architecture string // as Go calls it: Debian's names for amd64 and arm64 are the same
	Mirror       Mirror // with an empty URI: the one in this machine's apt sources
	Refresh      bool   // ask the mirror for newer packages even when the lists are fresh
	// Logf receives progress, one line a call; nil is silence.
	Logf func(format string, args ...any)
}

// Suite is one Debian suite as apt sees it from a directory of its own, with an empty list of installed packages, so
// that dependencies come out whole. It holds the directory's lock until Close; its methods may not be called at once.
type Suite struct {
	Config
	lock *os.File
}

// Open takes the suite's lock, waiting for another process if it must, sets up its directory, and brings its lists up
// to date when they are old or a refresh is asked for. Old lists are used when the mirror does not answer.
func Open(ctx context.Context, c Config) (*Suite, error) {
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	if c.Mirror.URI == "" {
		var err error
		if c.Mirror, err = HostMirror(); err != nil {
			return nil, err
		}
	}
	s := &Suite{Config: c}
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("suite %s: %w", c.Suite, err)
	}
	return s, nil
}

// Close releases the lock, which goes with the file.
func (s *Suite) Close() { _ = s.lock.Close() }

func (s *Suite) open(ctx context.Context) error {
	for _, d := range []string{"etc/preferences.d", "etc/apt.conf.d", "etc/sources.list.d", "state/lists/partial", "cache/archives/partial", closuresDir} {
		if err := os.MkdirAll(s.path(d), 0o755); err != nil {
			return err
		}
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	changed, err := s.configure(ctx)
	if err != nil {
		return err
	}
	stamp, err := os.Stat(s.path("updated"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	have := err == nil && !changed
	if have && !s.Refresh && time.Since(stamp.ModTime()) < listsFreshFor {
		return nil
	}
	err = s.update(ctx)
	if err != nil && have && !s.Refresh {
		s.Logf("suite %s: going on with lists of %s: %v", s.Suite, stamp.ModTime().Format(time.DateOnly), err)
		return nil
	}
	return err
}

// takeLock waits for another process that works in the same directory, and says so.
func (s *Suite) takeLock() error {
	var err error
	if s.lock, err = os.OpenFile(s.path("lock"), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return err
	}
	err = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		s.Logf("waiting for another process that uses %s", s.Dir)
		err = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", s.lock.Name(), err)
	}
	return nil
}

// update fetches the package lists.
func (s *Suite) update(ctx context.Context) error {
	if err := program.Run(s.apt(ctx, "apt-get", "update", "-q", "--error-on=any")); err != nil {
		return err
	}
	if err := os.RemoveAll(s.path(closuresDir)); err != nil {
		return err
	}
	if err := os.Mkdir(s.path(closuresDir), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.path("updated"), nil, 0o644)
}

// path is a path in the suite's directory.
func (s *Suite) path(name string) string { return filepath.Join(s.Dir, name) }

// apt is one of apt's programs on the suite's directory.
func (s *Suite) apt(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := program.Command(ctx, name, args...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+s.path("apt.conf"), "LC_ALL=C")
	return cmd
}
