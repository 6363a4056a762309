package rtnl

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Error is a refusal by the kernel. Errors.Is sees its Errno, and reports
// fs.ErrNotExist when the object is not there (ENODEV, ENOENT) and
// fs.ErrPermission when the caller may not ask (EPERM, EACCES).
type Error struct {
	Object  string        // what was asked about: `link "eth0"`, "addresses"
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

// Is makes a link that is not there one of the things that do not exist.
func (e *Error) Is(target error) bool {
	return target == fs.ErrNotExist && e.Errno == unix.ENODEV
}

// refused turns what a connection returned into an *Error if the kernel
// answered, and adds the context if the socket failed.
func refused(object string, typ netlink.HeaderType, err error) error {
	var op *netlink.OpError
	if errors.As(err, &op) {
		// A failing socket has an os.SyscallError in this place.
		if errno, ok := op.Err.(syscall.Errno); ok { //nolint:errorlint // only an unwrapped Errno is the kernel's answer
			return &Error{Object: object, Request: typeName(typ), Errno: errno, Message: op.Message}
		}
	}
	return fmt.Errorf("%s: %s: %w", object, typeName(typ), err)
}
