package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/hack/program"
	"railhead/internal/ipam"
	"railhead/internal/overview"
)

// agreeCluster waits until the objects of the cluster tell of what pods have as
// the test's own record does.
func (st *stress) agreeCluster(t *testing.T) {
	t.Helper()
	has := st.assigned.all()
	nodes := map[string]string{} // of pods
	for _, p := range st.livingPods(t) {
		nodes[p.Name] = p.Spec.NodeName
	}
	Eventually(t, func() string {
		held, granted := st.ledgers(t), st.leases(t)
		if diff := cmp.Diff(held, granted); diff != "" {
			return "leases that tell what ledgers do (-ledgers +leases):\n" + diff
		}
		for address, pod := range has {
			if held[address.String()] != nodes[pod] {
				return fmt.Sprintf("%s of pod %s on %s in a ledger, which says %q", address, pod, nodes[pod], held[address.String()])
			}
		}
		if diff := cmp.Diff(texts(has), st.endpoints(t)); diff != "" {
			return "SpiderEndpoints that tell what pods have (-have +told):\n" + diff
		}
		return st.overview(t, texts(has), nodes, held)
	})
}

// overview is what `railhead addresses` says otherwise than the test's own
// record, and ledgers; empty if that is nothing.
func (st *stress) overview(t *testing.T, has, nodes, held map[string]string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := program.Command(t.Context(), filepath.Join(builtPrograms(t), "railhead"), "addresses", "--kubeconfig", st.kubeconfig(), "--output", "json")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ended := cmd.Run()
	var books overview.Books
	if err := json.Unmarshal(stdout.Bytes(), &books); err != nil {
		t.Fatalf("railhead addresses: %v, %v\n%s%s", ended, err, stdout.String(), stderr.String())
	}
	isOurs := func(c overview.Conflict) bool { return strings.HasPrefix(c.Pool, st.prefix) }
	if slices.ContainsFunc(books.Conflicts, isOurs) || ended != nil && len(books.Conflicts) == 0 {
		return fmt.Sprintf("railhead addresses without a conflict: %v\n%s%s", ended, stdout.String(), stderr.String())
	}
	used, all := map[string]string{}, map[string]string{}
	for _, r := range books.Runs {
		if !strings.HasPrefix(r.Pool, st.prefix) {
			continue
		}
		maps.Copy(all, each(t, r.Node, r.Addresses))
		if r.State != overview.StateUsed {
			continue
		}
		pod := strings.TrimPrefix(r.Pod, st.namespace+"/")
		if nodes[pod] != r.Node {
			return fmt.Sprintf("railhead addresses to say that %s is on %s, not on %s", pod, nodes[pod], r.Node)
		}
		maps.Copy(used, each(t, pod, r.Addresses))
	}
	return cmp.Diff(has, used) + cmp.Diff(held, all)
}

func texts(has map[netip.Addr]string) map[string]string {
	result := map[string]string{}
	for address, pod := range has {
		result[address.String()] = pod
	}
	return result
}

// ledgers are the nodes that hold addresses, by what ledgers say.
func (st *stress) ledgers(t *testing.T) map[string]string {
	t.Helper()
	var list v1alpha1.PoolLedgerList
	if err := st.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for i := range list.Items {
		if !strings.HasPrefix(list.Items[i].Name, st.prefix) {
			continue
		}
		for _, run := range list.Items[i].Spec.Runs {
			maps.Copy(held, each(t, run.Node, run.Addresses))
		}
	}
	return held
}

// leases are the nodes that hold addresses, by what their leases say.
func (st *stress) leases(t *testing.T) map[string]string {
	t.Helper()
	var list v1alpha1.AddressLeaseList
	if err := st.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	granted := map[string]string{}
	for i := range list.Items {
		for _, pool := range list.Items[i].Status.Pools {
			if !strings.HasPrefix(pool.Pool, st.prefix) {
				continue
			}
			for _, grant := range pool.Grants {
				maps.Copy(granted, each(t, list.Items[i].Name, grant.Addresses...))
			}
		}
	}
	return granted
}

// each are the addresses of ranges, which all have one holder.
func each(t *testing.T, holder string, ranges ...string) map[string]string {
	t.Helper()
	set, err := ipam.ParseRanges(ranges)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, r := range set.Ranges() {
		for a := r.From(); r.Contains(a); a = a.Next() {
			all[a.String()] = holder
		}
	}
	return all
}

// endpoints are the pods that have addresses, by what SpiderEndpoints say.
func (st *stress) endpoints(t *testing.T) map[string]string {
	t.Helper()
	var list v2beta1.SpiderEndpointList
	if err := st.List(t.Context(), &list, client.InNamespace(st.namespace)); err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, e := range list.Items {
		for _, nic := range e.Status.Current.IPs {
			if nic.IPv4 != nil {
				told[netip.MustParsePrefix(*nic.IPv4).Addr().String()] = e.Name
			}
		}
	}
	return told
}
