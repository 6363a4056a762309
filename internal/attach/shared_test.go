package attach

import (
	"strings"
	"testing"

	"railhead/internal/kernel/kerneltest"
)

// TestSharedLinksAlone makes what another's plugin will make interfaces on: each part
// fails in turn, and it goes with the last pod, be that one with interfaces of ours.
func TestSharedLinksAlone(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.needsKind("bond")
		w.needsKind("vlan")
		parent := Parent{Name: "bond0.77", Members: []string{parentName(6), parentName(7)}, VLANID: 77, Bond: &Bond{Name: "bond0", Mode: "1"}}
		alone, beside := w.podOf(), newPod(t, w).podOf(rail(0, nil, "4"))
		alone.Parents = []Parent{parent, {Name: parentName(0)}}
		beside.ContainerID, beside.Interfaces[0].Link.Parent = "fedcba9876543210", parent
		before := w.snapshot()
		plan := w.plan(alone)
		if len(plan.Shared) != 2 || len(plan.Interfaces) > 0 {
			t.Errorf("%+v, want the bond and its VLAN alone", plan)
		}
		parts := 0
		for ; !w.refused(plan, parts); parts++ {
			if w.same("refused", before); t.Failed() {
				t.Fatalf("part %d", parts)
			}
		}
		if parts != 2 {
			t.Errorf("%d parts, want the bond and its VLAN", parts)
		}
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Errorf("again: %v", err)
		}
		other := w.plan(beside)
		if _, err := w.a.Apply(t.Context(), other); err != nil {
			t.Error(err)
		}
		if err := w.a.Undo(t.Context(), plan, nil); err != nil {
			t.Error(err)
		}
		if err := w.a.Check(t.Context(), other); err != nil {
			t.Errorf("the other pod: %v", err)
		}
		if err := w.a.Check(t.Context(), plan); err != nil {
			t.Errorf("what both stand on: %v", err)
		}
		if err := w.a.Undo(t.Context(), other, nil); err != nil {
			t.Error(err)
		}
		w.gone(w.node, "bond0")
		if err := w.a.Check(t.Context(), plan); err == nil || !strings.Contains(err.Error(), `parent "bond0.77": it is not there`) {
			t.Errorf("%v, want what is missing", err)
		}
	})
}

// TestParentMissing refuses what is to be there and is not.
func TestParentMissing(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		pod := w.podOf()
		for _, parent := range []Parent{{Name: "eth9"}, {Name: "eth9.7", Members: []string{"eth9"}, VLANID: 7}} {
			pod.Parents = []Parent{parent}
			if _, err := w.a.Plan(t.Context(), pod); err == nil || !strings.Contains(err.Error(), `parent "eth9": the node has no such link`) {
				t.Errorf("%+v: %v", parent, err)
			}
		}
	})
}
