package uevent

import "golang.org/x/sys/unix"

// SetReadBuffer sets how many bytes of events may wait.
func (l *Listener) SetReadBuffer(bytes int) error {
	return l.messages.(*kernelSocket).conn.SetReadBuffer(bytes)
}

// Port returns the netlink port of the Listener's socket.
func (l *Listener) Port() uint32 {
	sa, err := l.messages.(*kernelSocket).conn.Getsockname()
	if err != nil {
		panic(err)
	}
	return sa.(*unix.SockaddrNetlink).Pid
}
