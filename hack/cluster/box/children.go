package box

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/box/cgroup"
)

// children makes all processes of a machine and waits for them, and for those
// that lost their parents and have been given to the first process by the
// kernel. Whoever made a process is told its status; of the others it is lost.
type children struct {
	births  chan birth
	nursery *cgroup.Nursery

	mu      sync.Mutex
	waiting map[int]chan unix.WaitStatus
}

// birth is a process to be made.
type birth struct {
	invocation invocation
	files      []uintptr
	made       chan<- made
}

// made is a process, or why there is none.
type made struct {
	child *child
	err   error
}

// child is a process that has been made. Its status comes once.
type child struct {
	pid    int
	status <-chan unix.WaitStatus
}

// newChildren begins to make children and to wait for them.
func newChildren(nursery *cgroup.Nursery) (*children, error) {
	if err := heedSignals(); err != nil {
		return nil, err
	}
	c := &children{births: make(chan birth), nursery: nursery, waiting: map[int]chan unix.WaitStatus{}}
	// The kernel drops signals that the first process has no handler for, but
	// the runtime has handlers that end it. What is caught here is dropped, and
	// unlike ignored signals it is not inherited by children.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGABRT)
	deaths := make(chan os.Signal, 1)
	signal.Notify(deaths, unix.SIGCHLD)
	go func() {
		for range deaths {
			c.reap()
		}
	}()
	entered := make(chan error)
	go c.bear(entered)
	return c, <-entered
}

// heedSignals ends the ignoring of signals that whoever started the driver
// ignored: it is inherited by all below. posix_spawn, and so make, has its
// children ignore two signals of the C library, which the Go runtime leaves as
// they are.
func heedSignals() error {
	const ignored = 1 // SIG_IGN; SIG_DFL is 0
	for number := uintptr(1); number <= 64; number++ {
		var now, byDefault kernelSigaction
		if err := sigaction(number, nil, &now); err != nil {
			return err
		}
		if now.handler != ignored {
			continue
		}
		if err := sigaction(number, &byDefault, nil); err != nil {
			return err
		}
	}
	return nil
}

// kernelSigaction is the kernel's struct sigaction of amd64 and arm64.
type kernelSigaction struct {
	handler, flags, restorer, mask uintptr
}

// sigaction asks the kernel and not the C library, which refuses to speak of
// its own signals.
func sigaction(number uintptr, action, before *kernelSigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(action)), uintptr(unsafe.Pointer(before)),
		unsafe.Sizeof(action.mask), 0, 0)
	if errno != 0 {
		return fmt.Errorf("sigaction of signal %d: %w", number, errno)
	}
	return nil
}

// bear makes processes, all on one thread: cgroup v1 has children begin in the
// cgroup of the thread that makes them.
func (c *children) bear(entered chan<- error) {
	runtime.LockOSThread()
	entered <- c.nursery.EnterThread()
	for b := range c.births {
		child, err := c.make(b.invocation, b.files)
		b.made <- made{child, err}
	}
}

// start makes a process with these files as stdin, stdout and stderr, in a
// session of its own. Its environment is that of the invocation and nothing else.
func (c *children) start(i invocation, files []*os.File) (*child, error) {
	fds := make([]uintptr, len(files))
	for n, file := range files {
		fds[n] = file.Fd()
	}
	answer := make(chan made)
	c.births <- birth{i, fds, answer}
	m := <-answer
	return m.child, m.err
}

// make is done under the lock, so that a process that ends at once is not
// waited for before it is known.
func (c *children) make(i invocation, fds []uintptr) (*child, error) {
	path, err := i.find()
	if err != nil {
		return nil, err
	}
	attr := &syscall.SysProcAttr{Setsid: true}
	attr.CgroupFD, attr.UseCgroupFD = c.nursery.FD()
	// A child begins with what its thread has blocked, which with the C library
	// may be a signal of that library's own, like those of heedSignals.
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		return nil, os.NewSyscallError("sigprocmask", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err := syscall.ForkExec(path, i.Args, &syscall.ProcAttr{Dir: i.Dir, Env: i.Env, Files: fds, Sys: attr})
	if err != nil {
		return nil, &fs.PathError{Op: "in " + cmp.Or(i.Dir, "/") + " execute", Path: path, Err: err}
	}
	status := make(chan unix.WaitStatus, 1)
	c.waiting[pid] = status
	return &child{pid, status}, nil
}

// reap waits for all that have ended.
func (c *children) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			return
		}
		if waiting, ok := c.waiting[pid]; ok {
			waiting <- status
			delete(c.waiting, pid)
		}
	}
}

// signal sends a signal to a child, and to its process group if that is asked
// for. One that has been waited for gets none: its number may be another's.
func (c *children) signal(child *child, sig unix.Signal, group bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.waiting[child.pid]; !ok {
		return unix.ESRCH
	}
	pid := child.pid
	if group {
		pid = -pid
	}
	return os.NewSyscallError("kill", unix.Kill(pid, sig))
}

// suspend stops a child where it is, and waits until it stands still or has ended.
func (c *children) suspend(child *child) error {
	c.mu.Lock()
	if _, ok := c.waiting[child.pid]; !ok {
		c.mu.Unlock()
		return unix.ESRCH
	}
	handle, err := unix.PidfdOpen(child.pid, 0)
	c.mu.Unlock()
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer func() { _ = unix.Close(handle) }()
	if err := unix.PidfdSendSignal(handle, unix.SIGSTOP, nil, 0); err != nil {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	for {
		err := unix.Waitid(unix.P_PIDFD, handle, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD): // it ended and was waited for
			return unix.ESRCH
		}
		return os.NewSyscallError("waitid", err)
	}
}
