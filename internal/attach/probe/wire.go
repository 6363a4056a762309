package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"
)

// frameBuffer is more than any frame that we decode needs.
const frameBuffer = 256

// wire is a packet socket.
type wire struct {
	conn   *socket.Conn
	raw    syscall.RawConn
	parent string // that it listens on; "": on interfaces of the pod
}

// openWire opens a socket in a network namespace, 0 for that of the calling
// thread. It hears nothing: with a protocol from the start, it would hear all
// links until it is bound, and to leave them takes the kernel 16 ms.
func openWire(netnsFD int) (*wire, error) {
	conn, err := socket.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0, "packet", &socket.Config{NetNS: netnsFD})
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket: %w", err), conn.Close())
	}
	return &wire{conn: conn, raw: raw}, nil
}

// hear makes the socket hear claims and probes of addresses in frames of a
// protocol, on one link or, with index 0, on all.
func (w *wire) hear(index int, protocol uint16, addrs []netip.Addr) error {
	if err := w.narrow(addrs); err != nil {
		return err
	}
	if err := w.conn.Bind(&unix.SockaddrLinklayer{Protocol: networkOrder(protocol), Ifindex: index}); err != nil {
		return fmt.Errorf("packet socket: listen on link %d: %w", index, err)
	}
	return nil
}

// join has a link receive what is sent to those who have an address of IPv6. The
// kernel joins that group too, but some time after it was given the address.
func (w *wire) join(index int, addr netip.Addr) error {
	request := &unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_MULTICAST, Alen: macSize}
	mac := groupMAC(solicitedNode(addr))
	copy(request.Address[:], mac[:])
	var err error
	if closed := w.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptPacketMreq(int(fd), unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, request)
	}); closed != nil {
		return closed
	}
	return os.NewSyscallError("setsockopt PACKET_ADD_MEMBERSHIP", err)
}

// narrow changes which addresses the socket hears of.
func (w *wire) narrow(addrs []netip.Addr) error {
	program, err := filter(addrs)
	if err == nil {
		err = w.conn.SetBPF(program)
	}
	if err != nil {
		return fmt.Errorf("packet socket: filter for %d addresses: %w", len(addrs), err)
	}
	return nil
}

// send sends an Ethernet frame by a link. It waits for nothing: a frame that
// cannot be sent now is an error.
func (w *wire) send(index int, frame []byte) error {
	to := &unix.SockaddrLinklayer{
		Protocol: binary.NativeEndian.Uint16(frame[2*macSize:]), // in network order, as in the frame
		Ifindex:  index,
		Halen:    macSize,
	}
	copy(to.Addr[:], frame[:macSize])
	var err error
	if closed := w.raw.Control(func(fd uintptr) {
		err = unix.Sendto(int(fd), frame, unix.MSG_DONTWAIT, to)
	}); closed != nil {
		return closed
	}
	return os.NewSyscallError("sendto", err)
}

// arrival is what was seen on a link.
type arrival struct {
	parent string // of the wire
	index  int
	sighting
}

// arrived returns what a frame says that came from an address of a link.
func (w *wire) arrived(frame []byte, from unix.Sockaddr) (arrival, bool) {
	s, ok := decode(frame)
	link, isLink := from.(*unix.SockaddrLinklayer)
	if !ok || !isLink {
		return arrival{}, false
	}
	return arrival{w.parent, link.Ifindex, s}, true
}

// receive waits for a frame that says something about an address. Once the
// socket is closed there is an error.
func (w *wire) receive(buf []byte) (arrival, error) {
	for {
		n, from, err := w.read(buf)
		switch {
		case errors.Is(err, unix.ENETDOWN):
			continue // the link went down; it is heard again once it is up
		case err != nil:
			return arrival{}, err
		}
		if a, ok := w.arrived(buf[:n], from); ok {
			return a, nil
		}
	}
}

// await waits until there is a frame to receive, and does not receive it. Once
// the socket is closed there is an error.
func (w *wire) await() error {
	return w.raw.Read(func(fd uintptr) bool {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return ready > 0 || err != nil
	})
}

// drain calls seen for what waits to be received, while another may receive.
func (w *wire) drain(seen func(arrival)) {
	buf := make([]byte, frameBuffer)
	_ = w.raw.Control(func(fd uintptr) { // fails when closed: then there is nothing
		for {
			n, from, err := unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
			switch {
			case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN):
			case err != nil:
				return
			default:
				if a, ok := w.arrived(buf[:n], from); ok {
					seen(a)
				}
			}
		}
	})
}

// read reads one frame.
func (w *wire) read(buf []byte) (n int, from unix.Sockaddr, err error) {
	closing := w.raw.Read(func(fd uintptr) bool {
		for {
			n, from, err = unix.Recvfrom(int(fd), buf, 0)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	if closing != nil {
		return 0, nil, closing
	}
	return n, from, os.NewSyscallError("recvfrom", err)
}

// closeIn closes the socket, for which the kernel takes 16 ms, and ends a
// receive that waits.
func (w *wire) closeIn(background *sync.WaitGroup) {
	background.Go(func() { _ = w.conn.Close() }) // there is nothing in it to lose
}

// networkOrder is a protocol's number as the kernel wants it in an address.
func networkOrder(protocol uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, protocol))
}
