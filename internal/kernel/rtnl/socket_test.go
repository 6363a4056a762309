package rtnl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// packet returns messages as a socket reads them.
func packet(tb testing.TB, msgs ...netlink.Message) []byte {
	tb.Helper()
	var b []byte
	for _, m := range msgs {
		b = binary.NativeEndian.AppendUint32(b, uint32(unix.SizeofNlMsghdr+len(m.Data)))
		b = binary.NativeEndian.AppendUint16(b, uint16(m.Header.Type))
		b = binary.NativeEndian.AppendUint16(b, uint16(m.Header.Flags))
		b = append(b, words(m.Header.Sequence, m.Header.PID)...)
		b = append(b, m.Data...)
		b = append(b, make([]byte, align4(len(b))-len(b))...)
	}
	return b
}

func TestSplitMessages(t *testing.T) {
	t.Parallel()
	one := message(16, netlink.Multi, []byte{1, 2, 3})
	done := message(netlink.Done, netlink.Multi, make([]byte, 4))
	torn := message(netlink.Done, netlink.Multi|netlink.DumpInterrupted, make([]byte, 4))
	tests := []struct {
		name string
		in   []byte
		want int
		err  string
	}{
		{name: "nothing"},
		{name: "end of a dump", in: packet(t, one, one, done), want: 3},
		{name: "end of an interrupted dump", in: packet(t, one, torn), want: 1, err: ErrInterrupted.Error()},
		{name: "header cut", in: packet(t, one)[:15], err: "netlink message: 15 bytes, want a header of 16"},
		{name: "body cut", in: packet(t, one, one)[:38], want: 1, err: "netlink message: length 19 of 18 bytes"},
		{name: "length too small", in: append(words(15), make([]byte, 12)...), err: "netlink message: length 15 of 16 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got int
			var err error
			for _, e := range splitMessages(tt.in) {
				if e != nil {
					err = e
					continue
				}
				got++
			}
			if got != tt.want || errorText(err) != tt.err {
				t.Errorf("%d messages, error %q; want %d, %q", got, errorText(err), tt.want, tt.err)
			}
		})
	}
}

// FuzzSplitMessages holds that messages are pieces of the packet, in order,
// and that they make the same packet again.
func FuzzSplitMessages(f *testing.F) {
	f.Add(packet(f, captured(f)[:3]...))
	f.Add(packet(f, message(netlink.Done, netlink.Multi|netlink.DumpInterrupted, make([]byte, 4))))
	f.Add([]byte{15, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var msgs []netlink.Message
		for m, err := range splitMessages(b) {
			if err != nil {
				break
			}
			msgs = append(msgs, m)
		}
		again := packet(t, msgs...)
		for i, m := range splitMessagesOf(again) {
			if m.Header != msgs[i].Header || !bytes.Equal(m.Data, msgs[i].Data) {
				t.Fatalf("message %d is %+v, put together again %+v", i, msgs[i], m)
			}
		}
		if len(again) > align4(len(b)) {
			t.Fatalf("%d bytes of messages in %d bytes", len(again), len(b))
		}
	})
}

func splitMessagesOf(b []byte) []netlink.Message {
	var msgs []netlink.Message
	for m, err := range splitMessages(b) {
		if err == nil {
			msgs = append(msgs, m)
		}
	}
	return msgs
}

// TestInterruptedAtTheEnd takes away what a dump has not come to yet, so that
// the kernel has only its end to say on that the dump was interrupted.
func TestInterruptedAtTheEnd(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "v0", "v1")
		addr := netip.MustParseAddr("10.0.0.1")
		for range 900 { // 80 bytes each: three pieces of 32 KiB at most
			kerneltest.AddAddress(t, "v0", netip.PrefixFrom(addr, 32))
			addr = addr.Next()
		}
		s, _, err := openSocket(nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		request := message(unix.RTM_GETADDR, dumpFlags, make([]byte, unix.SizeofIfAddrmsg))
		request.Data[0] = unix.AF_INET
		request.Header.Length = uint32(unix.SizeofNlMsghdr + len(request.Data))
		if err := s.Send(request); err != nil {
			t.Fatal(err)
		}
		first, err := s.Receive()
		if err != nil {
			t.Fatal(err)
		}
		kerneltest.DeleteLink(t, "v0")
		for err == nil {
			var msgs []netlink.Message
			msgs, err = s.Receive()
			first = append(first, msgs...)
			if len(msgs) > 0 && msgs[len(msgs)-1].Header.Type == netlink.Done {
				break
			}
		}
		if !errors.Is(err, ErrInterrupted) && !interrupted(first) {
			t.Errorf("error %v after %d messages of an interrupted dump, want %v", err, len(first), ErrInterrupted)
		}
		t.Logf("%d addresses, error %v", len(first), err)
	})
}

// TestTruncated reads with a buffer too small for the answer.
func TestTruncated(t *testing.T) {
	t.Parallel()
	s, port, err := openSocket(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.most = 64
	c := New(netlink.NewConn(s, port))
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Link(1); !errors.Is(err, errTruncated) {
		t.Errorf("error %v, want %v", err, errTruncated)
	}
	if _, err := c.Links(); !errors.Is(err, errTruncated) {
		t.Errorf("list: error %v, want %v", err, errTruncated)
	}
	s.most = messageBuffer
	if l, err := c.Link(1); err != nil || l.Index != 1 { // and not the end of the list
		t.Errorf("after that: link %+v, %v", l, err)
	}
}
