// Package loopback is for tests: addresses for programs that are told where to listen.
package loopback

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Reserve returns an address of the loopback interface whose port nobody else is
// given as long as the socket is open. That does not listen, so that whoever asks
// for this very address gets it.
func Reserve() (address string, keep *os.File, err error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, os.NewSyscallError("socket", err)
	}
	keep = os.NewFile(uintptr(socket), "port")
	err = errors.Join(
		unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
	)
	if err != nil {
		return "", nil, errors.Join(err, keep.Close())
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		return "", nil, errors.Join(err, keep.Close())
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port), keep, nil
}

// Address is an address that [Reserve] keeps until the test ends.
func Address(tb testing.TB) string {
	tb.Helper()
	address, keep, err := Reserve()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = keep.Close() })
	return address
}
