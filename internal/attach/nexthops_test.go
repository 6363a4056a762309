package attach

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// over is a route with several ways, of other weights.
func over(dst string, ways ...rtnl.NextHop) rtnl.RouteAdd {
	for n := range ways {
		ways[n].Weight = 3 + 4*n
	}
	return rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix(dst), NextHops: ways, Priority: 77}}
}

func way(link int, gateway string) rtnl.NextHop {
	return rtnl.NextHop{LinkIndex: link, Gateway: ip(gateway)}
}

// weightedRails are rails that others' plugins made, whose default routes are ways of
// one, beside the way over eth0, each with a weight.
func (w *world) weightedRails() Pod {
	w.tb.Helper()
	pod := w.foreignRails(2, nil)
	all, err := w.pod.Routes()
	if err != nil {
		w.tb.Fatal(err)
	}
	for _, r := range all {
		for _, hop := range waysOf(r) {
			if r.Dst.Bits() == 0 && r.Table == 254 && r.Type == "unicast" {
				w.must(w.pod, rtnl.RouteDelete{Route: rtnl.Route{Dst: r.Dst, LinkIndex: hop.LinkIndex, Gateway: hop.Gateway}})
			}
		}
	}
	w.must(w.pod, over("0.0.0.0/0", way(3, "169.254.1.1"), way(50, "172.16.11.254"), way(51, "172.16.12.254")),
		over("::/0", way(3, "fe80::ecee:eeff:feee:eeee"), way(50, "fd00:16:11::fe"), way(51, "fd00:16:12::fe")))
	return pod
}

// TestWeights takes the ways over rails out of the main table's default routes, where
// the one over eth0 stays, and gives them back with their weights; likewise another
// run of the agent, after each part of a plan.
func TestWeights(t *testing.T) {
	t.Parallel()
	for name, areKnown := range map[string]bool{"given gateways": true, "found gateways": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.calico()
				pod := w.weightedRails()
				for n := range pod.Interfaces {
					if !areKnown {
						pod.Interfaces[n].Gateways = nil
					}
				}
				before := w.snapshot()
				plan := w.plan(pod)
				if _, err := w.a.Apply(t.Context(), plan); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"inet 3", "inet6 3"}, w.defaults(254)); diff != "" {
					t.Errorf("main (-want +got):\n%s", diff)
				}
				if err := w.a.Check(t.Context(), plan); err != nil {
					t.Error(err)
				}
				if err := w.a.Undo(t.Context(), fromDisk(t, plan), nil); err != nil {
					t.Error(err)
				}
				w.same("undone", before)
				for parts := 0; !w.refused(plan, parts); parts++ {
					if w.same("refused", before); t.Failed() {
						t.Fatalf("part %d", parts)
					}
				}
				if err := w.a.Undo(t.Context(), plan, nil); err != nil {
					t.Error(err)
				}
				w.undoFails(pod)
			})
		})
	}
}

// sharedRoutes are routes of the node with ways over the devices of its first three rails.
func (w *world) sharedRoutes() {
	w.tb.Helper()
	var four, six []rtnl.NextHop
	for n := range 3 {
		w.must(w.node, address(110+n, fmt.Sprintf("172.16.%d.1/24", 11+n)), address(110+n, fmt.Sprintf("fd00:16:%d::1/64", 11+n)))
		four, six = append(four, way(110+n, fmt.Sprintf("172.16.%d.254", 11+n))), append(six, way(110+n, fmt.Sprintf("fd00:16:%d::fe", 11+n)))
	}
	w.must(w.node, over("172.20.0.0/16", four...), over("fd00:20:1::/64", six...))
}

// devices is a pod with the devices of the node's rails.
func (w *world) devices(rails ...int) Pod {
	pod := w.podOf()
	for _, n := range rails {
		i := rail(n, nil, "46")
		i.Link = Link{Kind: HostDevice, Device: Device{Name: parentName(n)}}
		pod.Interfaces = append(pod.Interfaces, i)
	}
	return pod
}

// waysTo are the node's ways to a destination: link and weight, where the kernel tells it.
func (w *world) waysTo(dst string) []string {
	w.tb.Helper()
	all, err := w.node.Routes()
	if err != nil {
		w.tb.Fatal(err)
	}
	var list []string
	for _, r := range all {
		if r.Dst == prefix(dst) {
			for _, hop := range waysOf(r) {
				list = append(list, fmt.Sprintf("%d weight %d", hop.LinkIndex, hop.Weight))
			}
		}
	}
	return list
}

// TestWeightsOfNode moves devices that the node has ways over: those over others stay
// meanwhile, and all are back with their weights afterwards, whatever failed.
func TestWeightsOfNode(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.sharedRoutes()
		before := w.snapshot()
		one := w.devices(1)
		plan := w.plan(one)
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		for _, dst := range []string{"172.20.0.0/16", "fd00:20:1::/64"} {
			if diff := cmp.Diff([]string{"110 weight 3", "112 weight 11"}, w.waysTo(dst)); diff != "" {
				t.Errorf("to %s meanwhile (-want +got):\n%s", dst, diff)
			}
		}
		if err := w.a.Undo(t.Context(), fromDisk(t, plan), nil); err != nil {
			t.Error(err)
		}
		w.same("undone", before)
		var f faults
		later := w.faulty(&f)
		w.eachRefused(&f, later, plan, before, func() error {
			_, err := later.Apply(t.Context(), plan)
			return err
		})
		w.eachRefused(&f, later, plan, before, func() error {
			if _, err := w.a.Apply(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			return later.Undo(t.Context(), plan, nil)
		})
	})
}

// TestWeightsDown brings a device back while another of its route is down: the route
// has the ways that the kernel takes.
func TestWeightsDown(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.sharedRoutes()
		plan := w.plan(w.devices(1))
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		w.must(w.node, rtnl.LinkSet{Index: 112, Up: new(false)})
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"110 weight 3", "111 weight 7"}, w.waysTo("172.20.0.0/16")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// eachRefused has each thing refused in turn that an Attacher asks of the kernel as it
// does something, and wants it to bring all back afterwards.
func (w *world) eachRefused(f *faults, a *Attacher, plan *Plan, before state, do func() error) {
	w.tb.Helper()
	isDead := f.isDead
	for at := 1; !w.tb.Failed(); at++ {
		*f = faults{at: at, isDead: isDead}
		err := do()
		isAll := len(f.steps) < at
		if isAll != (err == nil) {
			w.tb.Errorf("part %d of %d was refused: %v", at, len(f.steps), err)
		}
		*f = faults{}
		if err := a.Undo(w.tb.Context(), plan, nil); err != nil {
			w.tb.Error(err)
		}
		w.same(fmt.Sprintf("part %d was refused: %v", at, err), before)
		if isAll {
			return
		}
	}
}

// TestWeightsOfAll moves all devices that a route of the node goes over: for one pod,
// and for one after the other, of which the first also ends first or last.
func TestWeightsOfAll(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string][]int{"together": {0}, "in their order": {0, 1}, "the last first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.sharedRoutes()
				pods := []Pod{w.devices(0, 1, 2)}
				if len(ends) > 1 {
					pods = []Pod{w.devices(0), newPod(t, w).devices(1)}
					pods[1].ContainerID = "fedcba9876543210"
				}
				before := w.snapshot()
				var plans []*Plan
				for _, pod := range pods {
					plan := w.plan(pod)
					plans = append(plans, plan)
					if _, err := w.a.Apply(t.Context(), plan); err != nil {
						t.Fatal(err)
					}
				}
				for _, n := range ends {
					if err := w.a.Undo(t.Context(), plans[n], nil); err != nil {
						t.Error(err)
					}
				}
				w.same("undone", before)
			})
		})
	}
}

// TestRouteOfOthers leaves a route alone that somebody made in place of one that went
// with a device.
func TestRouteOfOthers(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.sharedRoutes()
		plan := w.plan(w.devices(0, 1, 2))
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		w.must(w.node, rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("172.20.0.0/16"), LinkIndex: 100, Gateway: ip("10.1.20.1"), Priority: 77}})
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"100 weight 1"}, w.waysTo("172.20.0.0/16")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
