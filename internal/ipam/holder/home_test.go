package holder_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/holder"
)

const db0 = "StatefulSet/ns/db/0"

// TestIdentityKeepsToItsPool has an identity whose address is of its second pool:
// its next pod waits for that one and not for the first, from the moment that the
// old pod is still there until the controller grants it again.
func TestIdentityKeepsToItsPool(t *testing.T) {
	n := newNode(t)
	n.api.grant("b", db0, "10.2.0.3")
	n.see()
	old := request("old", "s1", []string{"a", "b"})
	old.Identity = db0
	if got := addresses(n.assign(old)); got[0] != "10.2.0.3" {
		t.Fatalf("got %v", got)
	}
	next := request("next", "s1", []string{"a", "b"})
	next.Identity = db0
	n.Expect(next)
	if n.sync(); len(n.spec().Pins[0].Wants) != 1 {
		t.Errorf("wants %v", n.spec().Pins)
	}
	if _, _, err := n.Release(old.Key, 0, nil); err != nil {
		t.Fatal(err)
	}
	n.sync()
	n.api.take() // parked: nobody is shown it
	n.see()
	if _, err := n.Assign(next); err == nil {
		t.Fatal("it got an address that was not granted")
	}
	n.sync()
	want := []v1alpha1.Pin{{Identity: db0, Wants: []v1alpha1.Want{{Pool: "b", Addresses: 1}}}}
	if diff := cmp.Diff(want, n.spec().Pins); diff != "" {
		t.Error(diff)
	}
	n.api.grant("b", db0, "10.2.0.3")
	n.see()
	if got := addresses(n.assign(next)); got[0] != "10.2.0.3" {
		t.Errorf("got %v", got)
	}
}

// TestIdentityLeavesAPoolThatIsNoCandidate has the second pool gone from the
// request: then it is the first one's turn.
func TestIdentityLeavesAPoolThatIsNoCandidate(t *testing.T) {
	n := newNode(t)
	n.api.grant("b", db0, "10.2.0.3")
	n.see()
	r := request("p", "s1", []string{"a", "c"})
	r.Identity = db0
	if _, err := n.Assign(r); err == nil {
		t.Fatal("an address of a pool that is no candidate was given")
	}
	n.sync()
	want := []v1alpha1.Pin{{Identity: db0, Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
	if diff := cmp.Diff(want, n.spec().Pins); diff != "" {
		t.Error(diff)
	}
}

// TestHomeOfAPodThatWaits has an endpoint found that says where the identity was
// after its pod began to wait.
func TestHomeOfAPodThatWaits(t *testing.T) {
	n := newNode(t)
	r := request("p", "s1", []string{"a", "b"})
	r.Identity = db0
	n.Expect(r)
	home := r.Home([]holder.Assigned{{Interface: "net1", Pool: "b", Prefix: netip.MustParsePrefix("10.2.0.3/16")}})
	if _, err := n.Assign(home); err == nil {
		t.Fatal("it got an address that was not granted")
	}
	n.sync()
	want := []v1alpha1.Pin{{Identity: db0, Wants: []v1alpha1.Want{{Pool: "b", Addresses: 1}}}}
	if diff := cmp.Diff(want, n.spec().Pins); diff != "" {
		t.Error(diff)
	}
}

func TestHome(t *testing.T) {
	had := []holder.Assigned{
		{Interface: "net1", Pool: "b", Prefix: netip.MustParsePrefix("10.2.0.3/16")},
		{Interface: "net2", Pool: "c", Prefix: netip.MustParsePrefix("10.9.0.3/16")}, // c is elsewhere by now
		{Interface: "net3", Pool: "gone", Prefix: netip.MustParsePrefix("10.2.0.3/16")},
	}
	r := request("p", "s1", []string{"a", "b", "c"}, []string{"a", "c"}, []string{"a", "b"})
	home := r.Home(had)
	got := [][]string{}
	for _, nic := range home.NICs {
		var names []string
		for _, ref := range nic.Choices[0].Pools {
			names = append(names, ref.Name)
		}
		got = append(got, names)
	}
	if diff := cmp.Diff([][]string{{"b", "a", "c"}, {"a", "c"}, {"a", "b"}}, got); diff != "" {
		t.Error(diff)
	}
	if r.NICs[0].Choices[0].Pools[0].Name != "a" {
		t.Error("the request itself was changed")
	}
}
