package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/cnicall"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// belowRequest is a call of one plugin, as Multus and a main plugin make it.
func (s *box) belowRequest(command, plugin, ifName, config string) cnicall.Request {
	r := s.request(command)
	r.Plugin, r.IfName, r.Config = plugin, ifName, json.RawMessage(config)
	return r
}

func macvlanConfig(n int) string {
	return fmt.Sprintf(`{"cniVersion":"0.3.1","name":"gpu%[1]d","type":"macvlan","master":%[2]q,"mode":"bridge","ipam":{"type":"spiderpool","default_ipv4_ippool":["gpu%[1]d"]}}`, n+1, rail(n))
}

// attachBelow does what Multus does for one rail: macvlan, its IPAM, coordinator.
func (w *world) attachBelow(s *box, n int) {
	w.t.Helper()
	w.coordinate(s, n, w.makeBelow(s, n))
}

// coordinate makes the last call for a rail.
func (w *world) coordinate(s *box, n int, prev json.RawMessage) {
	w.t.Helper()
	answer := w.server.Handle(w.t.Context(), s.coordinatorRequest(n, prev, ""))
	if answer.Error != nil {
		w.t.Fatal(answer.Error)
	}
	var want, got types100.Result
	if err := errors.Join(json.Unmarshal(prev, &want), json.Unmarshal(answer.Output, &got)); err != nil || got.IPs[0].Address.String() != want.IPs[0].Address.String() {
		w.t.Errorf("coordinator answers %s, want prevResult %s: %v", answer.Output, prev, err)
	}
}

// coordinatorRequest is the last call for a rail, whose configuration says more.
func (s *box) coordinatorRequest(n int, prev json.RawMessage, more string) cnicall.Request {
	config := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"gpu%d","type":"coordinator"%s,"prevResult":%s}`, n+1, more, prev)
	return s.belowRequest(cnicall.Add, pluginCoordinator, fmt.Sprintf("net%d", n+1), config)
}

// addRoutes adds the routes of a result beside those that there are, as the plugins
// of containernetworking do.
func (w *world) addRoutes(s *box, index int, result *types100.Result) {
	w.t.Helper()
	for _, r := range result.Routes {
		dst, _ := prefixOf(r.Dst)
		gateway, _ := netip.AddrFromSlice(r.GW)
		w.must(s.client, rtnl.RouteAdd{Append: true, Route: rtnl.Route{Dst: dst, Gateway: gateway.Unmap(), LinkIndex: index}})
	}
}

// makeBelow does what is in front of coordinator, and returns the result.
func (w *world) makeBelow(s *box, n int) json.RawMessage {
	w.t.Helper()
	name := fmt.Sprintf("net%d", n+1)
	w.must(w.node, rtnl.LinkAdd{Name: name, Kind: "macvlan", Mode: "bridge", Parent: 110 + n, NetNS: int(s.file.Fd()), Index: 20 + n, Up: true})
	answer := w.server.Handle(w.t.Context(), s.belowRequest(cnicall.Add, pluginIPAM, name, macvlanConfig(n)))
	if answer.Error != nil {
		w.t.Fatal(answer.Error)
	}
	var result types100.Result
	if err := json.Unmarshal(answer.Output, &result); err != nil || len(result.IPs) != 1 || result.CNIVersion != "0.3.1" {
		w.t.Fatalf("IPAM answers %s: %v", answer.Output, err)
	}
	prefix, _ := prefixOf(result.IPs[0].Address)
	w.must(s.client, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 20 + n, Prefix: prefix}})
	w.addRoutes(s, 20+n, &result)
	result.CNIVersion = "1.0.0"
	result.Interfaces = []*types100.Interface{{Name: name, Mac: "02:00:00:00:00:01", Sandbox: s.path}}
	result.IPs[0].Interface = new(0)
	prev, err := json.Marshal(result)
	if err != nil {
		w.t.Fatal(err)
	}
	return prev
}

// TestBelow attaches eight rails one plugin after the other.
func TestBelow(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
			t.Fatal(err)
		}
		for n := range rails {
			w.attachBelow(s, n)
		}
		if w.addresses.next != 1 {
			t.Errorf("%d assignments, want one for all interfaces", w.addresses.next)
		}
		w.checkRules(s, rails)
		if n := w.server.attachments(); n != 1 {
			t.Errorf("%v sandboxes are attached, want 1, of whatever records", n)
		}
		w.stop()
		w.start() // nothing is lost
		w.below(s, cnicall.Check, pluginCoordinator, "net3", `{"cniVersion":"1.0.0","name":"gpu3","type":"coordinator"}`)
		w.below(s, cnicall.Check, pluginIPAM, "net3", macvlanConfig(2))
		for n := rails - 1; n >= 0; n-- {
			name := fmt.Sprintf("net%d", n+1)
			w.below(s, cnicall.Del, pluginCoordinator, name, `{"cniVersion":"1.0.0","name":"gpu","type":"coordinator"}`)
			w.below(s, cnicall.Del, pluginIPAM, name, macvlanConfig(n))
			w.must(s.client, rtnl.LinkDelete{Name: name})
			if held := w.addresses.held(); (held == 0) != (n == 0) {
				t.Errorf("%d sandboxes have addresses after DEL of %s", held, name)
			}
		}
		w.must(s.client, rtnl.LinkDelete{Name: "eth0"})
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
		w.below(s, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0)) // again
	})
}

// TestBelowWarns wants the pod to be told what it says in vain.
func TestBelowWarns(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.cluster.pod("odd", map[string]string{cniv1.AnnotationNetworks: "ai/gpu1", "ipam.spidernet.io/ippols": "x"})
		s := w.sandbox("box1", "odd")
		w.below(s, cnicall.Add, pluginIPAM, "net1", macvlanConfig(0))
		w.rest()
		want := []string{"ai/odd RailheadAttachWarning: attached, but annotation ipam.spidernet.io/ippols has no effect here: did you mean ipam.spidernet.io/ippools?"}
		if diff := cmp.Diff(want, w.cluster.told()); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
		w.below(s, cnicall.Del, pluginIPAM, "net1", macvlanConfig(0))
	})
}

// below makes a call that has to succeed.
func (w *world) below(s *box, command, plugin, ifName, config string) {
	w.t.Helper()
	if answer := w.server.Handle(w.t.Context(), s.belowRequest(command, plugin, ifName, config)); answer.Error != nil {
		w.t.Errorf("%s %s %s: %v", command, plugin, ifName, answer.Error)
	}
}

// checkRules wants a table for each rail.
func (w *world) checkRules(s *box, n int) {
	w.t.Helper()
	rules, err := s.client.Rules()
	if err != nil {
		w.t.Fatal(err)
	}
	tables := map[int]bool{}
	for _, r := range rules {
		tables[r.Table] = true
	}
	for i := range n {
		if !tables[100+i] {
			w.t.Errorf("no rule for table %d: %+v", 100+i, rules)
		}
	}
}

// TestBelowRefused is for what does not go.
func TestBelowRefused(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		for _, tt := range []struct {
			plugin, ifName, config string
			code                   uint
			words                  string
		}{
			{"rdma", "net1", `{"type":"rdma"}`, cnicall.CodeConfig, "plugin rdma: this release does not attach it"},
			{"sriov", "net1", `{"type":"sriov"}`, cnicall.CodeConfig, "plugin sriov"},
			{pluginIfacer, "net1", `{"type":"ifacer"}`, cnicall.CodeConfig, "pod ai/train: interface net1: plugin ifacer: field interfaces: is missing"},
			{pluginIfacer, "net1", `{"type":"ifacer","interfaces":["eth9"]}`, cnicall.CodeInternal, `plugin ifacer: parent "eth9": the node has no such link`},
			{pluginIfacer, "net1", `{"type":"ifacer","interfaces":["eth9"],"vlanID":7}`, cnicall.CodeInternal, `plugin ifacer: parent "eth9": the node has no such link`},
			{pluginIfacer, "net1", `{"type":"ifacer","cniVersion":"1.0.0","interfaces":["eth9"],"prevResult":7}`, cnicall.CodeDecode, "prevResult"},
			{pluginCoordinator, "net1", `{"cniVersion":"1.0.0","type":"coordinator"}`, cnicall.CodeConfig, "prevResult: missing"},
			{pluginIPAM, "net1", strings.Replace(macvlanConfig(0), `["gpu1"]`, `["gone"]`, 1), cnicall.CodeConfig, "ai/train: interface net1"},
		} {
			w.fails(s.belowRequest(cnicall.Add, tt.plugin, tt.ifName, tt.config), tt.code, tt.words)
			if tt.plugin != pluginIPAM && tt.plugin != pluginCoordinator {
				w.below(s, cnicall.Del, tt.plugin, tt.ifName, tt.config)
			}
		}
		w.checkNothingLeft()
	})
}

// TestBelowConflict has an address that another host has go into quarantine, also where
// an interface is not up yet, and stays so.
func TestBelowConflict(t *testing.T) {
	t.Parallel()
	for name, up := range map[string]bool{"up": true, "down": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				s := w.sandbox("box1", "train")
				w.addresses.doubtful = true
				w.must(dialIn(t, int(w.fabric.Fd())), rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 210, Prefix: netip.MustParsePrefix("172.16.11.1/24")}})
				w.must(w.node, rtnl.LinkAdd{Name: "net1", Kind: "macvlan", Mode: "bridge", Parent: 110, NetNS: int(s.file.Fd()), Index: 20, Up: up})
				w.fails(s.belowRequest(cnicall.Add, pluginIPAM, "net1", macvlanConfig(0)), cnicall.CodeInternal, "in use by")
				if link, err := s.client.LinkByName("net1"); err != nil || link.Up != up {
					t.Errorf("net1 is up: %t, want %t: %v", link.Up, up, err)
				}
				if len(w.addresses.released) != 1 || !strings.Contains(w.addresses.released[0], "map[172.16.11.1:") {
					t.Errorf("released %q, want 172.16.11.1 in quarantine", w.addresses.released)
				}
				w.checkNothingLeft()
			})
		})
	}
}

// TestBelowDualStack gives an interface an address of each family.
func TestBelowDualStack(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.cluster.pool(t, "gpu1-6", "{subnet: 'fd00:11::/64', ips: ['fd00:11::1-fd00:11::f0'], gateway: 'fd00:11::fe'}")
		s := w.sandbox("box1", "train")
		w.must(w.node, rtnl.LinkAdd{Name: "net1", Kind: "macvlan", Mode: "bridge", Parent: 110, NetNS: int(s.file.Fd()), Index: 20, Up: true})
		config := strings.Replace(macvlanConfig(0), `["gpu1"]`, `["gpu1"],"default_ipv6_ippool":["gpu1-6"]`, 1)
		answer := w.server.Handle(t.Context(), s.belowRequest(cnicall.Add, pluginIPAM, "net1", config))
		if answer.Error != nil {
			t.Fatal(answer.Error)
		}
		var result types100.Result
		if err := json.Unmarshal(answer.Output, &result); err != nil || len(result.IPs) != 2 || len(result.Routes) != 2 {
			t.Fatalf("IPAM answers %s, want an address and a default route of each family: %v", answer.Output, err)
		}
		for _, ip := range result.IPs {
			prefix, _ := prefixOf(ip.Address)
			w.must(s.client, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 20, Prefix: prefix, NoDAD: true}})
		}
		w.addRoutes(s, 20, &result)
		result.CNIVersion = "1.0.0"
		prev, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		if answer := w.server.Handle(t.Context(), s.coordinatorRequest(0, prev, `,"detectGateway":false`)); answer.Error != nil {
			t.Fatal(answer.Error)
		}
		w.below(s, cnicall.Check, pluginCoordinator, "net1", `{"cniVersion":"1.0.0","name":"gpu1","type":"coordinator"}`)
		w.below(s, cnicall.Del, pluginCoordinator, "net1", `{"cniVersion":"1.0.0","name":"gpu1","type":"coordinator"}`)
		w.below(s, cnicall.Del, pluginIPAM, "net1", config)
		addresses, err := s.client.Addresses()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			if a.LinkIndex == 20 && !a.Prefix.Addr().IsLinkLocalUnicast() {
				t.Errorf("net1 has %s still", a.Prefix)
			}
		}
		w.checkNothingLeft()
	})
}

// TestCalledBack has a plugin of another, which we run, ask us for addresses.
func TestCalledBack(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		const ovs = `{"cniVersion":"0.3.1","name":"gpu2","type":"ovs","ipam":{"type":"spiderpool","default_ipv4_ippool":["gpu2"]}}`
		w.cluster.nad("gpu2", ovs)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		w.delegate.during = func(ctx context.Context, call string) error {
			verb, kind, _ := strings.Cut(call, " ")
			if kind != "ovs" {
				return nil
			}
			answer := w.server.Handle(ctx, s.belowRequest(verb, pluginIPAM, "net2", ovs))
			if answer.Error != nil {
				return answer.Error
			}
			if verb == cnicall.Add {
				var r types100.Result
				if err := json.Unmarshal(answer.Output, &r); err != nil || r.IPs[0].Address.String() != "172.16.12.1/24" {
					return fmt.Errorf("%s: %w", answer.Output, err)
				}
				return errors.Join(w.node.Do(rtnl.LinkAdd{Name: "net2", Kind: "macvlan", Mode: "bridge", Parent: 111, NetNS: int(s.file.Fd()), Index: 20, Up: true})...)
			}
			if verb == cnicall.Del {
				return errors.Join(s.client.Do(rtnl.LinkDelete{Name: "net2"})...)
			}
			return nil
		}
		w.addresses.doubtful = true
		w.ok(s, cnicall.Add)
		if len(w.addresses.vouched) > 0 {
			t.Error("an address was vouched for that nobody probed")
		}
		w.ok(s, cnicall.Check)
		w.ok(s, cnicall.Del)
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
	})
}

// TestNoLongerBelow has Multus go while a pod of its runs: DEL comes to us as a
// whole.
func TestNoLongerBelow(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		if err := calico(delegate.Call{NetNS: s.path}, 1); err != nil {
			t.Fatal(err)
		}
		w.attachBelow(s, 0)
		w.ok(s, cnicall.Del)
		if want, got := []string{"DEL portmap eth0", "DEL calico eth0"}, w.delegate.asked(); !cmp.Equal(want, got) {
			t.Errorf("plugins of others: %q, want %q", got, want)
		}
		w.must(s.client, rtnl.LinkDelete{Name: "net1"}) // goes with the namespace
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
	})
}
