package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// shapes are pods with all that needs no kind of link that this kernel may lack.
func shapes() map[string]func(w *world) Pod {
	return map[string]func(w *world) Pod{
		"spec 003":          func(w *world) Pod { w.calico(); return w.eightRails("4") },
		"one /16":           func(w *world) Pod { w.calico(); return w.eightRails("4/16") },
		"ipv6":              func(w *world) Pod { w.calico(); return w.eightRails("6") },
		"dual":              func(w *world) Pod { w.calico(); return w.eightRails("46") },
		"default by a rail": defaultByRail,
		"underlay":          underlay,
		"tuned":             tunedPod,
	}
}

func defaultByRail(w *world) Pod {
	w.calico()
	pod := w.eightRails("46")
	for n := 1; n < len(pod.Interfaces); n++ {
		pod.Interfaces[n].Coordinator = coordinated(func(o *routing.Options) { o.DefaultRouteNIC = "net2" })
	}
	return pod
}

// underlay is a pod of spec/002 whose first interface is a macvlan.
func underlay(w *world) Pod {
	first := rail(0, coordinated(nil), "4")
	first.Name, first.IsDefaultNetwork = "eth0", true
	return w.podOf(first, rail(1, coordinated(nil), "4"))
}

func tunedPod(w *world) Pod {
	w.calico()
	pod := w.eightRails("4")
	pod.Interfaces[0].Tuning = Tuning{
		MAC: mac("02:00:00:00:00:99"), MTU: 1400, TxQueueLen: 17, Promisc: new(true),
		Sysctls: map[string]string{"net.core.somaxconn": "777", "net/ipv4/conf/IFNAME/log_martians": "1"},
	}
	pod.Interfaces[1].Tuning = Tuning{
		MAC: mac("02:00:00:00:00:98"), MTU: 1300, TxQueueLen: 18, AllMulti: new(true),
		Sysctls: map[string]string{"net.ipv6.conf.IFNAME.forwarding": "1"},
	}
	for n, mode := range []string{"private", "vepa", "passthru"} {
		if n+2 < len(pod.Interfaces) {
			pod.Interfaces[n+2].Link.Mode = mode
		}
	}
	return pod
}

// TestApply attaches and detaches pods, from what is on disk, and finds both
// namespaces as before.
func TestApply(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				pod := shape(w)
				before := w.snapshot()
				plan := w.plan(pod)
				w.same("planned", before)
				done, err := w.a.Apply(t.Context(), plan)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%+v\n%+v", done, plan.Notes)
				if err := w.a.Check(t.Context(), plan); err != nil {
					t.Errorf("check: %v", err)
				}
				attached := w.snapshot()
				if _, err := w.a.Apply(t.Context(), plan); err == nil {
					t.Error("applied twice: want an error")
				}
				w.same("applied twice", attached)
				kept := fromDisk(t, plan)
				for range 2 {
					if err := w.a.Undo(t.Context(), kept, nil); err != nil {
						t.Errorf("undo: %v", err)
					}
					w.same("undone", before)
				}
				if err := w.a.Check(t.Context(), plan); err == nil {
					t.Error("check of what is undone: want an error")
				}
			})
		})
	}
}

// TestDetectionOfDuplicates holds that the pod's rails begin without it, and what
// the pod makes itself does not.
func TestDetectionOfDuplicates(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.rails = 1
		if _, err := w.a.Apply(t.Context(), w.plan(w.eightRails("46"))); err != nil {
			t.Fatal(err)
		}
		w.must(w.pod, rtnl.LinkAdd{Name: "own", Kind: "bridge"})
		w.inside(w.ns, func() {
			for link, want := range map[string]string{"net1": "0", "own": "1", "default": "1"} {
				if got, err := w.a.sysctls().read("net/ipv6/conf/" + link + "/accept_dad"); err != nil || got != want {
					t.Errorf("accept_dad of %s: %q, %v; want %q", link, got, err, want)
				}
			}
		})
	})
}

// TestApplyTwice holds that a plan of nothing but routes on links of others stays
// as well.
func TestApplyTwice(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.must(w.node, rtnl.LinkAdd{Name: "net1", Kind: "macvlan", Mode: "bridge", Parent: 110, Index: 50, NetNS: int(w.ns.Fd()), Up: true})
		w.must(w.pod, address(50, "172.16.11.10/24"))
		pod := w.eightRails("4")
		pod.Interfaces = pod.Interfaces[:2]
		pod.Interfaces[1].Link, pod.Interfaces[1].Foreign = Link{}, true
		pod.Interfaces[1].Tuning.MTU = 1400
		w.must(w.pod, rtnl.LinkAdd{Name: "other", Kind: "bridge", Group: Group}) // of another plan
		before := w.snapshot()
		plan := w.plan(pod)
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		attached := w.snapshot()
		if _, err := w.a.Apply(t.Context(), plan); !errors.Is(err, fs.ErrExist) {
			t.Errorf("applied twice: %v, want %v", err, fs.ErrExist)
		}
		w.same("applied twice", attached)
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		w.same("undone", before)
	})
}

// fromDisk is a Plan as a later run of the agent has it.
func fromDisk(t *testing.T, plan *Plan) *Plan {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var read Plan
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, &read, comparable()...); diff != "" {
		t.Errorf("plan through JSON (-want +got):\n%s", diff)
	}
	return &read
}

// TestApplyFails has each part of a plan fail in turn, and finds both namespaces
// as before: undone by Apply itself, and by another Attacher from what is on
// disk where Apply could not.
func TestApplyFails(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes() {
		if name == "ipv6" || name == "one /16" {
			continue // dual has their parts
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.rails = 2
				pod := shape(w)
				before := w.snapshot()
				plan := w.plan(pod)
				failures := 0
				for at := 0; ; at++ {
					n := 0
					w.a.refuse = func(stage string) error {
						if n++; n == at+1 {
							return fmt.Errorf("%s %d: %w", stage, at, errRefused)
						}
						return nil
					}
					_, err := w.a.Apply(t.Context(), plan)
					if err == nil {
						break
					}
					failures++
					if !errors.Is(err, errRefused) || strings.Contains(err.Error(), "could not all be undone") {
						t.Fatalf("part %d: %v", at, err)
					}
					w.same(err.Error(), before)
					if t.Failed() {
						return
					}
				}
				if failures < 20 {
					t.Errorf("%d parts failed: want all of a plan", failures)
				}
				w.a.refuse = nil
				if err := w.a.Undo(t.Context(), plan, nil); err != nil {
					t.Error(err)
				}
				w.same("undone", before)
			})
		})
	}
}

var errRefused = errors.New("refused")

// TestDefaults has links begin with what they are to have, or with something else:
// they have it in the end, and the namespace's defaults are as they were.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"0", "2"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.calico()
				w.inside(w.ns, func() {
					if err := w.a.sysctls().write(routing.Sysctl{Path: "net/ipv4/conf/default/rp_filter", Value: value}); err != nil {
						t.Fatal(err)
					}
				})
				before := w.snapshot()
				plan := w.plan(w.eightRails("46"))
				w.thereAndBack(plan, before)
			})
		})
	}
}
