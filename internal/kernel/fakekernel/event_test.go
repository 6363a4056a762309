package fakekernel_test

import (
	"errors"
	"io/fs"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/uevent"
)

// monitored are facts of a kernel that has monitors.
func monitored() fakekernel.Facts {
	f := facts()
	f.System.MonitorSupport = new(true)
	return f
}

func TestSubscribe(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(facts())
	all, addresses := k.Subscribe(rtnl.Links, rtnl.Addresses), k.Subscribe(rtnl.Addresses)
	closeAtEnd(t, all, addresses)
	link := facts().Links[1]
	address := rtnl.Address{LinkIndex: 2, Prefix: netip.MustParsePrefix("172.16.1.2/24"), Scope: "global"}
	k.SendLink(link, false)
	k.SendLink(link, true)
	k.SendAddress(address, false)
	k.SendAddress(address, true)
	ofAddress := []rtnl.Event{{Kind: rtnl.Addresses, Address: &address}, {Kind: rtnl.Addresses, Deleted: true, Address: &address}}
	want := append([]rtnl.Event{{Kind: rtnl.Links, Link: &link}, {Kind: rtnl.Links, Deleted: true, Link: &link}}, ofAddress...)
	for s, want := range map[*rtnl.Subscription][]rtnl.Event{all: want, addresses: ofAddress} {
		got, err := s.Receive()
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(rtnl.Address{})); err != nil || diff != "" {
			t.Errorf("events: error %v (-want +got):\n%s", err, diff)
		}
	}
}

func TestMonitor(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(monitored())
	m, err := k.Monitor()
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, m)
	want := []rdmanl.Event{
		{Kind: "REGISTER", DeviceName: "mlx5_0"},
		{Kind: "NETDEV_ATTACH", DeviceIndex: 4, DeviceName: "mlx5_1", Port: 1, NetdevIndex: 9, NetdevName: "eth1"},
		{Kind: "NETDEV_RENAME", NetdevIndex: 9, NetdevName: "rail1"},
	}
	for _, e := range want {
		k.SendRDMA(e)
	}
	got, err := m.Receive()
	check(t, "events", want, got, err)
	if _, err := fakekernel.New(facts()).Monitor(); !errors.Is(err, rdmanl.ErrNotSupported) {
		t.Errorf("kernel without a monitor: %v, want %v", err, rdmanl.ErrNotSupported)
	}
}

func TestUevents(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(facts())
	l := k.Uevents()
	closeAtEnd(t, l)
	e := uevent.Event{Action: "add", DevPath: "/devices/pci0000:16/0000:16:01.0/net/eth0", Subsystem: "net", Vars: map[string]string{"INTERFACE": "eth0"}}
	k.SendUevent(e)
	k.SendUevent(uevent.Event{Action: "remove", DevPath: e.DevPath, Seq: 77})
	e.Seq = 1
	e.Vars = map[string]string{"INTERFACE": "eth0", "ACTION": "add", "DEVPATH": e.DevPath, "SUBSYSTEM": "net", "SEQNUM": "1"}
	got, err := l.Receive()
	check(t, "first event", e, got, err)
	got, err = l.Receive()
	check(t, "second event", uevent.Event{
		Action: "remove", DevPath: e.DevPath, Seq: 77, Vars: map[string]string{"ACTION": "remove", "DEVPATH": e.DevPath, "SEQNUM": "77"},
	}, got, err)
}

// TestBlockedReceive has each kind of listener wait, hear something, and wait
// again until it is closed. The bubble ends only when all goroutines have.
func TestBlockedReceive(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, *fakekernel.Kernel) (receive func() error, end func() error, send func()){
		"links": func(_ *testing.T, k *fakekernel.Kernel) (func() error, func() error, func()) {
			s := k.Subscribe(rtnl.Links)
			return func() error { _, err := s.Receive(); return err }, s.Close, func() { k.SendLink(facts().Links[0], false) }
		},
		"RDMA": func(t *testing.T, k *fakekernel.Kernel) (func() error, func() error, func()) {
			t.Helper()
			m, err := k.Monitor()
			if err != nil {
				t.Fatal(err)
			}
			return func() error { _, err := m.Receive(); return err }, m.Close, func() { k.SendRDMA(rdmanl.Event{Kind: "REGISTER"}) }
		},
		"uevents": func(_ *testing.T, k *fakekernel.Kernel) (func() error, func() error, func()) {
			l := k.Uevents()
			return func() error { _, err := l.Receive(); return err }, l.Close, func() { k.SendUevent(uevent.Event{Action: "add", DevPath: "/x"}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := fakekernel.New(monitored())
				receive, end, send := open(t, k)
				errs := make(chan error)
				go func() {
					for range 2 {
						errs <- receive()
					}
				}()
				synctest.Wait() // it is blocked
				send()
				if err := <-errs; err != nil {
					t.Errorf("receive: %v", err)
				}
				synctest.Wait()
				if err := end(); err != nil {
					t.Error(err)
				}
				if err := <-errs; !errors.Is(err, fs.ErrClosed) {
					t.Errorf("receive while it is closed: %v, want %v", err, fs.ErrClosed)
				}
				send() // to nobody
			})
		})
	}
}

func TestLoseEvents(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(monitored())
	s, l := k.Subscribe(rtnl.Links), k.Uevents()
	m, err := k.Monitor()
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s, l, m)
	k.SendLink(facts().Links[0], false)
	k.LoseEvents()
	_, err = s.Receive()
	expectErr(t, "subscription", err, rtnl.ErrOverrun)
	_, err = m.Receive()
	expectErr(t, "monitor", err, rdmanl.ErrEventsLost)
	_, err = l.Receive()
	expectErr(t, "uevents", err, uevent.ErrOverrun)
	k.SendLink(facts().Links[1], false)
	events, err := s.Receive()
	if err != nil || len(events) != 1 || events[0].Link.Name != "eth0" {
		t.Errorf("events after the loss: %v: %v, want that of eth0", events, err)
	}
}

// TestOverrun sends more than waits for a listener that does not receive.
func TestOverrun(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(facts())
	l := k.Uevents()
	closeAtEnd(t, l)
	for range 10_001 {
		k.SendUevent(uevent.Event{Action: "add", DevPath: "/x"})
	}
	_, err := l.Receive()
	expectErr(t, "receive", err, uevent.ErrOverrun)
	k.SendUevent(uevent.Event{Action: "add", DevPath: "/y"})
	if e, err := l.Receive(); err != nil || e.DevPath != "/y" || e.Seq != 10_002 {
		t.Errorf("event %+v: %v, want /y with the number 10002", e, err)
	}
}
