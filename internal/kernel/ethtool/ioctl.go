package ethtool

import (
	"fmt"
	"io/fs"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An ioctlSocket speaks SIOCETHTOOL on a socket. It must not be used
// concurrently.
type ioctlSocket struct {
	raw   syscall.RawConn
	req   ifreq
	errno syscall.Errno
	do    func(fd uintptr) // bound once: a closure for each call would be garbage of each sample
}

// ifreq is struct ifreq of include/uapi/linux/if.h, with the pointer in its
// union. The padding makes up the 24 bytes that the union has on 64-bit
// machines; 32-bit kernels read less.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

func newIoctlSocket(raw syscall.RawConn) *ioctlSocket {
	s := &ioctlSocket{raw: raw}
	s.do = s.syscall
	return s
}

// call sends data, which begins with an ETHTOOL_… command, to a netdev's
// driver and has the answer written over it.
func (s *ioctlSocket) call(netdev string, data []byte) error {
	if len(netdev) >= len(s.req.name) {
		return fmt.Errorf("name of %d bytes, want at most %d: %w", len(netdev), len(s.req.name)-1, unix.ENAMETOOLONG)
	}
	clear(s.req.name[:])
	copy(s.req.name[:], netdev)
	s.req.data = unsafe.Pointer(unsafe.SliceData(data))
	err := s.raw.Control(s.do)
	s.req.data = nil
	if err != nil {
		return err
	}
	if s.errno != 0 {
		return s.errno
	}
	return nil
}

func (s *ioctlSocket) syscall(fd uintptr) {
	_, _, s.errno = unix.Syscall(unix.SYS_IOCTL, fd, unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&s.req)))
}

// arenaSize holds over 500,000 statistics or their 131,000 names. It is
// address space: memory is used as far as the longest answer has reached.
const arenaSize = 4 << 20

// mapArena returns memory for answers of unknown length. ETHTOOL_GSTRINGS and
// ETHTOOL_GSTATS write as many items as the driver has by the time of the
// call, however many there is room for, so memory of the Go heap would be
// overwritten whenever a driver gets more queues between two calls. The arena
// ends at a page that cannot be written, where the kernel stops with EFAULT.
func mapArena() (mapping, arena []byte, err error) {
	guard := unix.Getpagesize()
	mapping, err = unix.Mmap(-1, 0, arenaSize+guard, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, fmt.Errorf("memory for ethtool answers, %d bytes: %w", arenaSize+guard, err)
	}
	if err := unix.Mprotect(mapping[arenaSize:], unix.PROT_NONE); err != nil {
		_ = unmapArena(mapping)
		return nil, nil, fmt.Errorf("guard page for ethtool answers: %w", err)
	}
	return mapping, mapping[:arenaSize:arenaSize], nil
}

func unmapArena(mapping []byte) error {
	if mapping == nil {
		return nil
	}
	if err := unix.Munmap(mapping); err != nil {
		return fmt.Errorf("memory for ethtool answers: %w", err)
	}
	return nil
}

// withArena calls fn with the memory for answers while no other call uses it.
// fn fills in the request and must leave nothing that points there.
func (c *Client) withArena(cmd, netdev string, fn func(arena []byte) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return &Error{Command: cmd, Netdev: netdev, Err: fs.ErrClosed}
	}
	if c.arena == nil {
		return &Error{Command: cmd, Netdev: netdev, Err: unix.EOPNOTSUPP}
	}
	if err := fn(c.arena); err != nil {
		return &Error{Command: cmd, Netdev: netdev, Err: err}
	}
	return nil
}
