package rdmanl

import (
	"fmt"
	"syscall"

	"github.com/mdlayher/netlink"
)

// SetCounterMode says how QPs of a port are to be bound to counters of their
// own from now on (RDMA_NLDEV_CMD_STAT_SET of QPs, Linux 5.3; by process 5.9).
// The mode is "auto", with ByType, ByPID or both or their AutoMask, or "none";
// what CounterMode returned for one of these can be set again. QPs that exist
// already stay as they are. Optional counters are bound where Optional says so
// (Linux 6.15); older kernels do not look at it.
//
// It needs CAP_NET_ADMIN in the initial user namespace. The error is
// syscall.EBUSY while QPs are bound to counters, and syscall.EINVAL for "none"
// where the mode is not "auto". With "none" while QPs are bound, the mode
// becomes "manual" and they stay so. The error is ErrNotSupported where the
// driver has no hardware counters.
func (c *Client) SetCounterMode(device uint32, port int, mode CounterMode) error {
	mask := mode.mask()
	switch {
	case mode.Mode == "none" && mask == 0 && mode.Optional == nil:
	case mode.Mode == "auto" && mask != 0:
	default:
		return fmt.Errorf("counter mode %q with the mask %#x: want \"auto\" by type or by process, or \"none\" alone", mode.Mode, mask)
	}
	_, err := c.get(request{command: CmdStatSet, device: &device, port: &port, more: func(ae *netlink.AttributeEncoder) {
		ae.Uint32(AttrStatRes, AttrResQP)
		ae.Uint32(AttrStatMode, modeAuto) // which an empty mask ends
		ae.Uint32(AttrStatAutoModeMask, mask)
		if mode.Optional != nil {
			ae.Uint8(AttrStatOpCounterEnabled, boolByte(*mode.Optional))
		}
	}})
	return refine(err, syscall.EBUSY, finding{meaning: "QPs are bound to counters of this port; their processes must close them first"})
}

// mask returns the mask of a mode in numbers.
func (m CounterMode) mask() uint32 {
	mask := m.AutoMask
	if m.ByType {
		mask |= maskQPType
	}
	if m.ByPID {
		mask |= maskPID
	}
	return mask
}

// BindQP binds a QP of a port to a new counter and returns the counter's ID
// (RDMA_NLDEV_CMD_STAT_SET of QPs, manual, Linux 5.3). The QP counts there from
// then on. The mode of the port becomes "manual"; the error is syscall.EINVAL
// in mode "auto" and for a QP that is bound already, fs.ErrNotExist where there
// is no such QP, and ErrNotSupported where the driver cannot bind. It needs
// CAP_NET_ADMIN in the initial user namespace.
func (c *Client) BindQP(device uint32, port int, qpn uint32) (counter uint32, err error) {
	r := request{command: CmdStatSet, device: &device, port: &port, more: func(ae *netlink.AttributeEncoder) {
		bind(ae, qpn)
	}}
	b, err := c.get(r)
	if err != nil {
		return 0, err
	}
	counter, err = decodeCounterID(b)
	if err != nil {
		return 0, newError(r, err)
	}
	return counter, nil
}

// BindQPToCounter binds a QP of a port to a counter that other QPs are bound
// to. Both QPs belong to user space, since Linux 5.9 not necessarily to the
// same process, or both to the kernel. It is otherwise as BindQP, and the error
// is fs.ErrNotExist also where there is no such counter.
func (c *Client) BindQPToCounter(device uint32, port int, qpn, counter uint32) error {
	_, err := c.get(request{command: CmdStatSet, device: &device, port: &port, more: func(ae *netlink.AttributeEncoder) {
		bind(ae, qpn)
		ae.Uint32(AttrStatCounterID, counter)
	}})
	return err
}

func bind(ae *netlink.AttributeEncoder, qpn uint32) {
	ae.Uint32(AttrStatRes, AttrResQP)
	ae.Uint32(AttrStatMode, modeManual)
	ae.Uint32(AttrResLQPN, qpn)
}

// UnbindQP takes a QP from its counter (RDMA_NLDEV_CMD_STAT_DEL, Linux 5.3).
// When it was the last, the counter goes, and what it counted moves to
// Statistics. The error is fs.ErrNotExist where there is no such QP, and
// syscall.EINVAL where it is not bound to this counter. It needs CAP_NET_ADMIN
// in the initial user namespace.
func (c *Client) UnbindQP(device uint32, port int, qpn, counter uint32) error {
	_, err := c.get(request{command: CmdStatDel, device: &device, port: &port, more: func(ae *netlink.AttributeEncoder) {
		ae.Uint32(AttrStatRes, AttrResQP)
		ae.Uint32(AttrStatCounterID, counter)
		ae.Uint32(AttrResLQPN, qpn)
	}})
	return err
}

// SetOptionalCounters switches optional counters of a port: those with the
// given indexes, which are CounterStatus.Index, are on, and all others are off
// (RDMA_NLDEV_CMD_STAT_SET with STAT_HWCOUNTERS, Linux 5.16). Whoever wants one
// more reads CounterStatuses first. The error is syscall.EINVAL for the index of
// a counter that is not optional, and then nothing is switched. It needs
// CAP_NET_ADMIN in the initial user namespace.
func (c *Client) SetOptionalCounters(device uint32, port int, indexes []uint32) error {
	_, err := c.get(request{command: CmdStatSet, device: &device, port: &port, more: func(ae *netlink.AttributeEncoder) {
		ae.Nested(AttrStatHWCounters, func(ae *netlink.AttributeEncoder) error {
			for _, index := range indexes {
				ae.Uint32(AttrStatHWCounterIndex, index)
			}
			return nil
		})
	}})
	return err
}

func decodeCounterID(b []byte) (id uint32, err error) {
	found := false
	err = attributes(b, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == AttrStatCounterID {
			id, found = ad.Uint32(), true
		}
	})
	switch {
	case err != nil:
		return 0, err
	case !found:
		return 0, errNoCounter
	}
	return id, nil
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}
