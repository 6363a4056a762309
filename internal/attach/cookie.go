package attach

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/netns"
)

// ErrOtherNamespace says that the network namespace at the path of a Plan is not
// the one that it was made for. It is fs.ErrNotExist too.
var ErrOtherNamespace error = otherNamespace{}

type otherNamespace struct{}

func (otherNamespace) Error() string        { return "it is another one now" }
func (otherNamespace) Is(target error) bool { return target == fs.ErrNotExist }

// isNamespace compares a namespace with that of a plan. The kernel gives numbers
// of namespaces that have ended again at once, and runtimes may give paths again.
func (p *Plan) isNamespace(ns *netns.NS) error {
	if ns.ID() != p.ID {
		return fmt.Errorf("network namespace %s is %v: want %v, for which this was planned: %w", p.NetNS, ns.ID(), p.ID, ErrOtherNamespace)
	}
	if p.Cookie == 0 {
		return nil
	}
	var is uint64
	err := ns.Do(func() (err error) { is, err = cookie(); return err })
	if err == nil && is != p.Cookie {
		err = fmt.Errorf("network namespace %s is %v with cookie %d: want %d, for which this was planned: %w", p.NetNS, ns.ID(), is, p.Cookie, ErrOtherNamespace)
	}
	return err
}

// cookie is a number of the calling thread's network namespace that none had
// before it since the node was started; 0 if the kernel has none.
func cookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("cookie of the network namespace: socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent
	n, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if errors.Is(err, unix.ENOPROTOOPT) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cookie of the network namespace: %w", err)
	}
	return n, nil
}
