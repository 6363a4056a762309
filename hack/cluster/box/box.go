// Package box makes machines of namespaces: network, mount, UTS, IPC, PID and
// cgroup, with a root directory of their own. The first process of a machine
// is this program, executed again; it starts and supervises services, runs
// programs on order and ends with the process that made it, so that even
// kill -9 of that one leaves no process, mount, link or namespace. The package
// knows neither Kubernetes nor addresses: what a machine is for, and where its
// interfaces lead, is for those who make it.
//
// A program that makes machines calls [Init] first in main, and a test first
// in TestMain. Everything needs root and Linux 5.12.
//
// This package is frozen: runc with a supervisor in each machine was looked at in
// its place. It would start the programs; their end with the driver, control
// groups of v1 and v2, the disk and the faults would have to be added to it.
package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"railhead/hack/cluster/box/cgroup"
)

// errEnded is what all that is asked of a machine fails with once its first
// process has ended.
var errEnded = errors.New("the machine has ended")

// Box is a running machine. Its methods may be called at the same time.
type Box struct {
	spec   Spec
	group  *cgroup.Group
	init   *exec.Cmd
	orders *orders
	done   chan struct{}

	halting sync.Mutex
	halted  bool

	mu       sync.Mutex
	services map[string]Service
}

// Start makes a machine and returns when its root is in place and it takes
// orders. If it fails nothing is left: neither process nor mount nor cgroup,
// and of files only logs, and a root or a disk that was there before. The same
// Dir can be started again once its machine has ended; its files are still
// there then, what was in memory is not.
func Start(ctx context.Context, spec Spec) (*Box, error) {
	return start(ctx, spec, sabotage{})
}

// start is Start, with something going wrong on the way.
func start(ctx context.Context, spec Spec, sabotage sabotage) (*Box, error) {
	if err := spec.validate(); err != nil {
		return nil, fmt.Errorf("machine %q: %w", spec.Name, err)
	}
	l := launch{spec: spec, sabotage: sabotage}
	defer l.close()
	b, err := l.do(ctx)
	if err != nil {
		return nil, fmt.Errorf("start machine %s: %w", spec.Name, errors.Join(err, l.undo()))
	}
	return b, nil
}

// PID is the machine's first process as the host numbers it.
func (b *Box) PID() int { return b.init.Process.Pid }

// Done is closed when the first process has ended, and with it all others.
func (b *Box) Done() <-chan struct{} { return b.done }

// Root is the machine's root directory, with its mounts, as the host sees it
// while the machine runs. Links in it that are absolute lead to the host's
// files: open paths with [os.OpenRoot].
func (b *Box) Root() string { return b.proc("root") }

// proc is a file of the first process in the host's /proc.
func (b *Box) proc(name string) string { return "/proc/" + strconv.Itoa(b.PID()) + "/" + name }

// haltLimit is how long the processes of a machine may take to end once they
// have been killed.
const haltLimit = time.Minute

// Halt ends the machine as if its power failed and waits until its processes
// and cgroups are gone. Its root directory stays for the next Start. It may be
// called again, and without effect once there is a next one.
func (b *Box) Halt() error {
	b.halting.Lock()
	defer b.halting.Unlock()
	if b.halted {
		return nil
	}
	if err := b.halt(); err != nil {
		return fmt.Errorf("halt machine %s: %w", b.spec.Name, err)
	}
	b.halted = true
	return nil
}

func (b *Box) halt() error {
	if err := b.init.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := b.group.Thaw(); err != nil {
		return err
	}
	select {
	case <-b.done:
	case <-time.After(haltLimit):
		return fmt.Errorf("process %d has not ended %v after SIGKILL", b.PID(), haltLimit)
	}
	return b.group.Remove()
}

// Close ends the machine and removes its root directory and disk. Only logs
// stay. It may be called again; it is an error if another machine runs in Dir
// by then.
func (b *Box) Close() error {
	if err := b.Halt(); err != nil {
		return err
	}
	if err := b.remove(); err != nil {
		return fmt.Errorf("close machine %s: %w", b.spec.Name, err)
	}
	return nil
}

func (b *Box) remove() error {
	lock, err := lock(b.spec.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock(lock)
	return errors.Join(removeRoot(b.spec.root()), b.spec.removeDisk())
}

// Sweep clears up after a driver that could not: it ends all processes in a
// cgroup and below, a machine's or that of many, and removes it. Root
// directories stay. It needs no machine to have been there.
func Sweep(path string) error {
	group, err := cgroup.New(path)
	if err != nil {
		return err
	}
	if err := group.Kill(); err != nil {
		return err
	}
	return group.Remove()
}
