package attachbench

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/netns"
)

// arpFrame is the length of an ARP packet for IPv4 in a frame of Ethernet.
const arpFrame = 42

// answer answers for the gateways of all rails, in the namespace where their far
// ends are. The kernel would do it too if these had addresses, and remember each
// pod that asks: its table of neighbours, which all namespaces share, would
// overflow with 100 pods.
func answer(b *testing.B, fabric *netns.NS) {
	b.Helper()
	for i := range rails {
		var f *os.File
		err := fabric.Do(func() error {
			var err error
			f, err = packetSocket(parentIndex + i)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- answerOn(f, i) }()
		b.Cleanup(func() {
			if err := errors.Join(f.Close(), <-done); err != nil {
				b.Errorf("gateway of rail %d: %v", i, err)
			}
		})
	}
}

// packetSocket sees ARP on a link of the calling thread's namespace.
func packetSocket(link int) (*os.File, error) {
	const arp = unix.ETH_P_ARP>>8 | unix.ETH_P_ARP&0xff<<8 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: arp, Ifindex: link}); err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket on link %d: %w", link, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "arp"), nil
}

// answerOn answers for a rail's gateway until the socket is closed.
func answerOn(f *os.File, rail int) error {
	mac := net.HardwareAddr{2, 0, 2, 0, 0, byte(rail)}
	frame := make([]byte, 128)
	for {
		n, err := f.Read(frame)
		switch {
		case errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return err
		case n < arpFrame || !asksFor(frame, rail):
			continue
		}
		// What the kernel has no room for now, is asked for again.
		if _, err := f.Write(reply(frame, mac)); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, unix.ENOBUFS) {
			return err
		}
	}
}

// asksFor says whether an ARP packet is a request for a rail's gateway.
func asksFor(frame []byte, rail int) bool {
	return frame[21] == 1 && bytes.Equal(frame[38:42], gateway(rail).AsSlice())
}

// reply is the answer to a request.
func reply(request []byte, mac net.HardwareAddr) []byte {
	r := bytes.Clone(request[:arpFrame])
	copy(r[0:], request[6:12]) // to who asked
	copy(r[6:], mac)
	r[21] = 2
	copy(r[22:], mac)
	copy(r[28:], request[38:42])
	copy(r[32:], request[22:32])
	return r
}
