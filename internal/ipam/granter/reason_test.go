package granter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// word is an administrator's word on the lease of n1; none takes it away.
func (w *world) word(word ...string) {
	l := w.leases["n1"].DeepCopy()
	if l.Annotations = nil; len(word) > 0 {
		l.Annotations = map[string]string{v1alpha1.AnnotationFenced: word[0]}
	}
	l.ResourceVersion = w.next()
	w.leases["n1"] = l
}

// A lease says why its node as a whole gets nothing, or why a word has no
// effect, as long as that is so.
func TestReason(t *testing.T) {
	t.Parallel()
	const (
		annotated = "fenced by the annotation railhead.io/fenced, since it names this node's UID: the node gets no addresses until the annotation is removed"
		tainted   = "fenced: the node has the taint node.kubernetes.io/out-of-service"
		wrong     = `railhead.io/fenced is "x", which is not this node's UID "uid-n1": no effect`
	)
	fence := func(fenced bool) func(w *world) {
		return func(w *world) { w.nodes["n1"] = Node{"uid-n1", fenced} }
	}
	for name, c := range map[string]struct {
		steps []func(w *world)
		want  []string // after each step
	}{
		"annotation": {
			[]func(w *world){func(w *world) { w.word("uid-n1") }, func(w *world) { w.word() }},
			[]string{annotated, ""},
		},
		"annotation, as the controller's view has it": {
			[]func(w *world){func(w *world) { w.word("uid-n1"); fence(true)(w) }, func(w *world) { w.word(); fence(false)(w) }},
			[]string{annotated, ""},
		},
		"taint": {[]func(w *world){fence(true), fence(false)}, []string{tainted, ""}},
		"wrong word": {
			[]func(w *world){func(w *world) { w.word("x") }, func(w *world) { w.word("uid-n1") }, func(w *world) { w.word("") }, func(w *world) { w.word() }},
			[]string{wrong, annotated, strings.Replace(wrong, `"x"`, `""`, 1), ""},
		},
		"wrong word and a taint": {[]func(w *world){func(w *world) { w.word("x"); fence(true)(w) }}, []string{tainted + "; " + wrong}},
		"gone":                   {[]func(w *world){func(w *world) { delete(w.nodes, "n1") }}, []string{"node is gone"}},
		"fenced and gone":        {[]func(w *world){fence(true), func(w *world) { delete(w.nodes, "n1") }}, []string{tainted, "node is fenced"}},
		"not known now": {
			[]func(w *world){fence(true), func(w *world) { w.nodes["n1"] = Node{} }, fence(false)},
			[]string{tainted, tainted, ""},
		},
		"another machine": {
			[]func(w *world){
				fence(true), func(w *world) { w.nodes["n1"] = Node{UID: "again"} },
				func(w *world) { w.spec("n1", func(l *v1alpha1.AddressLease) { l.Spec.NodeUID = "again" }) },
			},
			[]string{tainted, "", ""},
		},
		"long": {[]func(w *world){func(w *world) { w.word(strings.Repeat("x", 9000)) }}, []string{strings.Replace(wrong, `"x"`, `"`+strings.Repeat("x", 100)+`"`, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
			w.node("n1", 2, "a")
			w.behind = true // another leader does not know that a node that is gone was fenced
			w.calm()
			for i, step := range c.steps {
				step(w)
				w.calm() // nothing is written twice
				if got := w.leases["n1"].Status.Reason; got != c.want[i] {
					t.Errorf("after step %d: reason %q, want %q", i, got, c.want[i])
				}
			}
		})
	}
}

// A node was fenced while its pods run, and is served again: addresses that
// SpiderEndpoints name went to nobody else, and come back in doubt; the others
// may have gone.
func TestFencedWhilePodsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.3")
	w.node("n1", 3, "a")
	w.view = func(v *View) {
		v.Taken = func(string) *netipx.IPSet { return setOf(t, "10.1.0.1") }
		if len(w.ledgers) == 0 {
			v.Taken = nil
		}
	}
	w.calm()
	w.word("uid-n1")
	w.node("n2", 3, "a")
	w.calm()
	if diff := cmp.Diff([]string{"10.1.0.2-10.1.0.3 n2"}, w.runs("a")); diff != "" {
		t.Fatal(diff)
	}
	w.word()
	w.node("n1", 0)
	w.spec("n1", func(l *v1alpha1.AddressLease) {
		l.Spec.Exact = []v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.1.0.1-10.1.0.2"}}}
	})
	w.calm()
	if diff := cmp.Diff([]string{"10.1.0.1 n1?", "10.1.0.2-10.1.0.3 n2"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
	if got := w.leased("n2", "a").Revoke; len(got) != 1 || got[0] != "10.1.0.2" || ipam.Count(w.holds("n1", "a")) != 1 {
		t.Errorf("n2 is asked for %v, n1 holds %v", got, ipam.FormatRanges(w.holds("n1", "a")))
	}
}
