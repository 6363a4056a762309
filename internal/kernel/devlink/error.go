package devlink

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// ErrNotSupported is the error of a question that the driver or the kernel
// does not answer (EOPNOTSUPP).
var ErrNotSupported = errors.New("not supported")

// An Error is a command that failed. Besides what Err is, a device that is not
// there (ENODEV) and a reporter that it does not have (EINVAL) are
// fs.ErrNotExist, a question that the driver does not answer (EOPNOTSUPP) is
// [ErrNotSupported] and a lack of privilege (EPERM) is fs.ErrPermission, for
// errors.Is.
type Error struct {
	Command string // "HEALTH_REPORTER_GET"
	Object  string // "pci/0000:17:00.0", "pci/0000:17:00.0 vnic"
	Err     error
}

func (e *Error) Error() string {
	return fmt.Sprintf("devlink %s, %s: %v", e.Command, e.Object, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Is reports what Err alone does not: the errnos that mean something else to
// the rest of Go. EPERM already is fs.ErrPermission.
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return errors.Is(e.Err, unix.ENODEV) || errors.Is(e.Err, unix.EINVAL)
	case ErrNotSupported:
		return errors.Is(e.Err, unix.EOPNOTSUPP)
	}
	return false
}
