package loopback

import (
	"net"
	"os"
	"testing"

	"railhead/internal/kernel/kerneltest"
)

// TestReserve wants a port that nobody is given who asks for any, here where
// there are two, and that who asks for it gets.
func TestReserve(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40001"), 0); err != nil {
			t.Fatal(err)
		}
		address, keep, err := Reserve()
		if err != nil {
			t.Fatal(err)
		}
		defer keep.Close()
		other, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil || other.Addr().String() == address {
			t.Fatalf("%v is another's, %v; %s is kept", other, err, address)
		}
		defer other.Close()
		if third, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err == nil {
			t.Errorf("%v is given to a third", third.Addr())
			_ = third.Close()
		}
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
	})
}
