package cniserver

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// routed are a pod's rules and routes, with names of links.
func (w *world) routed(s *box) []string {
	w.t.Helper()
	links, err := s.client.Links()
	if err != nil {
		w.t.Fatal(err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Index] = l.Name
	}
	rules, err := s.client.Rules()
	if err != nil {
		w.t.Fatal(err)
	}
	routes, err := s.client.Routes()
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, r := range rules {
		list = append(list, fmt.Sprintf("rule %d from %s mark %d table %d", r.Priority, r.Src, r.Mark, r.Table))
	}
	for _, r := range routes {
		if r.Dst.Addr().Is4() {
			list = append(list, fmt.Sprintf("table %d %s via %s dev %s src %s metric %d", r.Table, r.Dst, r.Gateway, names[r.LinkIndex], r.Src, r.Priority))
		}
	}
	slices.Sort(list)
	return list
}

// TestCoordinatorOrder routes a pod rail by rail as it is routed at once, whatever
// the order in which rails come, and leaves nothing whatever the order in which
// they go.
func TestCoordinatorOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][rails]int{{0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {3, 0, 6, 1, 7, 2, 5, 4}} {
		t.Run(strings.ReplaceAll(fmt.Sprint(order), " ", ""), func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				own := w.sandbox("box0", "train")
				w.ok(own, cnicall.Add)
				want := w.routed(own)
				w.ok(own, cnicall.Del)
				w.addresses.next = 0
				s := w.sandbox("box1", "train")
				before := w.snapshot(s)
				if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
					t.Fatal(err)
				}
				for _, n := range order {
					w.attachBelow(s, n)
				}
				if diff := cmp.Diff(want, w.routed(s)); diff != "" {
					t.Errorf("(-at once +rail by rail):\n%s", diff)
				}
				for n := range rails {
					w.below(s, cnicall.Check, pluginCoordinator, fmt.Sprintf("net%d", n+1), `{"cniVersion":"1.0.0","name":"gpu","type":"coordinator"}`)
				}
				for _, n := range slices.Backward(order[:]) {
					w.detachBelow(s, n)
				}
				w.must(s.client, rtnl.LinkDelete{Name: "eth0"})
				if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
					t.Errorf("left behind (-before +after):\n%s", diff)
				}
				w.checkNothingLeft()
			})
		})
	}
}

// detachBelow does what Multus does when a rail goes.
func (w *world) detachBelow(s *box, n int) {
	w.t.Helper()
	name := fmt.Sprintf("net%d", n+1)
	w.below(s, cnicall.Del, pluginCoordinator, name, fmt.Sprintf(`{"cniVersion":"1.0.0","name":"gpu%d","type":"coordinator"}`, n+1))
	w.below(s, cnicall.Del, pluginIPAM, name, macvlanConfig(n))
	w.must(s.client, rtnl.LinkDelete{Name: name})
}

// TestCoordinatorFailures fails the call for one rail: what was routed before is
// routed as it was, and the next attempt finds nothing in its way.
func TestCoordinatorFailures(t *testing.T) {
	t.Parallel()
	const impatient = `,"detectOptions":{"retries":1,"timeout":"50ms"}`
	for _, tt := range []struct {
		name  string
		more  string // of the coordinator that fails
		words string
		spoil func(w *world, s *box, n int)
		mend  func(w *world, s *box, n int)
	}{
		{name: "field", more: `,"mode":"sideways"`, words: "sideways"},
		{name: "plan", more: `,"podDefaultRouteNIC":"net9"`, words: "net9"},
		{
			name: "record", words: "no space left",
			spoil: func(w *world, _ *box, _ int) { w.disk.fill(syscall.ENOSPC) },
			mend:  func(w *world, _ *box, _ int) { w.disk.fill(nil) },
		},
		{
			name: "route", words: "addresses and routes",
			spoil: func(w *world, s *box, n int) { w.must(s.client, rtnl.RouteAdd{Route: inTheWay(n)}) },
			mend:  func(w *world, s *box, n int) { w.must(s.client, rtnl.RouteDelete{Route: inTheWay(n)}) },
		},
		{
			name: "gateway", more: impatient, words: "did not answer",
			spoil: func(w *world, _ *box, n int) { w.fabricDown(n) },
			mend:  func(w *world, _ *box, n int) { w.fabricUp(n) },
		},
	} {
		for _, n := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s of net%d", tt.name, n+1), func(t *testing.T) {
				t.Parallel()
				kerneltest.NetNS(t, func() {
					w := newWorld(t)
					s := w.sandbox("box1", "train")
					first := w.snapshot(s)
					if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
						t.Fatal(err)
					}
					for m := range n {
						w.attachBelow(s, m)
					}
					prev := w.makeBelow(s, n)
					if tt.spoil != nil {
						tt.spoil(w, s, n)
					}
					before, had := w.attachedNow(s), w.server.config.Records.All()
					answer := w.server.Handle(t.Context(), s.coordinatorRequest(n, prev, tt.more))
					if answer.Error == nil || !strings.Contains(answer.Error.Msg, tt.words) {
						t.Errorf("%v, want %q", answer.Error, tt.words)
					}
					if diff := cmp.Diff(before, w.attachedNow(s), comparable()...); diff != "" {
						t.Errorf("another than before (-before +after):\n%s", diff)
					}
					if diff := cmp.Diff(had, w.server.config.Records.All(), comparable()...); diff != "" {
						t.Errorf("records (-before +after):\n%s", diff)
					}
					for m := range n {
						w.below(s, cnicall.Check, pluginCoordinator, fmt.Sprintf("net%d", m+1), `{"cniVersion":"1.0.0","name":"gpu","type":"coordinator"}`)
					}
					if tt.mend != nil {
						tt.mend(w, s, n)
					}
					w.coordinate(s, n, prev)
					w.checkRules(s, n+1)
					for m := n; m >= 0; m-- {
						w.detachBelow(s, m)
					}
					w.must(s.client, rtnl.LinkDelete{Name: "eth0"})
					if diff := cmp.Diff(first, w.snapshot(s), comparable()...); diff != "" {
						t.Errorf("left behind (-before +after):\n%s", diff)
					}
					w.checkNothingLeft()
				})
			})
		}
	}
}

// inTheWay is somebody's default route in a rail's table.
func inTheWay(n int) rtnl.Route {
	return rtnl.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("169.254.1.1"), LinkIndex: 3, Table: 100 + n}
}

// TestCoordinatorRecorded has an agent that takes over know that routes are under way
// before any of them are taken away.
func TestCoordinatorRecorded(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.attachBelow(s, 0)
		w.attachBelow(s, 1)
		w.recorded("box1/coordinator", record.Attaching, record.Attached, record.Attaching, record.Attaching, record.Attached)
	})
}

// recorded wants the disk to have had a record in these states.
func (w *world) recorded(id string, want ...record.State) {
	w.t.Helper()
	data, err := w.disk.Read(record.File)
	if err != nil {
		w.t.Fatal(err)
	}
	var states []record.State
	for line := range strings.Lines(string(data)) {
		if _, text, is := strings.Cut(line, `"containerID":"`+id+`"`); is {
			_, text, _ = strings.Cut(text, `"state":"`)
			state, _, _ := strings.Cut(text, `"`)
			states = append(states, record.State(state))
		}
	}
	if diff := cmp.Diff(want, states); diff != "" {
		w.t.Errorf("states of %s on the disk (-want +got):\n%s", id, diff)
	}
}

// TestCoordinatorDefaultRoute has the main table's default route go to the interface
// that the pod names, once that one is there.
func TestCoordinatorDefaultRoute(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.cluster.pod("train", map[string]string{cniv1.AnnotationNetworks: eightNetworks(), v2beta1.AnnotationDefaultRouteNIC: "net2"})
		if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
			t.Fatal(err)
		}
		for n, want := range []string{"eth0", "net2", "net2"} {
			w.attachBelow(s, n)
			var defaults []string
			for _, text := range w.routed(s) {
				if rest, is := strings.CutPrefix(text, "table 254 0.0.0.0/0 via "); is {
					defaults = append(defaults, strings.Fields(rest)[2])
				}
			}
			if !cmp.Equal(defaults, []string{want}) {
				t.Errorf("with net%d: default routes of %q, want %s's", n+1, defaults, want)
			}
		}
	})
}

// TestCoordinatorDefaultRouteOfMultus has Multus give the pod's default route to the
// network whose element asks for that, as it does behind each interface: the pod is
// routed as at once, but for what eth0's own table has of the default route that Multus
// took away before.
func TestCoordinatorDefaultRouteOfMultus(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.cluster.pod("train", map[string]string{cniv1.AnnotationNetworks: `[{"name":"gpu1"},{"name":"gpu2","default-route":["172.16.12.254"]},{"name":"gpu3"}]`})
		own := w.sandbox("box0", "train")
		w.ok(own, cnicall.Add)
		want := slices.DeleteFunc(w.routed(own), func(text string) bool { return strings.HasPrefix(text, "table 99 0.0.0.0/0 ") })
		w.ok(own, cnicall.Del)
		w.addresses.next = 0
		s := w.sandbox("box1", "train")
		if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
			t.Fatal(err)
		}
		w.dropDefault(s, 3)
		for n := range 3 {
			w.attachBelow(s, n)
			w.dropDefault(s, 20+n)
			if n == 1 {
				w.must(s.client, rtnl.RouteAdd{Route: rtnl.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: gatewayOf(n).Prefix.Addr(), LinkIndex: 20 + n}})
			}
		}
		if diff := cmp.Diff(want, w.routed(s)); diff != "" {
			t.Errorf("(-at once +rail by rail):\n%s", diff)
		}
		for n := range 3 {
			w.below(s, cnicall.Check, pluginCoordinator, fmt.Sprintf("net%d", n+1), `{"cniVersion":"1.0.0","name":"gpu","type":"coordinator"}`)
		}
		for n := range 3 {
			w.detachBelow(s, n)
		}
		w.checkNothingLeft()
	})
}

// dropDefault takes a link's default route out of the main table.
func (w *world) dropDefault(s *box, index int) {
	w.t.Helper()
	routes, err := s.client.Routes()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range routes {
		if r.Table == 254 && r.Dst.Bits() == 0 && r.LinkIndex == index {
			w.must(s.client, rtnl.RouteDelete{Route: r})
		}
	}
}

// TestCoordinatorUnderlay has a pod's first interface be a rail, which needs a way to
// the node.
func TestCoordinatorUnderlay(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "under")
		w.cluster.pod("under", map[string]string{cniv1.AnnotationNetworks: "ai/gpu2"})
		before := w.snapshot(s)
		for n, name := range []string{"eth0", "net1"} {
			address := netip.MustParsePrefix(fmt.Sprintf("172.16.%d.9/24", 11+n))
			w.must(w.node, rtnl.LinkAdd{Name: name, Kind: "macvlan", Mode: "bridge", Parent: 110 + n, NetNS: int(s.file.Fd()), Index: 20 + n, Up: true})
			w.must(s.client, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 20 + n, Prefix: address}})
			prev, err := json.Marshal(types100.Result{CNIVersion: "1.0.0", IPs: []*types100.IPConfig{
				{Address: ipNet(address), Gateway: netip.MustParseAddr(fmt.Sprintf("172.16.%d.254", 11+n)).AsSlice()},
			}})
			if err != nil {
				t.Fatal(err)
			}
			w.below(s, cnicall.Add, pluginCoordinator, name, fmt.Sprintf(`{"cniVersion":"1.0.0","name":"gpu","type":"coordinator","prevResult":%s}`, prev))
		}
		if _, err := s.client.LinkByName("veth0"); err != nil {
			t.Error(err)
		}
		w.below(s, cnicall.Check, pluginCoordinator, "net1", `{"cniVersion":"1.0.0","name":"gpu","type":"coordinator"}`)
		w.below(s, cnicall.Del, pluginCoordinator, "net1", `{"cniVersion":"1.0.0","name":"gpu","type":"coordinator"}`)
		w.must(s.client, rtnl.LinkDelete{Name: "net1"}, rtnl.LinkDelete{Name: "eth0"})
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
	})
}
