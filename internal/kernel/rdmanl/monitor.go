package rdmanl

import (
	"errors"
	"io/fs"
	"sync/atomic"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Event is a change of an RDMA device or of a port's netdev. Fields that the
// kernel does not give for the kind are zero.
type Event struct {
	Kind        string            `json:"kind"`        // "REGISTER", "UNREGISTER", "NETDEV_ATTACH", "NETDEV_DETACH", "RENAME", "NETDEV_RENAME"; the number in decimal where unknown
	DeviceIndex uint32            `json:"deviceIndex"` // means something where DeviceName is not empty
	DeviceName  string            `json:"deviceName,omitempty"`
	Port        int               `json:"port,omitempty"`
	NetdevIndex int               `json:"netdevIndex,omitempty"` // 0 where the netdev is in another namespace
	NetdevName  string            `json:"netdevName,omitempty"`
	Unknown     map[uint16][]byte `json:"unknown,omitempty"`
}

// Monitor hears of devices that come, go or change their netdev
// (RDMA_NLDEV_CMD_MONITOR, Linux 6.12; renames since 6.13). The kernel says
// nothing of a device that moves between network namespaces, nor of port
// states: those take uevents and PORT_GET.
type Monitor struct {
	conn   *netlink.Conn
	closed atomic.Bool
}

// DialMonitor opens a Monitor in a namespace: of all devices in the initial
// one while devices are shared, else of those that are in it. Devices are to be
// read after it returns, so that no change is missed. The error is
// ErrNotSupported where the kernel has no monitor.
func DialMonitor(config *Config) (*Monitor, error) {
	conn, err := dial(config)
	if err != nil {
		return nil, err
	}
	if err := join(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return NewMonitor(conn), nil
}

// NewMonitor returns a Monitor on a connection that has joined NotifyGroup. The
// Monitor owns the connection.
func NewMonitor(conn *netlink.Conn) *Monitor { return &Monitor{conn: conn} }

// join asks before it joins, as the group can be joined on any kernel.
func join(conn *netlink.Conn) error {
	if err := monitored(New(conn)); err != nil {
		return err
	}
	if err := conn.JoinGroup(NotifyGroup); err != nil {
		return newError(request{command: CmdMonitor}, err)
	}
	return nil
}

func monitored(c *Client) error {
	system, err := c.System()
	if err != nil {
		return err
	}
	if system.MonitorSupport == nil || !*system.MonitorSupport {
		e := newError(request{command: CmdMonitor}, syscall.EOPNOTSUPP)
		e.found(finding{ErrNotSupported, "needs " + commands[CmdMonitor].needs})
		return e
	}
	return nil
}

// Receive waits for events. An event that cannot be read does not hide the
// others. The error is ErrEventsLost when the socket overran, after which
// devices are to be read again and Receive goes on with the events that come
// next; it is fs.ErrClosed after Close.
func (m *Monitor) Receive() ([]Event, error) {
	r := request{command: CmdMonitor}
	for {
		messages, err := m.conn.Receive()
		if err != nil {
			return nil, m.receiveError(r, err)
		}
		events, err := decodeEach(r, monitorMessages(messages), decodeEvent)
		if len(events) > 0 || err != nil {
			return events, err
		}
	}
}

// Close closes the connection. A Receive that waits returns.
func (m *Monitor) Close() error {
	m.closed.Store(true)
	return m.conn.Close()
}

func (m *Monitor) receiveError(r request, err error) error {
	e := newError(r, err)
	switch {
	case m.closed.Load():
		e.found(finding{is: fs.ErrClosed})
	case errors.Is(err, syscall.ENOBUFS):
		m.drain()
		e.found(finding{ErrEventsLost, "events were lost; devices must be read again"})
	}
	return e
}

// drain drops what waits. The kernel says ENOBUFS once and then goes on dropping
// events, in silence, until the queue has been empty (netlink_overrun and
// netlink_rcv_wake in net/netlink/af_netlink.c).
func (m *Monitor) drain() {
	raw, err := m.conn.SyscallConn()
	if err != nil {
		return // no socket of the kernel
	}
	_ = raw.Control(func(fd uintptr) { // fails when closed, which the next Receive says
		for {
			_, _, _, _, err := unix.Recvmsg(int(fd), make([]byte, 1), nil, unix.MSG_DONTWAIT)
			if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
}

// monitorMessages drops what is not an event of nldev.
func monitorMessages(messages []netlink.Message) []netlink.Message {
	events := messages[:0]
	for _, m := range messages {
		if m.Header.Type == CmdMonitor.HeaderType() {
			events = append(events, m)
		}
	}
	return events
}

func decodeEvent(b []byte) (Event, error) {
	var e Event
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case AttrEventType:
			e.Kind = named(eventKinds, uint32(ad.Uint8()))
		case AttrDevIndex:
			e.DeviceIndex = ad.Uint32()
		case AttrDevName:
			e.DeviceName = ad.String()
		case AttrPortIndex:
			e.Port = int(ad.Uint32())
		case AttrNetdevIndex:
			e.NetdevIndex = int(ad.Uint32())
		case AttrNetdevName:
			e.NetdevName = ad.String()
		default:
			keep(&e.Unknown, ad)
		}
	})
	switch {
	case err != nil:
		return Event{}, err
	case e.Kind == "":
		return Event{}, errNoEvent
	}
	return e, nil
}
