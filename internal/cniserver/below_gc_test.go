package cniserver

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestBelowGC takes away what Multus does not list any more, network by network.
func TestBelowGC(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s, other := w.sandbox("box1", "train"), w.sandbox("box2", "train")
		before := w.snapshot(s)
		if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
			t.Fatal(err)
		}
		w.attachBelow(s, 0)
		w.attachBelow(s, 1)
		w.below(other, cnicall.Add, pluginIPAM, "net1", macvlanConfig(0))
		const none, both = "[]", `[{"containerID":"box1","ifname":"net1"},{"containerID":"box2","ifname":"net1"}]`
		for _, step := range []struct {
			plugin, network, valid string
			held                   int // sandboxes with addresses
			routed                 bool
		}{
			{pluginIPAM, "gpu1", both, 2, true},
			{pluginCoordinator, "gpu1", both, 2, true},
			{pluginIPAM, "gpu9", none, 2, true},
			{pluginIPAM, "gpu1", "null", 2, true}, // both live
			{pluginCoordinator, "gpu1", "null", 2, true},
			{pluginIPAM, "gpu1", strings.Replace(both, "box2", "box3", 1), 1, true},
			{pluginCoordinator, "gpu1", none, 1, false},
			{pluginIPAM, "gpu2", none, 1, false},
			{pluginIPAM, "gpu1", none, 0, false},
		} {
			config := `{"cniVersion":"1.1.0","name":"` + step.network + `","type":"` + step.plugin + `","cni.dev/valid-attachments":` + step.valid + `}`
			w.below(s, cnicall.GC, step.plugin, "", config)
			if held := w.addresses.held(); held != step.held {
				t.Errorf("GC %+v: %d sandboxes have addresses", step, held)
			}
			if _, routed := w.server.config.Records.Get(coordinatorID("box1")); routed != step.routed {
				t.Errorf("GC %+v: routed: %t", step, routed)
			}
		}
		for _, name := range []string{"net1", "net2", "eth0"} {
			w.must(s.client, rtnl.LinkDelete{Name: name})
		}
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
		w.fails(s.belowRequest(cnicall.GC, pluginIPAM, "", macvlanConfig(0)), cnicall.CodeConfig) // without a list
	})
}

// TestGCNoLongerBelow has what another runtime of networks left go with its
// namespace, and stay as long as that lives.
func TestGCNoLongerBelow(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
			t.Fatal(err)
		}
		w.attachBelow(s, 0)
		for _, held := range []int{1, 0} {
			w.gcAll(s)
			if n := w.addresses.held(); n != held {
				t.Errorf("%d sandboxes have addresses, want %d", n, held)
			}
			s.end()
		}
		w.checkNothingLeft()
	})
}

// TestIsAsListed tells a sandbox that a GC has to do with from one that got or lost an
// interface since that began.
func TestIsAsListed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	then := record.Attachment{At: at, State: record.Attached, Networks: []record.Network{{Interface: "net1"}}}
	for _, test := range []struct {
		name   string
		change func(*record.Attachment)
		want   bool
	}{
		{"the same", func(*record.Attachment) {}, true},
		{"attached anew", func(a *record.Attachment) { a.At = at.Add(1) }, false},
		{"being taken away", func(a *record.Attachment) { a.State = record.Detaching }, false},
		{"one more", func(a *record.Attachment) { a.Networks = append(a.Networks, record.Network{Interface: "net2"}) }, false},
		{"another", func(a *record.Attachment) { a.Networks = []record.Network{{Interface: "net2"}} }, false},
		{"none", func(a *record.Attachment) { a.Networks = nil }, false},
	} {
		now := then
		test.change(&now)
		if got := isAsListed(now, then); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
