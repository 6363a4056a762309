package rtnl

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ErrNotSupported is the error of a question that the driver or the kernel
// does not answer.
var ErrNotSupported = errors.New("not supported by this kernel or driver")

// Error is a refusal by the kernel. Errors.Is sees its Errno, and reports
// fs.ErrNotExist when the object is not there (ENODEV, ENOENT, and what the
// kernel says instead of a route and of an address that are not),
// fs.ErrExist when it is there already (EEXIST), fs.ErrPermission when the
// caller may not ask (EPERM, EACCES) and ErrNotSupported when nobody answers,
// as to a kind of link without its module (EOPNOTSUPP).
type Error struct {
	Object  string        // what was asked about or for: `link "eth0"`, "addresses", "add macvlan net1 on link 5"
	Request string        // RTM_GETLINK, …
	Errno   syscall.Errno // the kernel's answer
	Message string        // its explanation (extended acknowledgement), often empty
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: %v", e.Object, e.Request, e.Errno)
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap returns the Errno, which knows EPERM, EACCES and ENOENT.
func (e *Error) Unwrap() error { return e.Errno }

// Is reports what the Errno alone does not: a link that is not there is one of
// the things that do not exist.
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e.Errno == unix.ENODEV ||
			e.Errno == unix.ESRCH && e.Request == typeName(unix.RTM_DELROUTE) ||
			e.Errno == unix.EADDRNOTAVAIL && e.Request == typeName(unix.RTM_DELADDR)
	case ErrNotSupported:
		return e.Errno == unix.EOPNOTSUPP
	}
	return false
}

// refused turns what a connection returned into an *Error if the kernel
// answered, and adds the context if the socket failed.
func refused(object string, typ netlink.HeaderType, err error) error {
	if errno, message, ok := refusal(err); ok {
		return &Error{Object: object, Request: typeName(typ), Errno: errno, Message: message}
	}
	return fmt.Errorf("%s: %s: %w", object, typeName(typ), err)
}

// refusal returns what the kernel answered, if it did.
func refusal(err error) (errno syscall.Errno, message string, ok bool) {
	var op *netlink.OpError
	if !errors.As(err, &op) {
		return 0, "", false
	}
	// A failing socket has an os.SyscallError in this place.
	errno, ok = op.Err.(syscall.Errno) //nolint:errorlint // only an unwrapped Errno is the kernel's answer
	return errno, op.Message, ok
}

func isRefusal(err error) bool {
	_, _, ok := refusal(err)
	return ok
}
