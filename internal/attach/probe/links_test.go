package probe

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestLinksAfterErrors loses events, cannot understand one, and loses the
// socket.
func TestLinksAfterErrors(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "rail1", "far1")
		var l links
		defer l.close()
		if err := l.open(0); err != nil {
			t.Fatal(err)
		}
		var gone []int
		note := func(index int) { gone = append(gone, index) }
		l.known = nil
		if err := l.take(change{err: rtnl.ErrOverrun}, note); err != nil {
			t.Fatal(err)
		}
		if _, ok := l.byName("rail1"); !ok || len(gone) != 1 || gone[0] != 0 {
			t.Errorf("links %v, gone %v; want all links, and that any may be gone", l.known, gone)
		}
		if err := l.take(change{err: errors.New("half a message")}, note); err != nil {
			t.Errorf("error %v of one message", err)
		}
		broken := os.NewSyscallError("recvmsg", unix.ENOMEM)
		if err := l.take(change{err: broken}, note); !errors.Is(err, unix.ENOMEM) {
			t.Errorf("error %v, want %v", err, broken)
		}
		if len(gone) != 1 {
			t.Errorf("gone %v", gone)
		}
	})
}
