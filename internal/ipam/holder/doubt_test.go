package holder_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/railhead/v1alpha1"
)

// Doubtful addresses stay in doubt when they are returned, unless somebody
// vouched for them.
func TestDoubtEndsByAProbe(t *testing.T) {
	for name, c := range map[string]struct {
		vouch bool
		want  string
	}{
		"not probed":         {false, "was in doubt, and was not probed"},
		"nobody answered it": {true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.grant("a", "10.1.0.1")
			p := n.api.pool("a")
			p.Grants[0].Doubtful = true
			n.api.answer()
			n.see()
			r := request("p1", "s1", []string{"a"})
			if a := n.assign(r); !a.Addresses[0].Doubtful {
				t.Fatalf("assigned without doubt: %v", a.Addresses)
			}
			if c.vouch {
				n.Vouch(r.Key)
			}
			if _, _, err := n.Release(r.Key, 0, nil); err != nil {
				t.Fatal(err)
			}
			n.api.pool("a").Revoke = []string{"10.1.0.1"}
			n.api.answer()
			n.see()
			n.sync()
			want := []v1alpha1.Return{{Pool: "a", Epoch: 1, Addresses: []string{"10.1.0.1"}, Quarantine: c.want}}
			if diff := cmp.Diff(want, n.spec().Returns); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An old and a new pod of one identity need what one of them needs.
func TestTwoPodsOfOneIdentity(t *testing.T) {
	n := newNode(t)
	for _, pod := range []string{"old", "new"} {
		r := request(pod, "s1", []string{"a"})
		r.Identity = "StatefulSet/ns/db/0"
		n.Expect(r)
	}
	n.sync()
	want := []v1alpha1.Pin{{Identity: "StatefulSet/ns/db/0", Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
	if diff := cmp.Diff(want, n.spec().Pins); diff != "" {
		t.Error(diff)
	}
}

// A lease that was deleted is made again, even by a node that wants nothing: the
// controller tells by it what the node holds.
func TestDeletedLeaseIsMadeAgain(t *testing.T) {
	n := newNode(t)
	n.sync()
	n.api.lease = nil
	n.Forget()
	n.sync()
	if n.api.lease == nil {
		t.Error("there is no lease")
	}
}
