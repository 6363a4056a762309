package cniserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/attach"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestRestartBetweenWays has pods take the netdevs of one route of the node, and the
// agent start again in between: it comes back with all its next hops and their weights.
func TestRestartBetweenWays(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		route := rtnl.Route{Dst: netip.MustParsePrefix("172.20.0.0/16")}
		var boxes []*box
		for n := range 2 {
			w.must(w.node, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 110 + n, Prefix: netip.MustParsePrefix(fmt.Sprintf("192.0.%d.1/24", 2+n))}})
			route.NextHops = append(route.NextHops, rtnl.NextHop{LinkIndex: 110 + n, Gateway: netip.MustParseAddr(fmt.Sprintf("192.0.%d.254", 2+n)), Weight: 3 + 4*n})
			name := fmt.Sprintf("gpu%d", n+1)
			w.cluster.nad(name, strings.Replace(railConfig(n), `"type":"macvlan","master":"`+rail(n)+`","mode":"bridge"`, `"type":"host-device","device":"`+rail(n)+`"`, 1))
			w.cluster.pod("train-"+name, map[string]string{cniv1.AnnotationNetworks: "ai/" + name})
			boxes = append(boxes, w.sandbox("box"+name, "train-"+name))
		}
		w.must(w.node, rtnl.RouteAdd{Route: route})
		before := w.weights(route.Dst)
		for n, b := range boxes {
			w.ok(b, cnicall.Add)
			if _, err := w.node.LinkByName(rail(n)); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("netdev %s is on the node: %v", rail(n), err)
			}
			w.stop()
			fresh, err := attach.New(attach.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = fresh.Close() })
			w.attacher = fresh
			w.start()
		}
		for _, b := range boxes {
			w.ok(b, cnicall.Del)
		}
		if diff := cmp.Diff(before, w.weights(route.Dst)); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
}

// weights are those of the node's next hops to a destination, by link.
func (w *world) weights(dst netip.Prefix) map[int]int {
	w.t.Helper()
	routes, err := w.node.Routes()
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[int]int{}
	for _, r := range routes {
		for _, hop := range r.NextHops {
			if r.Dst == dst {
				all[hop.LinkIndex] = hop.Weight
			}
		}
	}
	return all
}
