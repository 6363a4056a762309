package granter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/railhead/v1alpha1"
)

// An address that is in doubt stays so when the node that has it is fenced: it
// is the one before that may use it.
func TestFencedNodeLeavesItsDoubts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.2")
	w.node("n1", 1, "a")
	w.settle()
	delete(w.nodes, "n1")
	w.settle()
	w.node("n2", 2, "a")
	w.settle()
	if diff := cmp.Diff([]string{"10.1.0.1 n2?", "10.1.0.2 n2"}, w.runs("a")); diff != "" {
		t.Fatal(diff)
	}
	w.nodes["n2"] = Node{w.nodes["n2"].UID, true}
	w.settle()
	if diff := cmp.Diff([]string{"10.1.0.1 quarantine: node is fenced"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
}

// The annotation by which a node was fenced names its UID, and does not concern
// the one that comes after it.
func TestNodeAfterAFencedOneIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.2")
	w.node("n1", 1, "a")
	w.settle()
	w.spec("n1", func(l *v1alpha1.AddressLease) {
		l.Annotations = map[string]string{v1alpha1.AnnotationFenced: "uid-n1"}
	})
	w.settle()
	if got := w.runs("a"); len(got) > 0 {
		t.Fatalf("held after fencing: %v", got)
	}
	w.nodes["n1"] = Node{UID: "uid-again"}
	w.spec("n1", func(l *v1alpha1.AddressLease) { l.Spec.NodeUID = "uid-again" })
	w.settle()
	if diff := cmp.Diff([]string{"10.1.0.1"}, w.leased("n1", "a").Grants[0].Addresses); diff != "" {
		t.Error(diff)
	}
}

// Two nodes that ask for one identity of a full pool wait, and rounds come to an end.
func TestPinOfAFullPoolOnTwoNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1")
	w.node("n0", 1, "a")
	w.settle()
	w.pinned("n1", false)
	w.pinned("n2", false)
	if diff := cmp.Diff([]string{"10.1.0.1 n0"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
}
