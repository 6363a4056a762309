package api

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam"
)

// TestAddressesWithoutServer stops etcd and the API server. Meanwhile pods get
// addresses of the reserve of their node, and give them back. When the API server
// is there again, all that is told, and what was given back can be had by another
// node.
func TestAddressesWithoutServer(t *testing.T) {
	t.Parallel()
	const addresses, reserve = 40, 4
	s := Own(t) // it is stopped
	s.Configure(t, usual)
	s.Control(t, Replica{})
	pool := s.smallPool(t, 1, addresses)
	one, other := s.startAgent(t, "one"), s.startAgent(t, "other")
	early := s.startPods(t, "early", []*Agent{one}, 2, pool)
	s.awaitGrants(t, one, len(early)+reserve)
	late := podOn("one", "late")
	if err := s.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}

	s.CrashServer(t)
	given, err := one.Start(t.Context(), PodRequest(late.Name, late.UID, pool))
	if err != nil {
		t.Fatalf("without an API server, and with a reserve of %d: %v", reserve, err)
	}
	for _, p := range early {
		if err := one.End(t.Context(), p.given); err != nil {
			t.Errorf("without an API server: %v", err)
		}
	}
	again, err := one.Start(t.Context(), PodRequest("again", "uid-of-again", pool))
	if err != nil {
		t.Errorf("without an API server: %v", err)
	}
	if err := one.End(t.Context(), again); err != nil {
		t.Errorf("without an API server: %v", err)
	}
	s.StartServer(t)

	Eventually(t, func() string {
		var endpoint v2beta1.SpiderEndpoint
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(late), &endpoint); err != nil {
			return err.Error()
		}
		if ips := endpoint.Status.Current.IPs; len(ips) != 1 || *ips[0].IPv4 != given.Addresses[0].Prefix.String() {
			return fmt.Sprintf("%s in its SpiderEndpoint", given.Addresses[0].Prefix)
		}
		return ""
	})
	for _, p := range early {
		if err := s.Delete(t.Context(), p.Pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	rest := s.startPods(t, "rest", []*Agent{other}, addresses-1, pool)
	if got := countDifferent(rest); got != addresses-1 {
		t.Errorf("%d pods of the other node have %d different addresses", len(rest), got)
	}
}

// awaitGrants waits until a node holds that many addresses.
func (s *Server) awaitGrants(t *testing.T, a *Agent, wanted int) {
	t.Helper()
	Eventually(t, func() string {
		var lease v1alpha1.AddressLease
		if err := s.Get(t.Context(), client.ObjectKey{Name: a.Node}, &lease); err != nil {
			return err.Error()
		}
		held := int64(0)
		for _, pool := range lease.Status.Pools {
			for _, grant := range pool.Grants {
				set, err := ipam.ParseRanges(grant.Addresses)
				if err != nil {
					t.Fatal(err)
				}
				held += ipam.Count(set)
			}
		}
		if held < int64(wanted) {
			return fmt.Sprintf("%d addresses of node %s, it has %d", wanted, a.Node, held)
		}
		return ""
	})
}
