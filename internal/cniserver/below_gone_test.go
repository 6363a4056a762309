package cniserver

import (
	"context"
	"slices"
	"syscall"
	"testing"

	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// interfacesRecorded are those that the record of a sandbox has on the disk.
func (w *world) interfacesRecorded(s *box) []string {
	w.t.Helper()
	w.stop()
	w.start()
	att, _ := w.server.config.Records.Get(s.id)
	var list []string
	for _, n := range att.Networks {
		list = append(list, n.Interface)
	}
	return list
}

// TestBelowGoneRecorded has an interface go while the disk is full: it is recorded once
// there is room, by the agent that runs or when it ends.
func TestBelowGoneRecorded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		keep func(w *world)
	}{
		{"while the agent runs", func(w *world) {
			ended, end := context.WithCancel(t.Context())
			end()
			w.server.tellReady(ended) // which looks once
			w.disk.fill(syscall.ENOSPC)
		}},
		{"when it ends", func(*world) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				s := w.sandbox("box1", "train")
				w.attachBelow(s, 0)
				w.attachBelow(s, 1)
				w.disk.fill(syscall.ENOSPC)
				w.detachBelow(s, 0)
				w.disk.fill(nil)
				tt.keep(w)
				if got := w.interfacesRecorded(s); !slices.Equal(got, []string{"net2"}) {
					t.Errorf("recorded are %q, want net2", got)
				}
				w.disk.fill(nil)
				w.fails(s.belowRequest(cnicall.Check, pluginIPAM, "net1", macvlanConfig(0)), cnicall.CodeContainer)
				w.below(s, cnicall.Check, pluginIPAM, "net2", macvlanConfig(1))
				w.addressed(s, "net2 is left")
				w.detachBelow(s, 1)
				w.unaddressed(s)
				w.checkNothingLeft()
			})
		})
	}
}

// TestBelowGoneUnrecorded has the agent end on a disk that is full still: nobody can say
// any more that an interface gave its addresses back, so they are the pod's until it does
// so again.
func TestBelowGoneUnrecorded(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		for n := range 3 {
			w.attachBelow(s, n)
		}
		w.disk.fill(syscall.ENOSPC)
		w.detachBelow(s, 0)
		if got := w.interfacesRecorded(s); !slices.Equal(got, []string{"net1", "net2", "net3"}) {
			t.Fatalf("recorded are %q, want what the disk took", got)
		}
		w.detachBelow(s, 1)
		w.addressed(s, "net3 is left")
		w.detachBelow(s, 2)
		w.addressed(s, "net1 is recorded")
		w.below(s, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0))
		w.unaddressed(s)
		w.checkNothingLeft()
	})
}

// TestBelowLinkElsewhere has the pod move an interface into a namespace of its own: other
// interfaces that go, or never came, free nothing that it uses on.
func TestBelowLinkElsewhere(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]func(*world, *box){
		"DEL of another":            func(w *world, s *box) { w.attachBelow(s, 1); w.detachBelow(s, 1) },
		"DEL of one that was never": func(w *world, s *box) { w.below(s, cnicall.Del, pluginIPAM, "net3", macvlanConfig(2)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				s, inner := w.sandbox("box1", "train"), w.sandbox("inner", "train")
				w.attachBelow(s, 0)
				w.must(s.client, rtnl.LinkSet{Index: 20, NetNS: int(inner.file.Fd())})
				others(w, s)
				w.addressed(s, "net1 is in a namespace of the pod's")
				w.below(s, cnicall.Check, pluginIPAM, "net1", macvlanConfig(0))
			})
		})
	}
}

// TestBelowNoLink gives addresses to what has no link in the pod, as a device that a
// program has for itself: that there is none does not say that it is gone.
func TestBelowNoLink(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.below(s, cnicall.Add, pluginIPAM, "net1", macvlanConfig(0))
		w.attachBelow(s, 1)
		w.below(s, cnicall.Check, pluginIPAM, "net1", macvlanConfig(0))
		w.detachBelow(s, 1)
		for range 2 {
			w.addressed(s, "net1 is left")
			w.below(s, cnicall.Check, pluginIPAM, "net1", macvlanConfig(0))
			w.below(s, cnicall.Del, pluginIPAM, "net2", macvlanConfig(1)) // again
		}
		w.below(s, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0))
		w.unaddressed(s)
		w.checkNothingLeft()
	})
}
