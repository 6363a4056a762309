package holder_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// TestNonsenseHidesNothing has a bad range among many: it is named, what a pod has
// stays, what is given back stays so, and new grants are used.
func TestNonsenseHidesNothing(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.1-10.1.0.2")
	n.assign(request("p1", "s1", []string{"a"}))
	n.api.pool("a").Recall = 1
	n.api.answer()
	n.see()
	n.sync()
	good := n.api.lease.Status.Pools
	n.api.lease.Status.Pools = []v1alpha1.LeasedPool{
		{Pool: "a", Grants: []v1alpha1.Grant{{Epoch: 1, Addresses: []string{"10.1.0.1.-10.1.0.2"}}, {Epoch: 2, Addresses: []string{"10.1.0.7"}}}, Revoke: []string{"::::"}},
		{Pool: "b", Grants: []v1alpha1.Grant{{Epoch: 3, Addresses: []string{"10.2.0.3"}}}},
		{Pool: "c", Grants: []v1alpha1.Grant{{Epoch: 4, Addresses: []string{"10.3.0.0-10.5.0.0"}}}},
		{Pool: "six"},
		{Pool: "six"},
	}
	n.api.answer()
	err := n.Observe(n.api.lease.DeepCopy())
	for _, want := range []string{`status.pools[0] of pool "a": grants[0]`, "10.1.0.1.-10.1.0.2", "revoke", `status.pools[2] of pool "c"`, "twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to name %q", err, want)
		}
	}
	if err := n.Sync(t.Context(), n.api); err == nil {
		t.Error("Sync does not say it")
	}
	if diff := cmp.Diff([]string{"10.1.0.7", "10.2.0.3"}, addresses(n.assign(request("p2", "s1", []string{"a"}, []string{"b"})))); diff != "" {
		t.Error(diff)
	}
	if len(n.spec().Returns) != 1 || len(n.spec().Exact) > 0 {
		t.Errorf("returns %v, exact %v", n.spec().Returns, n.spec().Exact)
	}
	n.api.lease.Status.Pools = good
	n.api.answer()
	n.see()
	n.sync()
}

// TestStoreIsSetBack has the store restored from a backup, in which the lease is
// older and lacks a grant: a pod keeps what it has and the lease asks for it.
func TestStoreIsSetBack(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.1")
	n.sync()
	backup := n.api.lease.DeepCopy()
	n.grant("a", "10.1.0.2")
	n.assign(request("p1", "s1", []string{"a"}))
	n.assign(request("p2", "s1", []string{"a"}))
	n.sync()
	n.api.lease = backup
	if err := n.Observe(backup.DeepCopy()); err != nil { // the watch: older, so nothing
		t.Fatal(err)
	}
	if s := n.Stats(); s.Pools[0].Conflicts != 0 {
		t.Errorf("an older version was taken: %+v", s)
	}
	n.Forget()
	n.sync()
	if diff := cmp.Diff([]v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.1.0.2"}}}, n.spec().Exact); diff != "" {
		t.Error(diff)
	}
	if s := n.Stats(); s.Pools[0].Conflicts != 1 || s.Assignments != 2 {
		t.Errorf("stats %+v", s)
	}
	n.start()
	if s := n.Stats(); s.Pools[0].Conflicts != 1 || s.Assignments != 2 {
		t.Errorf("after a restart: stats %+v", s)
	}
}

// FuzzStatus shows a node a lease status of any kind while pods have addresses
// and some are given back, starts the agent anew, and assigns what there is.
func FuzzStatus(f *testing.F) {
	for _, s := range []string{
		`{"pools":[{"pool":"a","grants":[{"epoch":5,"addresses":["10.1.0.1-10.1.0.9","x"],"doubtful":true}],"recall":2,"revoke":["10.1.0.4","y"]}]}`,
		`{"pools":[{"pool":"a"},{"pool":"a"},{"pool":"b","grants":[{"epoch":-1,"addresses":["10.2.0.1"],"identity":"StatefulSet/ns/db/0"}],"short":"all are held"}]}`,
		`{"nodeUID":"other","pools":[{"pool":"","grants":[{"epoch":9223372036854775807,"addresses":["::-ffff::"]}],"reserve":-9223372036854775808,"recall":9223372036854775807}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var status v1alpha1.AddressLeaseStatus
		if json.Unmarshal(text, &status) != nil {
			return
		}
		n := nodeOn(t, newFaulty())
		n.grant("a", "10.1.0.1-10.1.0.3")
		had := n.assign(request("p1", "s1", []string{"a"}))
		n.api.pool("a").Recall = 1
		n.api.answer()
		n.see()
		n.sync()
		given := n.spec().Returns
		if status.NodeUID == "" {
			status.NodeUID = "uid1"
		}
		n.api.lease.Status = status
		n.api.lease.ResourceVersion = n.api.next()
		named(t, status, n.Observe(n.api.lease.DeepCopy()))
		_ = n.Sync(t.Context(), n.api)
		n.start()
		used := map[netip.Prefix]bool{had.Addresses[0].Prefix: true}
		for _, pod := range []string{"p2", "p3", "p4"} {
			a, err := n.Assign(request(pod, "s1", []string{"a", "b"}))
			if err != nil {
				continue
			}
			at := a.Addresses[0].Prefix
			if used[at] {
				t.Fatalf("%s is two pods'", at)
			}
			if contains(given[0].Addresses, at.Addr()) && a.Addresses[0].Epoch == given[0].Epoch && !lacks(status, at.Addr()) {
				t.Fatalf("%s is given back", at)
			}
			used[at] = true
		}
		if all := n.Assignments(); len(all) == 0 || all[0].Addresses[0].Prefix != had.Addresses[0].Prefix {
			t.Fatalf("pod p1 had %v, and now %v", had, all)
		}
	})
}

// named fails if a range that cannot be read is in no error.
func named(t *testing.T, status v1alpha1.AddressLeaseStatus, err error) {
	t.Helper()
	bad := 0
	for _, p := range status.Pools {
		for _, g := range p.Grants {
			for _, text := range g.Addresses {
				if _, wrong := ipam.ParseRange(text); wrong != nil {
					bad++
				}
			}
		}
	}
	if bad > 0 && err == nil {
		t.Fatalf("%d ranges that make no sense, and no error", bad)
	}
}

// lacks says whether a status is sure to lack an address of pool a.
func lacks(status v1alpha1.AddressLeaseStatus, addr netip.Addr) bool {
	for _, p := range status.Pools {
		for _, g := range p.Grants {
			if p.Pool == "a" && contains(g.Addresses, addr) {
				return false
			}
		}
	}
	return true
}
