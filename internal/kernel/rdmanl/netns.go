package rdmanl

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mdlayher/netlink"
)

// System returns the state of the RDMA subsystem (RDMA_NLDEV_CMD_SYS_GET).
func (c *Client) System() (System, error) {
	r := request{command: CmdSysGet}
	b, err := c.get(r)
	if err != nil {
		return System{}, err
	}
	system, err := decodeSystem(b)
	if err != nil {
		return System{}, newError(r, err)
	}
	return system, nil
}

func decodeSystem(b []byte) (System, error) {
	var s System
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case AttrSysNetNSMode:
			s.NetNSMode = named(netnsModes, uint32(ad.Uint8()))
		case AttrSysCopyOnFork:
			s.CopyOnFork = new(ad.Uint8() != 0)
		case AttrSysPrivilegedQKeyMode:
			s.PrivilegedQKey = new(ad.Uint8() != 0)
		case AttrSysMonitorMode:
			s.MonitorSupport = new(ad.Uint8() != 0)
		}
	})
	if err != nil {
		return System{}, err
	}
	return s, nil
}

// SetNetNSMode makes network namespaces share devices ("shared"), or each
// device belong to one of them ("exclusive") (RDMA_NLDEV_CMD_SYS_SET). It
// needs CAP_NET_ADMIN in the initial user namespace. The error is
// syscall.EBUSY as soon as any network namespace but the initial one exists,
// so a node with pods sets the mode at boot, by the netns_mode parameter of
// ib_core.
func (c *Client) SetNetNSMode(mode string) error {
	for number, name := range netnsModes {
		if name == mode {
			return c.setNetNSMode(uint8(number))
		}
	}
	return fmt.Errorf("RDMA netns mode %q: want \"shared\" or \"exclusive\"", mode)
}

func (c *Client) setNetNSMode(mode uint8) error {
	err := c.set(request{command: CmdSysSet, more: func(ae *netlink.AttributeEncoder) {
		ae.Uint8(AttrSysNetNSMode, mode)
	}})
	return refine(err, syscall.EBUSY, finding{meaning: "other network namespaces exist; set the parameter netns_mode of ib_core at boot instead"})
}

// MoveToNetNS moves a device to the network namespace of a file descriptor
// (RDMA_NLDEV_CMD_SET with NET_NS_FD). Name and index stay; character devices
// are made anew, perhaps with other numbers; open contexts lose the device.
// The call returns when all this is done.
//
// The device must be in the namespace of the socket and in that of the calling
// thread: the kernel finds the device by the former and compares the latter. A
// caller that returns a device from a pod locks a thread, moves the thread into
// the pod's namespace, and dials there.
//
// It needs CAP_NET_ADMIN in the initial user namespace. The error is
// fs.ErrNotExist where the device is not in these namespaces, and
// ErrNotSupported in shared mode or with a driver that cannot take a device
// away from its users.
func (c *Client) MoveToNetNS(device uint32, fd int) error {
	r := request{command: CmdSet, device: &device, more: func(ae *netlink.AttributeEncoder) {
		ae.Uint32(AttrNetNSFD, uint32(fd))
	}}
	err := c.set(r)
	switch {
	case errors.Is(err, syscall.EOPNOTSUPP):
		return refine(err, syscall.EOPNOTSUPP, finding{ErrNotSupported, c.whyImmovable()})
	case errors.Is(err, syscall.ENODEV):
		return refine(err, syscall.ENODEV, finding{
			fs.ErrNotExist,
			"the device left meanwhile, or the calling thread is in another network namespace than the device",
		})
	case errors.Is(err, syscall.EBADF), errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("file descriptor %d is not that of a network namespace, or Linux is older than 5.2: %w", fd, err)
	}
	return err
}

// whyImmovable tells the two reasons for EOPNOTSUPP apart.
func (c *Client) whyImmovable() string {
	system, err := c.System()
	switch {
	case err != nil:
		return "network namespaces share devices, or the driver cannot take a device away from its users"
	case system.NetNSMode == "exclusive":
		return "the driver cannot take a device away from its users (no disassociate_ucontext)"
	}
	return "network namespaces share devices; moving needs the mode \"exclusive\""
}
