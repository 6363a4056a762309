package cniserver

import (
	"errors"
	"net/netip"
	"testing"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// loseRecords has a node not know any more what it attached.
func (w *world) loseRecords() {
	w.t.Helper()
	for _, att := range w.server.config.Records.All() {
		if _, err := w.server.config.Records.Remove(att.ContainerID); err != nil {
			w.t.Fatal(err)
		}
		w.server.mu.Lock()
		delete(w.server.pods, att.ContainerID)
		w.server.mu.Unlock()
		w.server.unclaim(att.ContainerID)
	}
}

// TestLostAddresses is DEL of sandboxes whose records are lost: their addresses are
// free again where nothing has them any more and they can be given back.
func TestLostAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(w *world, s *box)
		held  int
	}{
		{name: "nothing has them"},
		{name: "the namespace is gone", spoil: func(_ *world, s *box) { s.end() }},
		{name: "the namespace is gone, as the runtime says", spoil: func(_ *world, s *box) {
			s.path = ""
			s.end()
		}},
		{name: "an interface of another's has one", held: 1, spoil: func(w *world, s *box) {
			w.must(s.client, rtnl.LinkAdd{Name: "net9", Kind: "veth", Index: 50, Peer: rtnl.VethPeer{Name: "peer9", Index: 51}},
				rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 50, Prefix: netip.MustParsePrefix("172.16.19.1/24")}})
		}},
		{name: "the journal of addresses is not open", held: 1, spoil: func(w *world, _ *box) { w.addresses.setReady(errors.New("not open")) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.cluster.pod("two", map[string]string{cniv1.AnnotationNetworks: "gpu1,gpu2"})
				s := w.sandbox("box1", "two")
				w.ok(s, cnicall.Add)
				w.rest()
				w.loseRecords()
				if tt.spoil != nil {
					tt.spoil(w, s)
				}
				w.ok(s, cnicall.Del)
				if held := w.addresses.held(); held != tt.held {
					t.Errorf("%d sandboxes have addresses, want %d", held, tt.held)
				}
			})
		})
	}
}
