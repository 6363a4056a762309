package cniserver

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/holder"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestFailures fails each part of an ADD in turn: nothing is left, and the pod
// has one Event with the error's text.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(w *world, s *box)
		mend  func(w *world, s *box)
		code  uint
		words []string
		quiet bool // no Event: there is nobody to tell
	}{
		{
			name: "network missing", code: cnicall.CodeConfig, words: []string{"ai/train", `[8]`, "gpu9"},
			spoil: func(w *world, _ *box) {
				w.cluster.pod("train", map[string]string{cniv1.AnnotationNetworks: eightNetworks() + ",ai/gpu9"})
			},
		},
		{
			name: "networks annotation", code: cnicall.CodeConfig, words: []string{"ai/train", "interface"},
			spoil: func(w *world, _ *box) {
				w.cluster.pod("train", map[string]string{cniv1.AnnotationNetworks: `[{"name":"gpu1","interface":"a/b"}]`})
			},
		},
		{
			name: "capability missing", code: cnicall.CodeConfig, words: []string{"ai/train", "portMappings"},
			spoil: func(w *world, _ *box) {
				w.cluster.pod("train", map[string]string{cniv1.AnnotationNetworks: `[{"name":"gpu1","portMappings":[{"hostPort":1,"containerPort":1}]}]`})
			},
		},
		{
			name: "plugin that is not attached yet", code: cnicall.CodeConfig, words: []string{"ai/gpu1", "sriov", "yet"},
			spoil: func(w *world, _ *box) { w.cluster.nad("gpu1", `{"type":"sriov"}`) },
		},
		{
			name: "cluster's own network missing", code: cnicall.CodeTryAgain, words: []string{"10-calico.conflist"},
			spoil: func(w *world, _ *box) { w.delegate.missing = true },
		},
		{
			name: "pool missing", code: cnicall.CodeConfig, words: []string{"ai/train", "net8", "gpu8"},
			spoil: func(w *world, _ *box) {
				p, _ := w.cluster.catalog.Pool("gpu8")
				w.cluster.removePool(p.Name)
			},
		},
		{
			name: "addresses short for now", code: cnicall.CodeTryAgain, words: []string{"ai/train", "net3", "gpu3"},
			spoil: func(w *world, _ *box) {
				w.addresses.err = &holder.ShortError{Waiting: true, Pools: []holder.PoolShort{{Interface: "net3", Pool: "gpu3", Reason: "all in use"}}}
			},
		},
		{
			name: "addresses exhausted", code: cnicall.CodeInternal, words: []string{"net3"},
			spoil: func(w *world, _ *box) {
				w.addresses.err = &holder.ShortError{Pools: []holder.PoolShort{{Interface: "net3", Pool: "gpu3", Reason: "all in use"}}}
			},
		},
		{
			name: "default network fails", code: 57, words: []string{"k8s-pod-network", "eth0", "no route to the datastore"},
			spoil: func(w *world, _ *box) { w.delegate.fail = map[string]error{"ADD portmap": errTheirs()} },
		},
		{
			name: "plan: no parent", code: cnicall.CodeInternal, words: []string{"ai/train", "net4", "enp14s0f0np0"},
			spoil: func(w *world, _ *box) { w.must(w.node, rtnl.LinkSet{Index: 113, Name: "other"}) },
			mend:  func(w *world, _ *box) { w.must(w.node, rtnl.LinkSet{Index: 113, Name: rail(3)}) },
		},
		{
			name: "apply: name taken", code: cnicall.CodeInternal, words: []string{"ai/train", "net5"},
			spoil: func(w *world, s *box) {
				w.must(s.client, rtnl.LinkAdd{Name: "net5", Kind: "veth", Index: 50, Peer: rtnl.VethPeer{Name: "other", Index: 51}})
			},
			mend: func(w *world, s *box) { w.must(s.client, rtnl.LinkDelete{Name: "net5"}) },
		},
		{
			name: "gateway down", code: cnicall.CodeInternal, words: []string{"ai/train", "net2", "172.16.12.254", "did not answer"},
			spoil: func(w *world, _ *box) {
				w.cluster.nad("gpu2", strings.Replace(railConfig(1), `{"type":"coordinator"}`, `{"type":"coordinator","detectOptions":{"retries":1,"timeout":"50ms"}}`, 1))
				w.fabricDown(1)
			},
			mend: func(w *world, _ *box) { w.fabricUp(1) },
		},
		{
			name: "third-party plugin behind ours", code: cnicall.CodeInternal, words: []string{"ai/gpu7", "net7", "no bandwidth"},
			spoil: func(w *world, _ *box) {
				w.cluster.nad("gpu7", strings.Replace(railConfig(6), `{"type":"coordinator"}`, `{"type":"coordinator"},{"type":"bandwidth"}`, 1))
				w.delegate.fail = map[string]error{"ADD bandwidth": errors.New("no bandwidth")}
			},
		},
		{
			name: "disk full", code: cnicall.CodeTryAgain, words: []string{"ai/train", "record", "no space left"},
			spoil: func(w *world, _ *box) { w.disk.fill(syscall.ENOSPC) },
			mend:  func(w *world, _ *box) { w.disk.fill(nil) },
		},
		{
			name: "API server away", code: cnicall.CodeTryAgain, quiet: true,
			spoil: func(w *world, _ *box) { w.cluster.podErr = apierrors.NewServiceUnavailable("away") },
			mend:  func(w *world, _ *box) { w.cluster.podErr = nil },
		},
		{
			name: "pod gone", code: cnicall.CodeInternal, quiet: true,
			spoil: func(w *world, s *box) { s.pod = "other" },
		},
		{
			name: "namespace gone", code: cnicall.CodeNamespace, words: []string{"CNI_NETNS", "/proc/self/fd/4711"},
			spoil: func(w *world, s *box) { s.path = "/proc/self/fd/4711" },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				s := w.sandbox("box1", "train")
				tt.spoil(w, s)
				before := w.snapshot(s)
				w.refused(s, cnicall.Add, tt.code, tt.words...)
				text := w.call(s, cnicall.Add).Msg // once more: the first left nothing in the way
				w.rest()
				if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
					t.Errorf("left behind (-before +after):\n%s", diff)
				}
				w.checkNothingLeft()
				events := w.cluster.told()
				if tt.quiet {
					if len(events) > 0 {
						t.Errorf("Events %q, want none", events)
					}
					return
				}
				if len(events) != len(slices.Compact(slices.Clone(events))) || !slices.Contains(events, "ai/train "+reasonFailed+": "+text) {
					t.Errorf("Events %q, want one for each text, with that of the last attempt:\n%s", events, text)
				}
				if tt.mend != nil {
					tt.mend(w, s)
					w.ok(s, cnicall.Add)
					w.ok(s, cnicall.Del)
				}
			})
		})
	}
}

// TestConflict has an address that another host answers for: it is put in
// quarantine.
func TestConflict(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.addresses.doubtful = true
		fabric := dialIn(t, int(w.fabric.Fd()))
		w.must(fabric, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 215, Prefix: netip.MustParsePrefix("172.16.16.1/24")}})
		w.refused(s, cnicall.Add, cnicall.CodeInternal, "net6", "172.16.16.1", "in use by")
		w.checkNothingLeft()
		if len(w.addresses.released) != 1 || !strings.Contains(w.addresses.released[0], "map[172.16.16.1:") {
			t.Errorf("released %q, want 172.16.16.1 in quarantine", w.addresses.released)
		}
		w.ok(s, cnicall.Add) // with other addresses
		if len(w.addresses.vouched) != 1 {
			t.Errorf("vouched %v, want once", w.addresses.vouched)
		}
		w.ok(s, cnicall.Del)
	})
}

// TestDelDuringAdd ends an ADD at moments of it.
func TestDelDuringAdd(t *testing.T) {
	t.Parallel()
	for _, during := range []string{"ADD calico", "ADD portmap", "ADD bandwidth"} {
		t.Run(during, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.cluster.nad("gpu7", strings.Replace(railConfig(6), `{"type":"coordinator"}`, `{"type":"coordinator"},{"type":"bandwidth"}`, 1))
				s := w.sandbox("box1", "train")
				before := w.snapshot(s)
				there := make(chan struct{})
				w.delegate.during = func(ctx context.Context, call string) error {
					if call != during {
						return nil
					}
					close(there)
					<-ctx.Done()
					return ctx.Err()
				}
				added := make(chan *cnicall.Error)
				go func() { added <- w.server.Handle(context.Background(), s.request(cnicall.Add)).Error }()
				<-there
				w.ok(s, cnicall.Del)
				if err := <-added; err == nil || err.Code != cnicall.CodeTryAgain || !strings.Contains(err.Msg, "DEL") {
					t.Errorf("ADD: %v, want that DEL ended it", err)
				}
				w.rest()
				if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
					t.Errorf("left behind (-before +after):\n%s", diff)
				}
				w.checkNothingLeft()
				if events := w.cluster.told(); len(events) > 0 {
					t.Errorf("Events %q, want none", events)
				}
			})
		})
	}
}

// TestDoubleAdd has two calls for one sandbox at once.
func TestDoubleAdd(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		answers := make(chan cnicall.Answer)
		for range 2 {
			go func() { answers <- w.server.Handle(context.Background(), s.request(cnicall.Add)) }()
		}
		first, second := <-answers, <-answers
		if first.Error != nil || second.Error != nil || string(first.Output) != string(second.Output) {
			t.Errorf("answers\n%s %v\n%s %v\nwant the same", first.Output, first.Error, second.Output, second.Error)
		}
		if calls := w.delegate.asked(); len(calls) != 2 {
			t.Errorf("plugins of others: %q, want each once", calls)
		}
		w.ok(s, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestAPIAway stops the API server: DEL and a repeated ADD need it not.
func TestAPIAway(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		answer := w.ok(s, cnicall.Add)
		w.rest()
		away := apierrors.NewServiceUnavailable("away")
		w.cluster.mu.Lock()
		w.cluster.podErr = away
		w.cluster.mu.Unlock()
		for name := range w.cluster.nads {
			delete(w.cluster.nads, name)
		}
		if again := w.ok(s, cnicall.Add); string(again) != string(answer) {
			t.Errorf("ADD again: %s, want %s", again, answer)
		}
		w.ok(s, cnicall.Check)
		w.ok(s, cnicall.Del)
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
	})
}
