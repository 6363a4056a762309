package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/attach/routing"
	"railhead/internal/cnicall"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

const checkConfig = `{"cniVersion":"1.0.0","name":"gpu","type":"coordinator"}`

// givenOn are the addresses that the plugins in front of coordinator give a rail.
func givenOn(n int) []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("172.16.%d.9/24", 11+n)), netip.MustParsePrefix(fmt.Sprintf("fd00:%d::9/64", 11+n)),
	}
}

// newDualWorld is a world whose node speaks IPv6 as well.
func newDualWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	quiet(t, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "0")
	w.must(w.node, rtnl.LinkSet{Index: 1, Up: new(true)})
	w.has(w.node, 1, "fd00:20::4/128")
	return w
}

// has adds addresses to a link, as whoever may do so.
func (w *world) has(c *rtnl.Client, index int, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		prefix := netip.MustParsePrefix(text)
		w.must(c, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: index, Prefix: prefix, NoDAD: prefix.Addr().Is6()}})
	}
}

// giveBelow makes a rail with addresses of both families, and returns the result.
func (w *world) giveBelow(s *box, name string, n int) json.RawMessage {
	w.t.Helper()
	w.must(w.node, rtnl.LinkAdd{Name: name, Kind: "macvlan", Mode: "bridge", Parent: 110 + n, NetNS: int(s.file.Fd()), Index: 20 + n, Up: true})
	result := types100.Result{CNIVersion: "1.0.0", Interfaces: []*types100.Interface{{Name: rail(n)}, {Name: name, Sandbox: s.path}}}
	for _, prefix := range givenOn(n) {
		w.has(s.client, 20+n, prefix.String())
		result.IPs = append(result.IPs, &types100.IPConfig{Address: ipNet(prefix), Interface: new(1)})
	}
	// One of the node's own that a plugin tells of as well.
	result.IPs = append(result.IPs, &types100.IPConfig{Address: ipNet(netip.MustParsePrefix("192.0.2.99/32")), Interface: new(0)})
	prev, err := json.Marshal(result)
	if err != nil {
		w.t.Fatal(err)
	}
	return prev
}

// route makes the coordinator call of an interface.
func (w *world) route(s *box, name string, prev json.RawMessage) {
	w.t.Helper()
	w.below(s, cnicall.Add, pluginCoordinator, name, fmt.Sprintf(`{"cniVersion":"1.0.0","name":"gpu","type":"coordinator","prevResult":%s}`, prev))
}

// led is how the node leads to pods: its routes and rules for them, and the neighbours
// that it need not ask for.
func (w *world) led() []string {
	w.t.Helper()
	routes, err1 := w.node.Routes()
	rules, err2 := w.node.Rules()
	neighbours, err3 := w.node.Neighbours()
	if err := errors.Join(err1, err2, err3); err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, r := range routes {
		if r.Table == 500 {
			list = append(list, "route "+r.Dst.Addr().String())
		}
	}
	for _, r := range rules {
		if r.Table == 500 {
			list = append(list, "rule "+r.Family)
		}
	}
	for _, n := range neighbours {
		if n.State == "permanent" {
			list = append(list, "neighbour "+n.IP.String())
		}
	}
	slices.Sort(list)
	return list
}

// isLed wants the node to lead to these rails' addresses, and to nothing else of the pod.
func (w *world) isLed(at string, rails ...int) {
	w.t.Helper()
	want := []string{"rule inet", "rule inet6"}
	for _, n := range rails {
		for _, prefix := range givenOn(n) {
			want = append(want, "route "+prefix.Addr().String(), "neighbour "+prefix.Addr().String())
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, w.led()); diff != "" {
		w.t.Errorf("%s, how the node leads to pods (-want +got):\n%s", at, diff)
	}
}

// goOn goes on with the server, or with one that is started anew.
func (w *world) goOn(restart bool) {
	if restart {
		w.stop()
		w.start()
	}
}

// TestCoordinatorGiven has a pod take addresses of others, before another of its
// interfaces comes and on that: the node leads to what it was given, and no further.
func TestCoordinatorGiven(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"the same agent": false, "another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newDualWorld(t)
				s := w.sandbox("box1", "train")
				if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
					t.Fatal(err)
				}
				w.has(s.client, 3, "fd85::1/128")
				before := w.led()
				w.route(s, "net1", w.giveBelow(s, "net1", 0))
				w.isLed("net1", 0)
				w.has(s.client, 20, "192.0.2.66/32", "192.0.2.99/32", "172.16.11.66/24", "fd00:66::66/128", "fd00:11::66/64")
				w.has(s.client, 3, "192.0.2.67/32", "fd00:66::67/128")
				w.goOn(restart)
				prev := w.giveBelow(s, "net2", 1)
				w.has(s.client, 21, "192.0.2.68/32", "fd00:66::68/128")
				w.route(s, "net2", prev)
				w.isLed("net2", 0, 1)
				w.wantsNotes("box1/coordinator",
					"net1: 3 of its IPv4 addresses, such as 192.0.2.66, are in no plugin's result: the node reaches them by its network only",
					"net1: 2 of its IPv6 addresses, such as fd00:", "net2: 1 of its IPv6 addresses, such as fd00:66::68,")
				for _, from := range []string{"10.233.119.1/32 mark 0 table 99", "fd85::1/128 mark 0 table 99", "172.16.11.9/32 mark 0 table 100", "fd00:12::9/128 mark 0 table 101"} {
					if !slices.ContainsFunc(w.routed(s), func(text string) bool { return strings.Contains(text, "from "+from) }) {
						t.Errorf("no rule from %s in the pod", from)
					}
				}
				w.goOn(restart)
				w.below(s, cnicall.Check, pluginCoordinator, "net2", checkConfig)
				w.below(s, cnicall.Del, pluginCoordinator, "net2", checkConfig)
				if diff := cmp.Diff(before, w.led()); diff != "" {
					t.Errorf("left behind (-before +after):\n%s", diff)
				}
				w.checkNothingLeft()
			})
		})
	}
}

// wantsNotes wants an attachment to have notes that begin so.
func (w *world) wantsNotes(id string, beginnings ...string) {
	w.t.Helper()
	att, _ := w.server.config.Records.Get(id)
	notes := att.Whole().Notes
	for _, beginning := range beginnings {
		if !slices.ContainsFunc(notes, func(note string) bool { return strings.HasPrefix(note, beginning) }) {
			w.t.Errorf("notes of %s: %q, want one that begins with %q", id, notes, beginning)
		}
	}
}

// TestCoordinatorGivenUnderlay is the same for a pod whose first interface is a rail: the
// node still leads to that one's own addresses.
func TestCoordinatorGivenUnderlay(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"the same agent": false, "another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newDualWorld(t)
				w.cluster.pod("under", map[string]string{cniv1.AnnotationNetworks: "ai/gpu2"})
				s := w.sandbox("box1", "under")
				w.route(s, "eth0", w.giveBelow(s, "eth0", 0))
				w.isLed("eth0", 0)
				w.has(s.client, 20, "192.0.2.67/32", "fd00:66::67/128")
				w.goOn(restart)
				w.route(s, "net1", w.giveBelow(s, "net1", 1))
				w.isLed("net1", 0, 1)
				w.below(s, cnicall.Del, pluginCoordinator, "net1", checkConfig)
				w.checkNothingLeft()
			})
		})
	}
}

// TestCoordinatorGivenBefore has an older agent have led the node to an address that the
// pod took: with the next call that ends.
func TestCoordinatorGivenBefore(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newDualWorld(t)
		s := w.sandbox("box1", "train")
		if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
			t.Fatal(err)
		}
		w.has(s.client, 3, "fd85::1/128")
		w.route(s, "net1", w.giveBelow(s, "net1", 0))
		taken := netip.MustParsePrefix("192.0.2.66/32")
		w.has(s.client, 20, taken.String())
		w.must(w.node, rtnl.RouteAdd{Route: rtnl.Route{Dst: taken, Table: 500, LinkIndex: 301, Scope: "link"}})
		att, _ := w.server.config.Records.Get("box1/coordinator")
		plan := *att.Plan
		plan.Routing.Host.Routes = append(slices.Clone(plan.Routing.Host.Routes), routing.Route{
			Owner: "net1", Why: routing.WhyPod, Table: 500, Dst: taken, Dev: "cali1", Scope: routing.ScopeLink,
		})
		att.Plan = &plan
		if _, err := w.server.put(att); err != nil {
			t.Fatal(err)
		}
		w.goOn(true)
		w.route(s, "net2", w.giveBelow(s, "net2", 1))
		w.isLed("net2", 0, 1)
		w.below(s, cnicall.Del, pluginCoordinator, "net2", checkConfig)
		w.checkNothingLeft()
	})
}

// TestGivenByDelegate has the node led to what a plugin of another's answered with, where
// that makes an interface that is coordinated, and not to what else is on it.
func TestGivenByDelegate(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newDualWorld(t)
		w.cluster.nad("ovs", `{"cniVersion":"1.0.0","name":"ovs","plugins":[{"type":"ovs"},{"type":"coordinator"}]}`)
		w.cluster.pod("other", map[string]string{cniv1.AnnotationNetworks: "ai/ovs"})
		s := w.sandbox("box1", "other")
		before := w.led()
		w.delegate.results = map[string]*types100.Result{}
		w.delegate.during = func(_ context.Context, call string) error {
			switch call {
			case "ADD calico":
				w.has(s.client, 3, "fd85::1/128")
				var result types100.Result
				if err := json.Unmarshal(w.giveBelow(s, "net1", 0), &result); err != nil {
					return err
				}
				w.has(s.client, 20, "192.0.2.66/32", "192.0.2.99/32", "fd00:66::66/128")
				w.delegate.results["ovs"] = &result
			case "DEL ovs":
				return errors.Join(s.client.Do(rtnl.LinkDelete{Name: "net1"})...)
			}
			return nil
		}
		w.ok(s, cnicall.Add)
		w.isLed("net1", 0)
		w.wantsNotes("box1", "net1: 2 of its IPv4 addresses, such as 192.0.2.66,", "net1: 1 of its IPv6 addresses, such as fd00:66::66,")
		w.ok(s, cnicall.Check)
		w.ok(s, cnicall.Del)
		if diff := cmp.Diff(before, w.led()); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
	})
}
