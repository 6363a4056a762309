package kerneltest

import (
	"errors"
	"io"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

// Relay returns a connection to rtnetlink in the network namespace of a file
// descriptor, 0 for the calling thread's, that asks before it passes a request on:
// one that ask returns an error for never comes to the kernel, and is refused with
// that number. It has one request under way at a time.
func Relay(tb testing.TB, ns int, ask func(netlink.Message) error) (*netlink.Conn, error) {
	tb.Helper()
	kernel, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{NetNS: ns, Strict: true})
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { _ = kernel.Close() })
	return nltest.Dial(func(requests []netlink.Message) ([]netlink.Message, error) {
		if len(requests) == 0 {
			return nil, io.EOF // there are no more answers
		}
		request := requests[0]
		if err := ask(request); err != nil {
			return refusal(request, err)
		}
		asked := request
		asked.Header.Sequence, asked.Header.PID = 0, 0 // this connection has its own
		answers, err := kernel.Execute(asked)
		if op, ok := errors.AsType[*netlink.OpError](err); ok {
			return refusal(request, op.Err)
		}
		for n := range answers {
			answers[n].Header.Sequence, answers[n].Header.PID = request.Header.Sequence, request.Header.PID
			answers[n].Header.Flags &^= netlink.Multi // all of it is here
		}
		return answers, err
	}), nil
}

// refusal is what a kernel says that refuses a request.
func refusal(request netlink.Message, err error) ([]netlink.Message, error) {
	errno, ok := errors.AsType[unix.Errno](err)
	if !ok {
		return nil, err
	}
	request.Header.Flags = 0 // of a request they mean something else
	return nltest.Error(int(errno), []netlink.Message{request})
}
