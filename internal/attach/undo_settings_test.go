package attach

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/kerneltest"
)

// settled is a pod with a rail of its own and one that another's plugin made, with
// settings of the namespace and of links that stay when the pod goes.
func settled(w *world) Pod {
	w.calico()
	pod := w.foreignRails(1, func(o *routing.Options) { o.PodRPFilter = 2 })
	own := rail(1, coordinated(nil), "46")
	own.Tuning.Sysctls = map[string]string{"net.ipv4.conf.IFNAME.log_martians": "1"}
	pod.Interfaces = append(pod.Interfaces, own)
	for n, name := range []string{"eth0", "net1"} {
		pod.Interfaces[n].Tuning.Sysctls = map[string]string{
			"net.core.somaxconn": fmt.Sprint(777 + n), "net/ipv4/conf/IFNAME/arp_ignore": "1", "net/ipv6/conf/" + name + "/forwarding": "1",
		}
	}
	return pod
}

// TestNamesOfDirectories gives a pod interfaces that are called as the directories of
// settings are: defaults are no link's for that, and get their values back.
func TestNamesOfDirectories(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"net", "ipv6", "conf", "core", "somaxconn", "accept_dad"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.calico()
				w.rails = 2
				pod := w.eightRails("46")
				pod.Interfaces[1].Name = name
				pod.Interfaces[1].Tuning.Sysctls = map[string]string{"net.core.somaxconn": "777", "net.ipv4.conf.IFNAME.log_martians": "1"}
				before := w.snapshot()
				plan := fromDisk(t, w.plan(pod))
				if slices.ContainsFunc(plan.Before.Sysctls, func(s routing.Sysctl) bool { return strings.Contains(s.Path, "/conf/"+name+"/") }) {
					t.Errorf("%+v: want none of the link, which goes", plan.Before.Sysctls)
				}
				w.thereAndBack(plan, before)
			})
		})
	}
}

// values are those of the settings that a plan changes and that stay.
func (w *world) values(plan *Plan) map[string]string {
	w.tb.Helper()
	all := map[string]string{}
	w.inside(w.ns, func() {
		for _, s := range plan.Before.Sysctls {
			value, err := w.a.sysctls().read(s.Path)
			if err != nil {
				w.tb.Error(err)
			}
			all[s.Path] = value
		}
	})
	return all
}

// TestKilledAtSettings has an agent die before each thing that it does for a pod, and
// the next one before each thing that it does to undo that, every write of a setting
// among them. The one after that has the Plan alone, and gives every value back.
func TestKilledAtSettings(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		pod := settled(w)
		plan := w.plan(pod)
		kept, before, all := fromDisk(t, plan), w.values(plan), w.snapshot()
		var f faults
		second, third := w.faulty(&f), w.faulty(&faults{})
		states := map[string]bool{} // of settings, in which an agent died
		check := func(what string) {
			t.Helper()
			if diff := cmp.Diff(before, w.values(plan)); diff != "" {
				t.Errorf("%s (-before +after):\n%s", what, diff)
			}
			if w.same(what, all); t.Failed() {
				t.FailNow()
			}
		}
		for parts := 0; ; parts++ {
			done := w.half(plan, parts)
			states[fmt.Sprint(w.values(plan))] = true
			if err := third.Undo(t.Context(), kept, nil); err != nil {
				t.Error(err)
			}
			check(fmt.Sprintf("died after %d parts", parts))
			if done {
				break
			}
		}
		for at := 1; ; at++ {
			if _, err := w.a.Apply(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			f = faults{at: at, isDead: true}
			_ = second.Undo(t.Context(), kept, nil) // what it says nobody hears
			states[fmt.Sprint(w.values(plan))] = true
			isAll := len(f.steps) < at
			if err := third.Undo(t.Context(), kept, nil); err != nil {
				t.Error(err)
			}
			if check(fmt.Sprintf("died before step %d of undoing", at)); isAll {
				break
			}
		}
		if len(before) < 10 || len(states) < len(before) {
			t.Errorf("died in %d states of %d settings, want each write to make one", len(states), len(before))
		}
	})
}
