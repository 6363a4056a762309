package rtnl

import (
	"errors"
	"io/fs"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

func TestSubscribeErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		groups []Group
		want   string
	}{
		{name: "none", want: "no groups to subscribe to"},
		{name: "unknown", groups: []Group{Links, "linkz"}, want: `group "linkz": want "links", "addresses", "routes", "rules" or "neighbours"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Subscribe(nil, tt.groups...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// hear returns a subscription to which a kernel sends the packets in order, or
// the errors.
func hear(t *testing.T, packets ...any) *Subscription {
	t.Helper()
	conn := nltest.Dial(func([]netlink.Message) ([]netlink.Message, error) {
		next := packets[0]
		packets = packets[1:]
		if err, ok := next.(error); ok {
			return nil, err
		}
		return next.([]netlink.Message), nil
	})
	t.Cleanup(func() { _ = conn.Close() })
	return NewSubscription(conn)
}

func TestReceive(t *testing.T) {
	t.Parallel()
	bridgePort := linkMessage(3, "v1") // a port leaves its bridge, which is not the end of the link
	bridgePort.Header.Type = unix.RTM_DELLINK
	bridgePort.Data[0] = unix.AF_BRIDGE
	fdb := message(unix.RTM_NEWNEIGH, 0, neighbourBody(unix.AF_BRIDGE, 0, 0))
	gone := linkMessage(3, "v1")
	gone.Header.Type = unix.RTM_DELLINK
	bad := message(unix.RTM_NEWADDR, 0, addressBody(unix.AF_INET, 0, 0, 0))
	other := message(unix.RTM_NEWNSID, 0, make([]byte, 16))
	s := hear(t,
		[]netlink.Message{bridgePort, fdb},
		[]netlink.Message{other},
		[]netlink.Message{gone, bad, linkMessage(4, "v2")},
		unix.ENOBUFS,
		[]netlink.Message{linkMessage(5, "v3")},
		unix.ENOMEM,
	)

	events, err := s.Receive()
	if want := "address of link 3: no address"; errorText(err) != want {
		t.Errorf("error %v, want %q", err, want)
	}
	want := []Event{
		{Kind: Links, Deleted: true, Link: &Link{Index: 3, Name: "v1", Type: 1}},
		{Kind: Links, Link: &Link{Index: 4, Name: "v2", Type: 1}},
	}
	if diff := cmp.Diff(want, events, ipTypes); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if events, err := s.Receive(); !errors.Is(err, ErrOverrun) || events != nil {
		t.Errorf("got %v, %v; want %v", events, err, ErrOverrun)
	}
	if events, err := s.Receive(); err != nil || len(events) != 1 || events[0].Link.Name != "v3" {
		t.Errorf("got %+v, %v after the overrun; want v3", events, err)
	}
	if _, err := s.Receive(); !errors.Is(err, unix.ENOMEM) || errors.Is(err, ErrOverrun) {
		t.Errorf("error %v, want %v", err, unix.ENOMEM)
	}
}

// TestDeleted has the end of everything there is a group for.
func TestDeleted(t *testing.T) {
	t.Parallel()
	ends := map[netlink.HeaderType]netlink.HeaderType{
		unix.RTM_NEWLINK: unix.RTM_DELLINK, unix.RTM_NEWADDR: unix.RTM_DELADDR, unix.RTM_NEWROUTE: unix.RTM_DELROUTE,
		unix.RTM_NEWRULE: unix.RTM_DELRULE, unix.RTM_NEWNEIGH: unix.RTM_DELNEIGH,
	}
	seen := make(map[Group]bool)
	for _, m := range captured(t) {
		begin, err := parseEvents([]netlink.Message{m})
		if err != nil {
			t.Fatal(err)
		}
		m.Header.Type = ends[m.Header.Type]
		end, err := parseEvents([]netlink.Message{m})
		if err != nil {
			t.Fatal(err)
		}
		for i := range begin {
			begin[i].Deleted = true
			seen[begin[i].Kind] = true
		}
		if diff := cmp.Diff(begin, end, ipTypes); diff != "" {
			t.Errorf("end (-want +got):\n%s", diff)
		}
	}
	if len(seen) != 5 {
		t.Errorf("saw %v, want all five groups", seen)
	}
}

// await receives events until one is as wanted, and returns all up to it.
func await(t *testing.T, s *Subscription, want func(Event) bool) []Event {
	t.Helper()
	var all []Event
	for {
		events, err := s.Receive()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			all = append(all, e)
			if want(e) {
				return all
			}
		}
	}
}

func TestSubscriptionLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		s, err := Subscribe(nil, Links, Addresses, Routes, Rules, Neighbours)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		kerneltest.AddVeth(t, "v0", "v1")
		kerneltest.AddBridge(t, "br0")
		kerneltest.SetMaster(t, "v1", "br0")
		kerneltest.SetMaster(t, "v1", "")
		kerneltest.SetUp(t, "v0")
		kerneltest.SetUp(t, "v1")
		prefix := netip.MustParsePrefix("192.0.2.1/24")
		kerneltest.AddAddress(t, "v0", prefix)
		await(t, s, func(e Event) bool { return e.Address != nil && e.Address.Prefix == prefix && !e.Deleted })
		await(t, s, func(e Event) bool { return e.Route != nil && e.Route.Dst == prefix.Masked() && !e.Deleted })
		kerneltest.DeleteLink(t, "v0")
		events := await(t, s, func(e Event) bool { return e.Link != nil && e.Link.Name == "v0" && e.Deleted })
		for _, e := range events {
			if e.Link != nil && e.Link.Name == "v1" && e.Deleted {
				return // the peer goes with it, before or after
			}
		}
		await(t, s, func(e Event) bool { return e.Link != nil && e.Link.Name == "v1" && e.Deleted })
	})
}

// TestBridgePortLive takes a link out of a bridge, which the kernel announces
// as the end of a link.
func TestBridgePortLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "v0", "v1")
		kerneltest.AddBridge(t, "br0")
		kerneltest.SetMaster(t, "v1", "br0")
		s, err := Subscribe(nil, Links)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		kerneltest.SetMaster(t, "v1", "")
		kerneltest.AddVeth(t, "last", "peer")
		events := await(t, s, func(e Event) bool { return e.Link.Name == "last" })
		left := false
		for _, e := range events {
			left = left || e.Link.Name == "v1" && e.Link.MasterIndex == 0
			if e.Deleted {
				t.Errorf("%s was announced as gone", e.Link.Name)
			}
		}
		if !left {
			t.Errorf("%+v do not say that v1 left the bridge", events)
		}
	})
}

// TestOverrunLive has the kernel send more than a small buffer holds.
func TestOverrunLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		groups, err := Addresses.bitmap()
		if err != nil {
			t.Fatal(err)
		}
		socket, port, err := openSocket(nil, groups)
		if err != nil {
			t.Fatal(err)
		}
		if err := socket.conn.SetReadBuffer(1); err != nil { // the kernel makes it the least it allows
			t.Fatal(err)
		}
		s := NewSubscription(netlink.NewConn(socket, port))
		defer func() { _ = s.Close() }()
		addr := netip.MustParseAddr("10.0.0.1")
		for range 50 {
			kerneltest.AddAddress(t, "lo", netip.PrefixFrom(addr, 32))
			addr = addr.Next()
		}
		if events, err := s.Receive(); !errors.Is(err, ErrOverrun) {
			t.Fatalf("got %d events, %v; want %v", len(events), err, ErrOverrun)
		}
		if queued(t, socket) {
			t.Error("events wait that are older than the overrun: the kernel goes on dropping new ones")
		}
		last := netip.MustParsePrefix("192.0.2.1/32")
		kerneltest.AddAddress(t, "lo", last)
		await(t, s, func(e Event) bool { return e.Address.Prefix == last })
	})
}

// queued reports whether a socket has something to be read.
func queued(t *testing.T, s *routeSocket) bool {
	t.Helper()
	raw, err := s.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	err = raw.Control(func(fd uintptr) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func TestSubscriptionClose(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() { // where nothing happens
		s, err := Subscribe(nil, Links)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := s.Receive()
			ended <- err
		}()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, fs.ErrClosed) {
			t.Errorf("error %v, want %v", err, fs.ErrClosed)
		}
	})
}

// FuzzParseEvents holds that an event is of one kind and about one thing.
func FuzzParseEvents(f *testing.F) {
	for _, m := range captured(f) {
		f.Add(uint16(m.Header.Type), m.Data)
	}
	f.Fuzz(func(t *testing.T, typ uint16, b []byte) {
		events, err := parseEvents([]netlink.Message{message(netlink.HeaderType(typ), 0, b)})
		if len(events) > 1 || err != nil && events != nil {
			t.Fatalf("%d events and error %v of one message", len(events), err)
		}
		for _, e := range events {
			things := map[Group]bool{
				Links: e.Link != nil, Addresses: e.Address != nil, Routes: e.Route != nil,
				Rules: e.Rule != nil, Neighbours: e.Neighbour != nil,
			}
			for kind, there := range things {
				if there != (kind == e.Kind) {
					t.Fatalf("%+v", e)
				}
			}
		}
	})
}
