package rdmanl

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/mdlayher/netlink"
)

var (
	// ErrNotSupported is what errors are when the kernel lacks NETLINK_RDMA or
	// a command, or the driver what the command is about. It is also an
	// errors.ErrUnsupported.
	ErrNotSupported = fmt.Errorf("not supported by this kernel or driver: %w", errors.ErrUnsupported)

	// ErrInterrupted is what the error of a dump is that changed under each of
	// several attempts to read it. What the last attempt read comes with it.
	ErrInterrupted = errors.New("the dump was interrupted by changes each time it was tried")

	// ErrEventsLost is what the error of Monitor.Receive is after the socket
	// overran. The monitor goes on, but devices must be read again.
	ErrEventsLost = errors.New("events were lost")

	errNoReply   = errors.New("the kernel acknowledged the request but sent no answer")
	errNoHandle  = errors.New("reply without DEV_INDEX or DEV_NAME")
	errShortAddr = errors.New("socket address is cut short")
	errNoCharDev = errors.New("reply without CHARDEV or CHARDEV_NAME")
	errNoMode    = errors.New("reply without STAT_MODE")
	errNoEvent   = errors.New("event without EVENT_TYPE")
	errNoPort    = errors.New("reply without PORT_INDEX")
	errNoCounter = errors.New("reply without STAT_COUNTER_ID")
)

// Error is a command that failed.
//
// With errors.Is it is fs.ErrNotExist when the device or port is not there or
// not in the socket's namespace, fs.ErrPermission when privileges are missing,
// ErrNotSupported when kernel or driver lack the feature, and the kernel's
// error number (a syscall.Errno) in each case.
type Error struct {
	Command Command
	Device  *uint32 // index; nil where the command is not about one device
	Port    *int    // nil where the command is not about one port
	Err     error   // the error number, or why the reply could not be read
	Message string  // the kernel's own words, from its extended acknowledgement
	Meaning string  // what it means here, where that is known

	is error // what errors.Is finds beside Err
}

// Error names command, device, error number, meaning and the kernel's words.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("rdma netlink")
	if e.Command != 0 {
		fmt.Fprintf(&b, " %v", e.Command)
	}
	if e.Device != nil {
		fmt.Fprintf(&b, " device %d", *e.Device)
	}
	if e.Port != nil {
		fmt.Fprintf(&b, " port %d", *e.Port)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Meaning != "" {
		fmt.Fprintf(&b, ": %s", e.Meaning)
	}
	if e.Message != "" {
		fmt.Fprintf(&b, " (kernel: %q)", e.Message)
	}
	return b.String()
}

// Unwrap returns the error number or decoding error.
func (e *Error) Unwrap() error { return e.Err }

// Is reports what the error is beside its number.
func (e *Error) Is(target error) bool { return e.is != nil && errors.Is(e.is, target) }

// newError returns the error of a request, without the layers of the netlink
// package.
func newError(r request, err error) *Error {
	e := &Error{Command: r.command, Device: r.device, Port: r.port, Err: err}
	if op, ok := errors.AsType[*netlink.OpError](err); ok {
		e.Err, e.Message = op.Err, op.Message
	}
	e.found(classify(err))
	return e
}

// finding is what is known of an error beyond its number.
type finding struct {
	is      error // fs.ErrNotExist, fs.ErrPermission, ErrNotSupported, …; may be nil
	meaning string
}

func (e *Error) found(f finding) { e.is, e.Meaning = f.is, f.meaning }

// classify says what an error number is, whatever the command.
func classify(err error) finding {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return finding{}
	}
	switch errno {
	case syscall.ENODEV, syscall.ENOENT, syscall.ENXIO:
		return finding{is: fs.ErrNotExist}
	case syscall.EPERM, syscall.EACCES:
		return finding{fs.ErrPermission, "CAP_NET_ADMIN in the initial user namespace is needed"}
	case syscall.EOPNOTSUPP, syscall.ENOSYS:
		return finding{is: ErrNotSupported}
	case syscall.ECONNREFUSED:
		return finding{ErrNotSupported, "nothing answers NETLINK_RDMA in this network namespace; older kernels do so in the initial one only"}
	}
	return finding{}
}

// dialError returns the error of opening a socket.
func dialError(err error) error {
	e := newError(request{}, err)
	switch {
	case errors.Is(err, syscall.EPROTONOSUPPORT):
		e.found(finding{ErrNotSupported, "the kernel has no NETLINK_RDMA: ib_core is not loaded or not built"})
	case errors.Is(err, fs.ErrPermission):
		e.found(finding{fs.ErrPermission, "entering another network namespace takes CAP_SYS_ADMIN"})
	}
	return e
}

// refine returns err with a better finding where it is the given error number.
func refine(err error, errno syscall.Errno, f finding) error {
	if e, ok := errors.AsType[*Error](err); ok && errors.Is(e.Err, errno) {
		e.found(f)
	}
	return err
}

// whyInvalid finds out what EINVAL means, and whether the device and port that
// the request is about are there by now. nldev says EINVAL to a device that is
// not there, to a port that is not there, and to a command it does not know, so
// the device is asked for.
func (c *Client) whyInvalid(r request) (why finding, isThere bool) {
	absent := finding{fs.ErrNotExist, "no such device in the socket's network namespace"}
	needs := commands[r.command].needs
	switch {
	case r.device == nil:
		return finding{ErrNotSupported, "needs " + needs}, false
	case r.command == CmdGet:
		return absent, false
	}
	device, err := c.Device(*r.device)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, false
	case err != nil:
		return finding{}, false
	case r.port != nil && (*r.port < 1 || *r.port > device.PortCount):
		return finding{fs.ErrNotExist, fmt.Sprintf("device %s has no such port, its last is %d", device.Name, device.PortCount)}, false
	case needs == "":
		return finding{}, true
	}
	return finding{ErrNotSupported, "needs " + needs}, true
}
