package box

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// The first process of a machine is this program, executed twice: one
// execution enters the cgroups and makes the cgroup namespace, which begins at
// the cgroups of who makes it and, as namespaces do, holds for one thread. The
// thread executes the program again, so that all threads are in it.
const (
	stageJoin = "join"
	stageInit = "init"
)

// Files that the first process is given. It keeps the lock on the machine's
// directory as long as it lives.
const (
	ordersFD = 3 + iota
	blueprintFD
	lockFD
)

// Init takes over, and never returns, if this process was started as the first
// one of a machine. It is the first statement of main, and of TestMain: the
// program does nothing of its own then.
func Init() {
	if len(os.Args) != 3 || os.Args[0] != programName {
		return
	}
	go endWithDriver()
	var err error
	switch os.Args[1] {
	case stageJoin:
		err = join()
	case stageInit:
		err = initialize()
	default:
		err = fmt.Errorf("stage %q: want %q or %q", os.Args[1], stageJoin, stageInit)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// endWithDriver ends this process, and so the machine, once the driver has
// closed its end of the order socket or has died. It watches from the first
// moment on, also while a mount takes its time. A driver that dies before this
// runs has the kernel kill this process (Pdeathsig), or is found to be dead
// here, if it died before the kernel was asked to.
func endWithDriver() {
	for {
		poll := []unix.PollFd{{Fd: ordersFD}}
		if _, err := unix.Poll(poll, -1); err == nil {
			unix.Exit(0)
		}
	}
}

// join is the first stage.
func join() error {
	plan, err := readBlueprint()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	return report(plan.Sabotage.run(plan.steps()))
}

// steps are those of the first stage. The last does not return.
func (p *blueprint) steps() []step {
	return []step{
		{"join cgroups", p.Group.Join},
		{"unshare cgroups", func() error { return os.NewSyscallError("unshare", unix.Unshare(unix.CLONE_NEWCGROUP)) }},
		// From here on only the socket tells of the driver's end. To the kernel
		// the parent is that thread of the driver which forked, and that may end
		// while the driver lives.
		{"forget parent", func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }},
		{"execute again", func() error {
			return unix.Exec("/proc/self/exe", []string{programName, stageInit, p.Spec.Name}, os.Environ())
		}},
	}
}

// driver opens the order socket, leaving the file to the watch and to the
// second stage.
func driver() (*wire, error) {
	fd, err := unix.FcntlInt(ordersFD, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("order socket: %w", err)
	}
	return newWire(os.NewFile(uintptr(fd), "orders"))
}

// report tells the driver why there will be no machine.
func report(err error) error {
	socket, wireErr := driver()
	if wireErr == nil {
		wireErr = socket.send(reply{Error: newRemoteError(err)})
	}
	if wireErr != nil {
		return fmt.Errorf("%w (which could not be sent: %w)", err, wireErr)
	}
	return err
}

// initialize is the second stage: it becomes what starts and supervises
// everything in the machine.
func initialize() error {
	for _, fd := range []int{ordersFD, blueprintFD, lockFD} {
		unix.CloseOnExec(fd)
	}
	unix.Umask(0o022)
	plan, err := readBlueprint()
	if err != nil {
		return err
	}
	_ = unix.Close(blueprintFD)
	m := machine{spec: plan.Spec, hierarchies: plan.Group.Hierarchies}
	if err := plan.Sabotage.run(m.steps()); err != nil {
		return report(err)
	}
	children, err := newChildren(m.nursery)
	if err != nil {
		return report(err)
	}
	socket, err := driver()
	if err != nil {
		return err
	}
	return newSupervisor(m.spec.Env, children, socket).serve()
}

// readBlueprint reads what the driver wants. Both stages do.
func readBlueprint() (blueprint, error) {
	var plan blueprint
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", blueprintFD))
	if err != nil {
		return plan, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(file)
	if err != nil {
		return plan, err
	}
	if err := json.Unmarshal(text, &plan); err != nil {
		return plan, fmt.Errorf("blueprint of a machine: %w", err)
	}
	return plan, nil
}
