package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/box/cgroup"
)

// programName is what the first process of a machine is called, and how it
// knows itself.
const programName = "railhead-box"

// blueprint is what the driver hands to the first process, beside the socket.
type blueprint struct {
	Spec     Spec          `json:"spec"`
	Group    *cgroup.Group `json:"group"`
	Sabotage sabotage      `json:"sabotage"`
}

// launch is one start of a machine, as far as it has come.
type launch struct {
	spec     Spec
	sabotage sabotage
	group    *cgroup.Group
	newRoot  bool     // the root directory was not there before
	lock     *os.File // on spec.Dir, held by us and by the first process
	log      *logFile
	init     *exec.Cmd
	done     chan struct{}
}

// do starts the machine. After an error the caller calls undo.
func (l *launch) do(ctx context.Context) (*Box, error) {
	// Children are to get a signal when their parent dies, and to the kernel
	// their parent is this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	wire, err := l.fork()
	if err != nil {
		return nil, err
	}
	orders := newOrders(wire)
	if err := orders.ready(ctx); err != nil {
		_ = wire.conn.Close()
		return nil, l.explain(err)
	}
	return &Box{
		spec: l.spec, group: l.group, init: l.init, orders: orders, done: l.done,
		services: map[string]Service{},
	}, nil
}

// prepare makes directories, disk and cgroups.
func (l *launch) prepare(ctx context.Context) error {
	err := os.MkdirAll(filepath.Join(l.spec.Dir, "log"), 0o755)
	if err != nil {
		return err
	}
	if l.lock, err = lock(l.spec.Dir); err != nil {
		return err
	}
	err = os.Mkdir(l.spec.root(), 0o755)
	l.newRoot = err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := l.spec.makeDisk(ctx); err != nil {
		return err
	}
	// The first process says all on the socket, unless it crashes.
	if l.log, err = openLog(l.spec.log("init")); err != nil {
		return err
	}
	group, err := cgroup.New(l.spec.Cgroup)
	if err != nil {
		return err
	}
	if err := group.Make(); err != nil {
		return err
	}
	l.group = group
	return nil
}

// fork starts the first process and returns our end of its order socket.
func (l *launch) fork() (*wire, error) {
	plan, err := l.blueprint()
	if err != nil {
		return nil, err
	}
	defer func() { _ = plan.Close() }()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "orders")
	defer func() { _ = theirs.Close() }()
	ours, err := newWire(os.NewFile(uintptr(pair[0]), "orders"))
	if err != nil {
		return nil, err
	}
	init := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{programName, stageJoin, l.spec.Name}, Env: []string{},
		Stdout: l.log.File, Stderr: l.log.File,
		ExtraFiles: []*os.File{ordersFD - 3: theirs, blueprintFD - 3: plan, lockFD - 3: l.lock},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
			Pdeathsig:  unix.SIGKILL,
			Setsid:     true, // an interrupt at the driver's terminal is not for the machine
		},
	}
	if err := init.Start(); err != nil {
		return nil, errors.Join(err, ours.conn.Close())
	}
	l.init, l.done = init, make(chan struct{})
	go func() {
		defer close(l.done)
		_ = init.Wait() // how it ended says no more than that it did
		unlock(l.lock)
	}()
	return ours, nil
}

// blueprint returns an open file, in memory, that describes the machine.
func (l *launch) blueprint() (*os.File, error) {
	text, err := json.Marshal(blueprint{Spec: l.spec, Group: l.group, Sabotage: l.sabotage})
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("blueprint", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "blueprint")
	if _, err := file.Write(text); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// explain adds what the first process wrote, if it ended without a word on the
// socket.
func (l *launch) explain(err error) error {
	if !errors.Is(err, errEnded) {
		return err
	}
	<-l.done
	if text := l.log.tail(); text != "" {
		return fmt.Errorf("%w:\n%s", err, text)
	}
	return fmt.Errorf("%w: %v", err, l.init.ProcessState)
}

// undo leaves nothing of a machine that could not be started.
func (l *launch) undo() error {
	if l.init != nil {
		_ = l.init.Process.Kill() // it may have ended by itself
		<-l.done
	}
	var errs []error
	if l.group != nil {
		errs = append(errs, l.group.Remove())
	}
	if l.newRoot {
		errs = append(errs, removeRoot(l.spec.root()), l.spec.removeDisk())
	}
	return errors.Join(errs...)
}

// close lets go of what only the start needs.
func (l *launch) close() {
	if l.log != nil {
		_ = l.log.Close()
	}
	if l.lock != nil && l.init == nil {
		unlock(l.lock)
	}
}
