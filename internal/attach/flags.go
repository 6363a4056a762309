package attach

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// flags are the two flags of a link that netlink requests cannot change alone.
type flags struct{ promisc, allMulti bool }

// linkFlags are those of a link in the calling thread's network namespace.
func linkFlags(name string) (f flags, err error) {
	err = withLink(name, func(fd int, link *unix.Ifreq) error {
		f = flags{link.Uint16()&unix.IFF_PROMISC != 0, link.Uint16()&unix.IFF_ALLMULTI != 0}
		return nil
	})
	return f, err
}

// setLinkFlags changes those that are not nil.
func setLinkFlags(name string, promisc, allMulti *bool) error {
	return withLink(name, func(fd int, link *unix.Ifreq) error {
		before := link.Uint16()
		now := withFlag(withFlag(before, unix.IFF_PROMISC, promisc), unix.IFF_ALLMULTI, allMulti)
		if now == before {
			return nil
		}
		link.SetUint16(now)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, link)
	})
}

func withFlag(flags, flag uint16, set *bool) uint16 {
	switch {
	case set == nil:
		return flags
	case *set:
		return flags | flag
	}
	return flags &^ flag
}

// withLink calls fn with a socket and the flags of a link.
func withLink(name string, fn func(fd int, link *unix.Ifreq) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("flags of link %s: %w", name, err)
	}
	defer func() { _ = unix.Close(fd) }()
	link, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, link)
	}
	if err == nil {
		err = fn(fd, link)
	}
	if err != nil {
		return fmt.Errorf("flags of link %s: %w", name, err)
	}
	return nil
}
