package cniserver

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/attach"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// refusals is a kernel that refuses some requests.
type refusals struct {
	mu   sync.Mutex
	what func(netlink.Message) bool // nil: nothing
}

// of has requests be refused from now on.
func (r *refusals) of(what func(netlink.Message) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.what = what
}

func (r *refusals) ask(m netlink.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.what != nil && r.what(m) {
		return unix.EPERM
	}
	return nil
}

func (r *refusals) dial(t *testing.T) func(*rtnl.Config) (*rtnl.Client, error) {
	t.Helper()
	return func(config *rtnl.Config) (*rtnl.Client, error) {
		conn, err := kerneltest.Relay(t, config.NetNS, r.ask)
		if err != nil {
			return nil, err
		}
		return rtnl.New(conn), nil
	}
}

// refusing has a world's server, and its Attacher, ask a kernel that may refuse.
func (w *world) refusing() (server, attacher *refusals) {
	w.t.Helper()
	server, attacher = &refusals{}, &refusals{}
	a, err := attach.New(attach.Config{Dial: attacher.dial(w.t)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = a.Close() })
	w.stop()
	w.extend = func(c *Config) { c.Dial, c.Attacher = server.dial(w.t), a }
	w.start()
	return server, attacher
}

// kind are requests of a kind.
func kind(of netlink.HeaderType) func(netlink.Message) bool {
	return func(m netlink.Message) bool { return m.Header.Type == of }
}

// setUp are requests that set a link up, or down.
func setUp(up bool) func(netlink.Message) bool {
	return func(m netlink.Message) bool {
		return m.Header.Type == unix.RTM_SETLINK && m.Data[12]&unix.IFF_UP != 0 && (m.Data[8]&unix.IFF_UP != 0) == up
	}
}

// TestBelowProbeRefused has a link that is not up yet not be set up for a question, or
// not down behind it: the call fails, and nothing is given.
func TestBelowProbeRefused(t *testing.T) {
	t.Parallel()
	for name, up := range map[string]bool{"up": true, "down": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				server, _ := w.refusing()
				s := w.sandbox("box1", "train")
				w.addresses.doubtful = true
				w.must(w.node, rtnl.LinkAdd{Name: "net1", Kind: "macvlan", Mode: "bridge", Parent: 110, NetNS: int(s.file.Fd()), Index: 20})
				server.of(setUp(up))
				w.fails(s.belowRequest(cnicall.Add, pluginIPAM, "net1", macvlanConfig(0)), cnicall.CodeInternal, "ai/train", "net1", "operation not permitted")
				w.unaddressed(s)
				w.checkNothingLeft()
				server.of(nil)
				w.must(s.client, rtnl.LinkSet{Index: 20, Up: new(false)})
				w.below(s, cnicall.Add, pluginIPAM, "net1", macvlanConfig(0))
				if link, err := s.client.LinkByName("net1"); err != nil || link.Up {
					t.Errorf("net1 is up: %t, want it down: %v", link.Up, err)
				}
				w.below(s, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0))
				w.checkNothingLeft()
			})
		})
	}
}

// TestBelowDelRefused fails steps of the DEL of one interface: it keeps its addresses, as
// all others do, and the next DEL takes them.
func TestBelowDelRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		refuse func(server, attacher *refusals)
		on     bool // its link has its address still
	}{
		{"routes", func(_, attacher *refusals) { attacher.of(kind(unix.RTM_DELRULE)) }, true},
		{"addresses", func(server, _ *refusals) { server.of(kind(unix.RTM_DELADDR)) }, true},
		{"addresses that cannot be read", func(server, _ *refusals) { server.of(kind(unix.RTM_GETADDR)) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				server, attacher := w.refusing()
				s := w.sandbox("box1", "train")
				w.attachBelow(s, 0)
				w.attachBelow(s, 1)
				tt.refuse(server, attacher)
				w.fails(s.belowRequest(cnicall.Del, pluginIPAM, "net1", macvlanConfig(0)), cnicall.CodeInternal, "operation not permitted")
				server.of(nil)
				attacher.of(nil)
				w.below(s, cnicall.Check, pluginIPAM, "net1", macvlanConfig(0))
				if on := w.on(s); slices.Contains(on, "172.16.11.1/24") != tt.on || w.addresses.held() != 1 {
					t.Errorf("%d sandboxes have addresses, and links %q", w.addresses.held(), on)
				}
				w.detachBelow(s, 0)
				w.addressed(s, "net2 is left")
				if diff := cmp.Diff([]string{"172.16.12.1/24"}, w.on(s)); diff != "" {
					t.Errorf("addresses after DEL of net1 (-want +got):\n%s", diff)
				}
				w.detachBelow(s, 1)
				w.unaddressed(s)
				w.checkNothingLeft()
			})
		})
	}
}

// TestBelowLastRefused has the last interface's address stay on its link: it is nobody
// else's until that is gone.
func TestBelowLastRefused(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		server, _ := w.refusing()
		s := w.sandbox("box1", "train")
		w.attachBelow(s, 0)
		server.of(kind(unix.RTM_DELADDR))
		w.fails(s.belowRequest(cnicall.Del, pluginIPAM, "net1", macvlanConfig(0)), cnicall.CodeInternal, s.path, "operation not permitted")
		w.addressed(s, "DEL was refused")
		server.of(nil)
		w.below(s, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0))
		w.unaddressed(s)
		w.checkNothingLeft()
	})
}

// TestLostAddressesRefused is DEL of sandboxes whose records are lost, where nobody can
// say whether anything has their addresses, or these cannot be given back: it goes all
// the same, and the log has it.
func TestLostAddressesRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(server *refusals, addresses *stubborn)
		words string
	}{
		{"addresses cannot be read", func(server *refusals, _ *stubborn) { server.of(kind(unix.RTM_GETADDR)) }, "operation not permitted"},
		{"they cannot be given back", func(_ *refusals, addresses *stubborn) { addresses.left = 1 }, errStubborn.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				server, addresses := &refusals{}, &stubborn{fakeAddresses: w.addresses}
				w.stop()
				w.extend = func(c *Config) { c.Dial, c.Addresses = server.dial(t), addresses }
				w.start()
				w.cluster.pod("two", map[string]string{cniv1.AnnotationNetworks: "gpu1,gpu2"})
				s := w.sandbox("box1", "two")
				w.ok(s, cnicall.Add)
				w.rest()
				w.loseRecords()
				tt.spoil(server, addresses)
				w.ok(s, cnicall.Del)
				if held := w.addresses.held(); held != 1 {
					t.Errorf("%d sandboxes have addresses, want one", held)
				}
				told := 0
				for line := range strings.Lines(w.log.String()) {
					if strings.Contains(line, "free only some minutes after its pod is gone") && strings.Contains(line, tt.words) {
						told++
					}
				}
				if told != 1 {
					t.Errorf("told %d times, want once, because of %q:\n%s", told, tt.words, w.log.String())
				}
			})
		})
	}
}
