package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// on are the rails' addresses that links of a pod have.
func (w *world) on(s *box) []string {
	w.t.Helper()
	all, err := s.client.Addresses()
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, a := range all {
		if strings.HasPrefix(a.Prefix.String(), "172.16.") {
			list = append(list, a.Prefix.String())
		}
	}
	slices.Sort(list)
	return list
}

// unaddressed wants no addresses held, and none on a link of the pod.
func (w *world) unaddressed(s *box) {
	w.t.Helper()
	if held, on := w.addresses.held(), w.on(s); held != 0 || len(on) > 0 {
		w.t.Errorf("%d sandboxes have addresses, and %s has %q: want none", held, s.id, on)
	}
}

// addressed wants what an interface has to be held, whatever others of the pod do.
func (w *world) addressed(s *box, when string) {
	w.t.Helper()
	if on := w.on(s); w.addresses.held() == 0 {
		w.t.Errorf("%s: no addresses are held, and %s has %q", when, s.id, on)
	}
}

// half attaches two rails, and fails the third: another host has its address.
func (w *world) half(s *box) {
	w.t.Helper()
	w.addresses.doubtful = true
	w.must(dialIn(w.t, int(w.fabric.Fd())), rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 212, Prefix: netip.MustParsePrefix("172.16.13.1/24")}})
	w.attachBelow(s, 0)
	w.attachBelow(s, 1)
	w.must(w.node, rtnl.LinkAdd{Name: "net3", Kind: "macvlan", Mode: "bridge", Parent: 112, NetNS: int(s.file.Fd()), Index: 22})
	w.fails(s.belowRequest(cnicall.Add, pluginIPAM, "net3", macvlanConfig(2)), cnicall.CodeInternal, "in use by")
}

// inQuarantine wants one release, with the address that another host has.
func (w *world) inQuarantine() {
	w.t.Helper()
	if len(w.addresses.released) != 1 || !strings.Contains(w.addresses.released[0], "map[172.16.13.1:") {
		w.t.Errorf("released %q, want once, with 172.16.13.1 in quarantine", w.addresses.released)
	}
}

// TestBelowFails has one interface fail while others of the pod have addresses: these
// are nobody else's until the last of them is gone, in whatever order, asked for twice,
// by whichever agent; what another host has is in quarantine then.
func TestBelowFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		order   []string
		restart bool
	}{
		{name: "as Multus does", order: []string{"net3", "net2", "net1"}},
		{name: "as they came", order: []string{"net1", "net2"}},
		{name: "twice", order: []string{"net3", "net3", "net1", "net1", "net3", "net2", "net2"}},
		{name: "another agent", order: []string{"net2", "net3", "net1"}, restart: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				s := w.sandbox("box1", "train")
				w.half(s)
				gone := map[string]bool{}
				for _, name := range tt.order {
					w.addressed(s, "before DEL of "+name)
					if tt.restart {
						w.stop()
						w.start()
					}
					if name != "net3" && !gone[name] {
						w.below(s, cnicall.Check, pluginIPAM, name, macvlanConfig(0))
					}
					w.below(s, cnicall.Del, pluginCoordinator, name, `{"cniVersion":"1.0.0","name":"gpu","type":"coordinator"}`)
					w.below(s, cnicall.Del, pluginIPAM, name, macvlanConfig(0))
					gone[name] = true
					if gone["net1"] && gone["net2"] {
						break
					}
				}
				w.unaddressed(s)
				w.inQuarantine()
				w.below(s, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0))
				w.checkNothingLeft()
			})
		})
	}
}

// TestBelowMended has the other host give up the address: it is not in quarantine for
// what was.
func TestBelowMended(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.half(s)
		w.must(dialIn(t, int(w.fabric.Fd())), rtnl.AddressDelete{Address: rtnl.Address{LinkIndex: 212, Prefix: netip.MustParsePrefix("172.16.13.1/24")}})
		w.below(s, cnicall.Add, pluginIPAM, "net3", macvlanConfig(2))
		for n := range 3 {
			w.detachBelow(s, n)
		}
		if len(w.addresses.released) != 1 || !strings.Contains(w.addresses.released[0], "map[]") {
			t.Errorf("released %q, want nothing in quarantine", w.addresses.released)
		}
		w.checkNothingLeft()
	})
}

// TestBelowFailsCollected has GC collect what a failed attempt left.
func TestBelowFailsCollected(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.half(s)
		for _, network := range []string{"gpu3", "gpu2", "gpu1"} {
			w.addressed(s, "before GC of "+network)
			w.below(s, cnicall.GC, pluginIPAM, "", `{"cniVersion":"1.1.0","name":"`+network+`","type":"spiderpool","cni.dev/valid-attachments":[]}`)
		}
		w.unaddressed(s)
		w.inQuarantine()
		w.checkNothingLeft()
	})
}

// TestBelowFailsLost has nobody take away what a failed attempt left before its
// namespace went.
func TestBelowFailsLost(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.half(s)
		w.stop()
		s.end()
		w.start()
		w.found()
		w.inQuarantine()
		w.checkNothingLeft()
	})
}

// TestBelowLost has a pod's next sandbox take the place of one that nobody took away.
func TestBelowLost(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		one, two := w.sandbox("box1", "train"), w.sandbox("box2", "train")
		w.attachBelow(one, 0)
		one.end()
		w.below(two, cnicall.Add, pluginIPAM, "net1", macvlanConfig(0))
		for _, att := range w.server.config.Records.All() {
			if att.ContainerID != "box2" {
				t.Errorf("%s is recorded still", att.ContainerID)
			}
		}
		w.below(two, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0))
		w.checkNothingLeft()
	})
}

// TestBelowAgain has an interface asked for again, which gets the same, and fail then:
// it keeps what it has.
func TestBelowAgain(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.attachBelow(s, 0)
		w.attachBelow(s, 1)
		had, on := w.server.config.Records.All(), w.on(s)
		add := s.belowRequest(cnicall.Add, pluginIPAM, "net1", macvlanConfig(0))
		answer := w.server.Handle(t.Context(), add)
		var result types100.Result
		if err := json.Unmarshal(answer.Output, &result); answer.Error != nil || err != nil || len(result.IPs) != 1 || result.IPs[0].Address.String() != on[0] {
			t.Errorf("%s %v, want %s again", answer.Output, answer.Error, on[0])
		}
		for name, spoil := range map[string]func(error){
			"no address": func(err error) { w.addresses.err = err }, "no record": w.disk.fill,
			"late": func(err error) {
				w.addresses.after = func(context.Context) error { return err }
			},
		} {
			spoil(syscall.ENOSPC)
			if answer := w.server.Handle(t.Context(), add); answer.Error == nil {
				t.Errorf("%s: no error", name)
			}
			spoil(nil)
			if name == "late" {
				w.addresses.after = nil
			}
			if diff := cmp.Diff(on, w.on(s)); diff != "" || w.addresses.held() != 1 {
				t.Errorf("%s: %d sandboxes have addresses; those of links (-before +after):\n%s", name, w.addresses.held(), diff)
			}
			w.below(s, cnicall.Check, pluginIPAM, "net1", macvlanConfig(0))
		}
		if got := w.server.config.Records.All(); len(got) != len(had) {
			t.Errorf("records %+v, want %+v", got, had)
		}
		w.detachBelow(s, 0)
		w.addressed(s, "net2 is left")
		w.detachBelow(s, 1)
		w.unaddressed(s)
		w.checkNothingLeft()
	})
}

// TestBelowFirstFails has the first interface's call fail at each point: what the pod was
// given is free again, though no DEL finds a record of it.
func TestBelowFirstFails(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		for name, spoil := range map[string]func(error){
			"late":      func(err error) { w.addresses.after = func(context.Context) error { return err } },
			"no record": w.disk.fill,
			"unsynced":  func(err error) { w.disk.unsynced(func() error { return err }) },
		} {
			spoil(syscall.ENOSPC)
			if answer := w.server.Handle(t.Context(), s.belowRequest(cnicall.Add, pluginIPAM, "net1", macvlanConfig(0))); answer.Error == nil {
				t.Errorf("%s: no error", name)
			}
			spoil(nil)
			w.addresses.after = nil
			w.unaddressed(s)
			w.checkNothingLeft()
		}
	})
}

// TestBelowUnaddressed has interfaces stay that gave their addresses back, as where the
// plugin that made them fails then.
func TestBelowUnaddressed(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.attachBelow(s, 0)
		w.attachBelow(s, 1)
		w.below(s, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0)) // and none of coordinator
		if diff := cmp.Diff([]string{"172.16.12.1/24"}, w.on(s)); diff != "" {
			t.Errorf("addresses after DEL of net1 (-want +got):\n%s", diff)
		}
		w.below(s, cnicall.Del, pluginIPAM, "net2", macvlanConfig(1))
		w.unaddressed(s)
		w.checkNothingLeft()
	})
}

// TestBelowMasquerades leaves an address to the plugin that has to undo what it did for
// it on the node.
func TestBelowMasquerades(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		config := strings.Replace(macvlanConfig(0), `"mode"`, `"ipMasq":true,"mode"`, 1)
		w.must(w.node, rtnl.LinkAdd{Name: "net1", Kind: "macvlan", Mode: "bridge", Parent: 110, NetNS: int(s.file.Fd()), Index: 20, Up: true})
		w.below(s, cnicall.Add, pluginIPAM, "net1", config)
		w.must(s.client, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 20, Prefix: netip.MustParsePrefix("172.16.11.1/24")}})
		w.below(s, cnicall.Del, pluginIPAM, "net1", config)
		if on := w.on(s); len(on) != 1 {
			t.Errorf("addresses %q, want the one that there was", on)
		}
		w.checkNothingLeft()
	})
}

// TestBelowFullDisk has interfaces go whose DEL cannot be recorded.
func TestBelowFullDisk(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		for n := range 3 {
			w.attachBelow(s, n)
		}
		w.disk.fill(syscall.ENOSPC)
		w.detachBelow(s, 2)
		w.fails(s.belowRequest(cnicall.Check, pluginIPAM, "net3", macvlanConfig(2)), cnicall.CodeContainer)
		w.disk.fill(nil)
		w.makeBelow(s, 2)
		w.disk.fill(syscall.ENOSPC)
		w.detachBelow(s, 0)
		w.detachBelow(s, 1)
		w.addressed(s, "net3 came again")
		w.detachBelow(s, 2)
		w.unaddressed(s)
		w.checkNothingLeft()
	})
}

// TestBelowInterrupted has DEL come while ADD still waits for addresses.
func TestBelowInterrupted(t *testing.T) {
	t.Parallel()
	for _, attached := range []int{0, 1} {
		t.Run(fmt.Sprint(attached, " before"), func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				s := w.sandbox("box1", "train")
				for n := range attached {
					w.attachBelow(s, n)
				}
				waits := make(chan struct{})
				w.addresses.after = func(ctx context.Context) error {
					close(waits)
					<-ctx.Done()
					return errors.New("nobody waits")
				}
				ended := make(chan *cnicall.Error, 1)
				name := fmt.Sprintf("net%d", attached+1)
				go func() {
					ended <- w.server.Handle(t.Context(), s.belowRequest(cnicall.Add, pluginIPAM, name, macvlanConfig(attached))).Error
				}()
				<-waits
				w.below(s, cnicall.Del, pluginIPAM, name, macvlanConfig(attached))
				if err := <-ended; err == nil || err.Code != cnicall.CodeTryAgain || !strings.Contains(err.Msg, "DEL of the same sandbox") {
					t.Errorf("ADD: %v, want it ended by DEL", err)
				}
				if n := w.addresses.held(); n != attached {
					t.Errorf("%d sandboxes have addresses, want %d", n, attached)
				}
				for n := range attached {
					w.detachBelow(s, n)
				}
				w.rest()
				if told := w.cluster.told(); len(told) > 0 {
					t.Errorf("Events %q, want none of what DEL ended", told)
				}
				w.checkNothingLeft()
			})
		})
	}
}

// TestBelowElsewhere has who calls count interfaces otherwise than the pod's annotation
// does: no network is given an address of another's.
func TestBelowElsewhere(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.below(s, cnicall.Add, pluginIPAM, "net1", macvlanConfig(7))
		w.fails(s.belowRequest(cnicall.Add, pluginIPAM, "net2", macvlanConfig(0)), cnicall.CodeConfig, "SpiderIPPool gpu2")
		w.below(s, cnicall.Del, pluginIPAM, "net1", macvlanConfig(7))
		w.checkNothingLeft()
	})
}

// TestBelowHalf refuses to give addresses to what is ours and half taken away, and leaves
// it to its own DEL.
func TestBelowHalf(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		own := w.sandbox("box1", "train")
		w.ok(own, cnicall.Add)
		att, _ := w.server.config.Records.Get("box1")
		att.State = record.Detaching
		if _, err := w.server.put(att); err != nil {
			t.Fatal(err)
		}
		w.fails(own.belowRequest(cnicall.Add, pluginIPAM, "net9", macvlanConfig(0)), cnicall.CodeConfig, ownPlugin)
		if _, ok := w.server.config.Records.Get("box1"); !ok {
			t.Error("there is no record any more")
		}
		w.ok(own, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestBelowElse has calls find what is not theirs to go on from.
func TestBelowElse(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		one, other := w.sandbox("box1", "train"), w.sandbox("box1", "train")
		w.attachBelow(one, 0)
		w.attachBelow(one, 1)
		w.attachBelow(other, 0) // as if the node had begun anew
		for id, want := range map[string]int{"box1": 1, coordinatorID("box1"): 1} {
			if att, _ := w.server.config.Records.Get(id); len(att.Networks) != want {
				t.Errorf("record %s: %+v, want the other namespace's interface alone", id, att.Networks)
			}
		}
		w.detachBelow(other, 0)
		w.checkNothingLeft()

		own := w.sandbox("box3", "train")
		w.ok(own, cnicall.Add)
		w.fails(own.belowRequest(cnicall.Add, pluginIPAM, "net9", macvlanConfig(0)), cnicall.CodeConfig, ownPlugin)
		if att, ok := w.server.config.Records.Get("box3"); !ok || isBelow(att) || att.State != record.Attached {
			t.Errorf("record %+v, want it as it was", att)
		}
		unlock, err := w.server.sandboxes.lock(t.Context(), "box3") // as who runs a plugin that asks
		if err != nil {
			t.Fatal(err)
		}
		w.below(own, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0))
		unlock()
		w.ok(own, cnicall.Del)
		w.checkNothingLeft()
	})
}
