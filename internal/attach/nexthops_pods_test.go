package attach

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// shares are pods that get the devices of a route's ways, one after the other.
func (w *world) shares(rails ...[]int) (plans []func() *Plan) {
	w.tb.Helper()
	for n, of := range rails {
		other := newPodAt(w.tb, w, n+1)
		pod := other.devices(of...)
		pod.ContainerID = fmt.Sprintf("%016d", n)
		plans = append(plans, func() *Plan {
			other.a = w.a
			return other.plan(pod)
		})
	}
	return plans
}

// restart has another run of the agent, which knows of pods what is on the disk.
func (w *world) restart(t *testing.T, plans ...*Plan) {
	t.Helper()
	killed := w.a
	w.inside(w.home, func() { w.a = w.attacher() })
	w.a.mark, w.a.unmark = killed.mark, killed.unmark
	if err := killed.Close(); err != nil {
		t.Error(err)
	}
	for n := range plans {
		plans[n] = fromDisk(t, plans[n])
		w.a.Remember(plans[n])
	}
}

func (w *world) apply(plan *Plan) {
	w.tb.Helper()
	if _, err := w.a.Apply(w.tb.Context(), plan); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *world) undo(plan *Plan) {
	w.tb.Helper()
	if err := w.a.Undo(w.tb.Context(), plan, nil); err != nil {
		w.tb.Error(err)
	}
}

// orders are all orders of so many things.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, o := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(o), at, n-1))
		}
	}
	return all
}

// waysByName are the node's ways to a destination by the names of their links, whatever
// their numbers, in the order of these.
func (w *world) waysByName(dst string) []string {
	w.tb.Helper()
	all, err := w.node.Routes()
	if err != nil {
		w.tb.Fatal(err)
	}
	links, err := w.node.Links()
	if err != nil {
		w.tb.Fatal(err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Index] = l.Name
	}
	var list []string
	for _, r := range all {
		if r.Dst == prefix(dst) {
			for _, hop := range waysOf(r) {
				list = append(list, fmt.Sprintf("%s via %s weight %d", names[hop.LinkIndex], hop.Gateway, hop.Weight))
			}
		}
	}
	slices.Sort(list)
	return list
}

// TestWaysOfPods has pods take the devices of a route's ways, and end in every order,
// in one run of the agent and with another one for each step.
func TestWaysOfPods(t *testing.T) {
	t.Parallel()
	for _, rails := range [][][]int{
		{{0, 1, 2}}, {{0, 1}, {2}}, {{2}, {0, 1}}, {{0}, {1, 2}}, {{0}, {2}}, {{0}, {1}, {2}}, {{2}, {1}, {0}},
	} {
		t.Run(fmt.Sprint(rails), func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.sharedRoutes()
				pods := w.shares(rails...)
				before := w.snapshot()
				for _, ends := range orders(len(pods)) {
					for _, isKilled := range []bool{false, true} {
						var plans []*Plan
						for _, plan := range pods {
							plans = append(plans, plan())
							w.apply(plans[len(plans)-1])
							if isKilled {
								w.restart(t, plans...)
							}
						}
						left := slices.Clone(plans)
						for _, n := range ends {
							w.undo(plans[n])
							left = slices.DeleteFunc(left, func(p *Plan) bool { return p.ContainerID == plans[n].ContainerID })
							if isKilled {
								w.restart(t, left...)
							}
						}
						if w.same(fmt.Sprintf("ended in the order %v, agents killed: %v", ends, isKilled), before); t.Failed() {
							return
						}
					}
				}
			})
		})
	}
}

// TestWaysComeAndGo has pods with a device each come and go at random, and agents end:
// the node has the ways over the devices that it has.
func TestWaysComeAndGo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.sharedRoutes()
				pods := w.shares([]int{0}, []int{1}, []int{2})
				random := rand.New(rand.NewPCG(seed, 0))
				var plans []*Plan
				for step := range 30 {
					n := random.IntN(len(pods))
					id := fmt.Sprintf("%016d", n)
					if at := slices.IndexFunc(plans, func(p *Plan) bool { return p.ContainerID == id }); at >= 0 {
						w.undo(plans[at])
						plans = slices.Delete(plans, at, at+1)
					} else {
						plans = append(plans, pods[n]())
						w.apply(plans[len(plans)-1])
					}
					if random.IntN(4) == 0 {
						w.restart(t, plans...)
					}
					if w.hasWaysBut(plans); t.Failed() {
						t.Fatalf("step %d, device %d", step, n)
					}
				}
			})
		})
	}
}

// hasWaysBut wants the ways of sharedRoutes but for those over devices that pods have.
// Of a last way the kernel does not tell the weight.
func (w *world) hasWaysBut(plans []*Plan) {
	w.tb.Helper()
	for _, dst := range []string{"172.20.0.0/16", "fd00:20:1::/64"} {
		var want []string
		for n, weight := range []int{3, 7, 11} {
			isAway := func(p *Plan) bool { return p.devices()[0].Before.Name == parentName(n) }
			gateway := fmt.Sprintf("172.16.%d.254", 11+n)
			if dst[0] == 'f' {
				gateway = fmt.Sprintf("fd00:16:%d::fe", 11+n)
			}
			if len(plans) == 2 {
				weight = 1
			}
			if !slices.ContainsFunc(plans, isAway) {
				want = append(want, fmt.Sprintf("%s via %s weight %d", parentName(n), gateway, weight))
			}
		}
		if diff := cmp.Diff(want, w.waysByName(dst)); diff != "" {
			w.tb.Errorf("to %s (-want +got):\n%s", dst, diff)
		}
	}
}

// TestWaysRenumbered brings devices back with other numbers, since a pod has links with
// theirs.
func TestWaysRenumbered(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string][]int{"first": {110}, "last": {112}, "all": {110, 111, 112}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.sharedRoutes()
				four, six := w.waysByName("172.20.0.0/16"), w.waysByName("fd00:20:1::/64")
				for _, index := range taken {
					w.must(w.pod, rtnl.LinkAdd{Name: fmt.Sprint("own", index), Kind: "bridge", Index: index})
				}
				plan := w.plan(w.devices(0, 1, 2))
				w.apply(plan)
				w.undo(fromDisk(t, plan))
				if diff := cmp.Diff(four, w.waysByName("172.20.0.0/16")); diff != "" {
					t.Errorf("IPv4 (-before +after):\n%s", diff)
				}
				if diff := cmp.Diff(six, w.waysByName("fd00:20:1::/64")); diff != "" {
					t.Errorf("IPv6 (-before +after):\n%s", diff)
				}
				for n := range 3 {
					if index := w.link(w.node, parentName(n)).Index; slices.Contains(taken, index) {
						t.Errorf("%s has number %d again: want another", parentName(n), index)
					}
				}
			})
		})
	}
}

// TestWaysRefused has each thing refused in turn, alone or with all that follow, that is
// asked of the kernel for one of two pods with devices of a route: what the other one
// has is as it was.
func TestWaysRefused(t *testing.T) {
	t.Parallel()
	for name, isDead := range map[string]bool{"once": false, "from then on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.sharedRoutes()
				pods := w.shares([]int{0, 1}, []int{2})
				before := w.snapshot()
				f := faults{isDead: isDead}
				later := w.faulty(&f)
				first := pods[0]()
				w.apply(first)
				second := pods[1]()
				w.eachRefused(&f, later, second, w.snapshot(), func() error {
					_, err := later.Apply(t.Context(), second)
					return err
				})
				w.apply(second)
				w.undo(first)
				w.eachRefused(&f, later, first, w.snapshot(), func() error {
					w.apply(first)
					return later.Undo(t.Context(), first, nil)
				})
				w.undo(second)
				w.same("undone", before)
			})
		})
	}
}

// TestWaysOfAdministrator changes the node's route while a pod has one of its devices:
// its own way comes back with it, and nothing else.
func TestWaysOfAdministrator(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.must(w.node, address(113, "172.16.14.1/24"), address(113, "fd00:16:14::1/64"))
		w.sharedRoutes()
		plan := w.plan(w.devices(0))
		route := func(dst string, protocol string, ways ...rtnl.NextHop) rtnl.Route {
			return rtnl.Route{Dst: prefix(dst), NextHops: ways, Priority: 77, Protocol: protocol}
		}
		four := func(rail, weight int) rtnl.NextHop {
			return rtnl.NextHop{LinkIndex: 110 + rail, Gateway: ip(fmt.Sprintf("172.16.%d.254", 11+rail)), Weight: weight}
		}
		six := func(rail, weight int) rtnl.NextHop {
			return rtnl.NextHop{LinkIndex: 110 + rail, Gateway: ip(fmt.Sprintf("fd00:16:%d::fe", 11+rail)), Weight: weight}
		}
		for name, tt := range map[string]struct {
			now      func(hop func(rail, weight int) rtnl.NextHop) []rtnl.NextHop
			protocol string
			want     []string
		}{
			"a way less": {
				now:  func(hop func(int, int) rtnl.NextHop) []rtnl.NextHop { return []rtnl.NextHop{hop(2, 11)} },
				want: []string{"110 weight 3", "112 weight 11"},
			},
			"a way more": {
				now: func(hop func(int, int) rtnl.NextHop) []rtnl.NextHop {
					return []rtnl.NextHop{hop(1, 7), hop(2, 11), hop(3, 15)}
				},
				want: []string{"110 weight 3", "111 weight 7", "112 weight 11", "113 weight 15"},
			},
			"other weights": {
				now:  func(hop func(int, int) rtnl.NextHop) []rtnl.NextHop { return []rtnl.NextHop{hop(1, 20), hop(2, 30)} },
				want: []string{"110 weight 3", "111 weight 20", "112 weight 30"},
			},
			"no route": {
				now:  func(func(int, int) rtnl.NextHop) []rtnl.NextHop { return nil },
				want: []string{"110 weight 1"},
			},
			"another route": {
				now:  func(hop func(int, int) rtnl.NextHop) []rtnl.NextHop { return []rtnl.NextHop{hop(3, 1)} },
				want: []string{"113 weight 1"},
			},
			"somebody else's": {
				now:      func(hop func(int, int) rtnl.NextHop) []rtnl.NextHop { return []rtnl.NextHop{hop(1, 7), hop(2, 11)} },
				protocol: "static",
				want:     []string{"111 weight 7", "112 weight 11"},
			},
		} {
			before := w.snapshot()
			w.apply(plan)
			for dst, hop := range map[string]func(rail, weight int) rtnl.NextHop{"172.20.0.0/16": four, "fd00:20:1::/64": six} {
				w.drop(dst)
				if now := tt.now(hop); now != nil {
					w.must(w.node, rtnl.RouteAdd{Route: route(dst, tt.protocol, now...)})
				}
			}
			w.undo(fromDisk(t, plan))
			for _, dst := range []string{"172.20.0.0/16", "fd00:20:1::/64"} {
				got := w.waysTo(dst)
				slices.Sort(got)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s: to %s (-want +got):\n%s", name, dst, diff)
				}
				w.drop(dst)
			}
			w.must(w.node, over("172.20.0.0/16", four(0, 0), four(1, 0), four(2, 0)), over("fd00:20:1::/64", six(0, 0), six(1, 0), six(2, 0)))
			w.same(name+", as before", before)
		}
	})
}

// drop removes the node's routes to a destination.
func (w *world) drop(dst string) {
	w.tb.Helper()
	for len(w.waysTo(dst)) > 0 {
		w.must(w.node, rtnl.RouteDelete{Route: rtnl.Route{Dst: prefix(dst)}})
	}
}

// TestWaysUnknown adds a way while a pod has a device, and has pods take all the others:
// it is by their records that the route is known again.
func TestWaysUnknown(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.must(w.node, address(113, "172.16.14.1/24"))
		w.sharedRoutes()
		pods := w.shares([]int{0}, []int{1, 2})
		first := pods[0]()
		w.apply(first)
		w.must(w.node, rtnl.RouteAdd{Replace: true, Route: rtnl.Route{Dst: prefix("172.20.0.0/16"), Priority: 77, NextHops: []rtnl.NextHop{
			{LinkIndex: 111, Gateway: ip("172.16.12.254"), Weight: 7}, {LinkIndex: 112, Gateway: ip("172.16.13.254"), Weight: 11}, {LinkIndex: 113, Gateway: ip("172.16.14.254"), Weight: 15},
		}}})
		second := pods[1]()
		w.apply(second)
		w.restart(t, first, second)
		w.undo(first)
		w.undo(second)
		want := []string{"110 weight 3", "111 weight 7", "112 weight 11", "113 weight 15"}
		got := w.waysTo("172.20.0.0/16")
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestWaysWithSource has a route whose source address is one of a device's: the others'
// ways stay without it, and it comes back with its device.
func TestWaysWithSource(t *testing.T) {
	t.Parallel()
	for _, ends := range orders(2) {
		t.Run(fmt.Sprint(ends), func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.sharedRoutes()
				for _, dst := range []string{"172.20.0.0/16", "fd00:20:1::/64"} {
					w.drop(dst)
				}
				add := over("172.20.0.0/16", way(110, "172.16.11.254"), way(111, "172.16.12.254"))
				add.Src = ip("172.16.12.1")
				w.must(w.node, add)
				pods := w.shares([]int{0}, []int{1})
				before := w.snapshot()
				for _, begins := range orders(2) {
					var plans [2]*Plan
					for _, n := range begins {
						plans[n] = pods[n]()
						w.apply(plans[n])
					}
					for _, n := range ends {
						w.undo(plans[n])
					}
					w.same(fmt.Sprint(begins), before)
				}
			})
		})
	}
}
