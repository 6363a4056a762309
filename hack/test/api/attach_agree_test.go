package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/internal/attach/record"
	"railhead/internal/cniserver"
	"railhead/internal/npwg"
)

// agree compares what pods were told with what is in their namespaces, on the
// node, in records and at the API server.
func (st *attachStorm) agree(t *testing.T, before nodeState) {
	t.Helper()
	wantRecords := []string{}
	for _, s := range st.slots {
		if all, found, err := inSandbox(s.sandbox.path); err != nil {
			t.Error(err)
		} else if rails, err := s.mustRails(found); err != nil || !maps.Equal(rails, s.found) || s.hasRails(all, rails) != nil {
			t.Errorf("%s was told %v, and has %v, %v, %v", s.sandbox.id, s.found, found, err, s.hasRails(all, rails))
		}
		Eventually(t, func() string { // the agent may just have begun
			if err := st.r.check(t.Context(), s.sandbox); err != nil {
				return "CHECK of " + s.sandbox.id + ": " + err.Error()
			}
			return ""
		})
		wantRecords = append(wantRecords, s.sandbox.id+" attached")
	}
	slices.Sort(wantRecords)
	now := st.state(t)
	if diff := cmp.Diff(wantRecords, now.Records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Fabric, now.Fabric); diff != "" {
		t.Errorf("behind the rails (-before +after):\n%s", diff)
	}
	st.agreeNode(t, before.Kernel, now)
	st.agreePods(t)
	st.agreeCluster(t, st.rails)
}

// agreeNode wants nothing on the node but what living pods need there: a link of
// the cluster's network each, and routes to their addresses.
func (st *attachStorm) agreeNode(t *testing.T, before contents, now nodeState) {
	t.Helper()
	added := func(before, now []string) []string {
		return slices.DeleteFunc(slices.Clone(now), func(text string) bool { return slices.Contains(before, text) })
	}
	if links := added(before.Links, now.Kernel.Links); len(links) != len(st.slots) {
		t.Errorf("the node has the links %q of %d pods", links, len(st.slots))
	}
	known := []string{"10.212.0.1/32"} // the gateway, on each of these links
	files := []string{}
	for _, s := range st.slots {
		known = append(known, s.eth0.String()+"/32")
		for _, a := range s.found {
			known = append(known, a.String()+"/32")
		}
		files = append(files, s.eth0.String(), "railhead-"+s.sandbox.id+"-eth0")
	}
	for _, text := range slices.Concat(added(before.Addresses, now.Kernel.Addresses), added(before.Routes, now.Kernel.Routes)) {
		if !slices.ContainsFunc(strings.Fields(text), func(word string) bool { return slices.Contains(known, word) }) {
			t.Errorf("on the node and of no pod: %s", text)
		}
	}
	slices.Sort(files)
	slices.Sort(now.Files)
	if diff := cmp.Diff(files, now.Files); diff != "" {
		t.Errorf("addresses of host-local, results of libcni (-want +got):\n%s", diff)
	}
}

// agreePods waits until annotations of pods tell what these have.
func (st *attachStorm) agreePods(t *testing.T) {
	t.Helper()
	for _, s := range st.slots {
		want := map[string]netip.Addr{"eth0": s.eth0}
		maps.Copy(want, s.found)
		Eventually(t, func() string { return st.tells(t, s.sandbox.pod.Name, want) })
	}
}

// tells says what the annotations of a pod lack of its addresses.
func (n *attachNode) tells(t *testing.T, name string, want map[string]netip.Addr) string {
	t.Helper()
	pod := &corev1.Pod{}
	if err := n.Get(t.Context(), client.ObjectKey{Namespace: n.name, Name: name}, pod); err != nil {
		return err.Error()
	}
	var status []npwg.NetworkStatus
	if err := json.Unmarshal([]byte(pod.Annotations[npwg.AnnotationStatus]), &status); err != nil {
		return fmt.Sprintf("the network status of %s: %v", name, err)
	}
	var report record.Report
	if err := json.Unmarshal([]byte(pod.Annotations[cniserver.AnnotationAttachment]), &report); err != nil {
		return fmt.Sprintf("the report of %s: %v", name, err)
	}
	got := map[string]netip.Addr{}
	for _, one := range status {
		for _, ip := range one.IPs {
			got[one.Interface] = netip.MustParseAddr(ip)
		}
	}
	if !maps.Equal(want, got) {
		return fmt.Sprintf("the network status of %s with %v, it has %v", name, want, got)
	}
	return ""
}

// agreeCluster wants ledgers, leases, SpiderEndpoints and `railhead addresses` to
// tell what pods have.
func (n *attachNode) agreeCluster(t *testing.T, has *assigned) {
	t.Helper()
	(&stress{Server: n.Server, assigned: has, namespace: n.name, prefix: n.name + "-"}).agreeCluster(t)
}
