package ethtool

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// ErrNotSupported is the error of a question that the driver or the kernel
// does not answer (EOPNOTSUPP).
var ErrNotSupported = errors.New("not supported")

// ErrStatsChanged is the error of a driver that has more or fewer statistics
// than it was asked for: the names must be read again.
var ErrStatsChanged = errors.New("number of statistics changed")

// An Error is a command that failed for a netdev. Besides what Err is, a
// netdev that is gone (ENODEV) is fs.ErrNotExist, a question the driver does
// not answer (EOPNOTSUPP) is [ErrNotSupported] and a lack of privilege (EPERM)
// is fs.ErrPermission, for errors.Is.
type Error struct {
	Command string // "LINKMODES_GET", "GSTATS"
	Netdev  string // "eth0", "ifindex 3"; empty for a dump of all
	Err     error
}

func (e *Error) Error() string {
	if e.Netdev == "" {
		return fmt.Sprintf("ethtool %s: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("ethtool %s, %s: %v", e.Command, e.Netdev, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Is reports what Err alone does not: the errnos that mean something else to
// the rest of Go. EPERM already is fs.ErrPermission.
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return errors.Is(e.Err, unix.ENODEV)
	case ErrNotSupported:
		return errors.Is(e.Err, unix.EOPNOTSUPP)
	}
	return false
}
