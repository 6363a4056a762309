package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// PanicError is what Do panics with when fn does, because the stack of fn is
// gone by then.
type PanicError struct {
	Value any    // what fn panicked with
	Stack []byte // where
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in a network namespace: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns what fn panicked with if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Do runs fn on an OS thread of its own that is inside the namespace, waits
// for it, and returns its error. What goes by the thread's namespace, sockets
// and /proc/thread-self/net, is that of ns then; mounts, /sys among them, are
// not, and see [NS.SysFS] for that. Goroutines that fn starts run on other
// threads and so outside of the namespace.
//
// If fn panics, Do panics in its caller with a [*PanicError], and if fn ends
// its goroutine (runtime.Goexit, testing's FailNow), Do ends the caller's. The
// thread leaves the namespace in any case; one that cannot is destroyed with
// the goroutine, and Do returns an error that says so.
//
// It needs CAP_SYS_ADMIN in our user namespace and in the one that owns ns.
func (ns *NS) Do(fn func() error) error {
	c := call{fn: fn}
	<-c.start(ns)
	switch {
	case c.panicked != nil:
		panic(c.panicked)
	case c.entered && !c.returned:
		runtime.Goexit()
	}
	return c.err
}

// call is one call of a function in a namespace, and how it ended.
type call struct {
	fn       func() error
	err      error
	panicked *PanicError
	entered  bool // fn was called
	returned bool // and returned
}

// start begins a call on a thread that is not the main one, and returns a
// channel that is closed when the call has ended.
func (c *call) start(ns *NS) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			c.run(ns)
			return
		}
		// The namespace of the main thread is what others take for that of the
		// process (/proc/<pid>/ns/net), and the runtime cannot destroy that
		// thread. While this goroutine holds it, the next one gets another.
		<-c.start(ns)
		runtime.UnlockOSThread()
	}()
	return done
}

// run takes the thread of the calling goroutine, which is locked to it, into
// ns, calls fn and takes it back. Only then does it unlock: a goroutine that
// ends locked takes its thread with it, so that no other code ever runs there.
func (c *call) run(ns *NS) {
	home, err := Current()
	if err != nil {
		runtime.UnlockOSThread()
		c.err = fmt.Errorf("enter %v: %w", ns.id, err)
		return
	}
	defer func() { c.err = errors.Join(c.err, home.Close()) }()
	if err := ns.enter(); err != nil {
		runtime.UnlockOSThread()
		c.err = fmt.Errorf("enter %v: %w", ns.id, err)
		return
	}
	// Deferred, so that it happens even if fn ends the goroutine.
	defer func() {
		if err := home.enter(); err != nil {
			c.err = errors.Join(c.err, fmt.Errorf("leave %v, whose thread is given up: %w", ns.id, err))
			return
		}
		runtime.UnlockOSThread()
	}()
	c.protected()
}

// protected calls fn and keeps a panic from ending the program on this stack.
func (c *call) protected() {
	defer func() {
		if v := recover(); v != nil {
			c.panicked = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	c.entered = true
	c.err = c.fn()
	c.returned = true
}

// enter moves the calling thread to ns.
func (ns *NS) enter() error {
	return os.NewSyscallError("setns", unix.Setns(ns.FD(), unix.CLONE_NEWNET))
}
