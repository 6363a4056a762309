package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/kerneltest"
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
