package cniserver

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"railhead/internal/attach/probe"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/npwg"
)

// overPeer counts the routes of the node's table for pods that lead to a sandbox
// over the node's end of its eth0.
func (w *world) overPeer(s *box) (count int) {
	w.t.Helper()
	eth0, err := s.client.LinkByName("eth0")
	if err != nil {
		w.t.Fatal(err)
	}
	routes, err := w.node.Routes()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range routes {
		if r.Table == 500 && r.LinkIndex == eth0.ParentIndex {
			count++
		}
	}
	return count
}

// TestEightRails attaches a pod as spec/003 has it, and takes it away.
func TestEightRails(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		answer := w.ok(s, cnicall.Add)
		var result types100.Result
		if err := json.Unmarshal(answer, &result); err != nil || result.CNIVersion != "1.0.0" || len(result.Interfaces) != 2 {
			t.Errorf("answer %s: %v, want calico's alone", answer, err)
		}
		links, err := s.client.Links()
		if err != nil {
			t.Fatal(err)
		}
		if len(links) != 10 {
			t.Errorf("%d links, want lo, eth0 and eight rails: %+v", len(links), links)
		}
		if over := w.overPeer(s); over != 8 {
			t.Errorf("the node reaches %d rails of the pod over its end of eth0, want 8", over)
		}
		w.ok(s, cnicall.Check)
		if key := <-w.cluster.patched; key != "ai/train" {
			t.Errorf("patched %s", key)
		}
		w.checkPatch("ai/train", 9)
		again := w.ok(s, cnicall.Add)
		if string(again) != string(answer) {
			t.Errorf("the same ADD answers\n%s, before\n%s", again, answer)
		}
		w.ok(s, cnicall.Del)
		w.rest()
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
		if want := []string{"ADD calico eth0", "ADD portmap eth0", "CHECK calico eth0", "CHECK portmap eth0", "DEL portmap eth0", "DEL calico eth0"}; !cmp.Equal(want, w.delegate.asked()) {
			t.Error("plugins of others were not asked as they should")
		}
		w.ok(s, cnicall.Del) // again
	})
}

// checkPatch looks at what a pod was told.
func (w *world) checkPatch(key string, networks int) {
	w.t.Helper()
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	list := w.cluster.patches[key]
	if len(list) != 1 {
		w.t.Fatalf("%d patches, want one", len(list))
	}
	var patch struct {
		Metadata struct {
			UID         string
			Annotations map[string]string
		}
	}
	if err := json.Unmarshal([]byte(list[0]), &patch); err != nil {
		w.t.Fatal(err)
	}
	status, err := npwg.ParseStatus(patch.Metadata.Annotations[npwg.AnnotationStatus])
	if err != nil || len(status) != networks {
		w.t.Errorf("%d networks in the status, want %d: %v", len(status), networks, err)
	}
	for _, n := range status[1:] {
		if len(n.IPs) != 1 || n.MAC == "" || n.MTU == 0 || n.Default || len(n.Gateway) != 1 {
			w.t.Errorf("status of a rail: %+v", n)
		}
	}
	report, err := record.ParseAnnotation(patch.Metadata.Annotations[record.Annotation])
	if err != nil || patch.Metadata.UID == "" || report.At.IsZero() || len(report.Interfaces) != networks || len(report.Routes) == 0 || len(report.Rules) == 0 {
		w.t.Errorf("patch %s: %v", list[0], err)
	}
}

// checkNothingLeft wants neither records nor addresses.
func (w *world) checkNothingLeft() {
	w.t.Helper()
	if all := w.server.config.Records.All(); len(all) > 0 {
		w.t.Errorf("records are left: %+v", all)
	}
	if n := w.addresses.held(); n > 0 {
		w.t.Errorf("%d pods have addresses still", n)
	}
	if n := w.server.attachments(); n > 0 {
		w.t.Errorf("%v attachments are counted", n)
	}
	if len(w.server.claimed) > 0 {
		w.t.Errorf("claims are left: %v", w.server.claimed)
	}
}

// TestProven asks about an address once, and again when the node is granted it anew.
func TestProven(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		for n, want := range []int{16, 8, 16} { // checks: gateways, and conflicts where need be
			w.addresses.next, w.addresses.epoch = 0, int64(n/2)
			w.ok(s, cnicall.Add)
			att, _ := w.server.config.Records.Get("box1")
			if len(att.Report.Checks) != want {
				t.Errorf("ADD %d: %d checks, want %d: %+v", n, len(att.Report.Checks), want, att.Report.Checks)
			}
			w.ok(s, cnicall.Del)
		}
	})
}

// TestWatcher has somebody else claim an address of a pod.
func TestWatcher(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.ok(s, cnicall.Add)
		w.rest()
		w.server.conflict(probe.Conflict{Parent: rail(2), Addr: netip.MustParseAddr("172.16.13.1"), MAC: macOf("02:42:00:00:00:01"), Owner: "ai/train", Kind: probe.KindClaim})
		w.rest()
		events := w.cluster.told()
		if len(events) != 1 || !strings.HasPrefix(events[0], "ai/train "+reasonConflict+": 02:42:00:00:00:01 claims address 172.16.13.1 of this pod, seen on enp13s0f0np0") {
			t.Errorf("Events %q", events)
		}
		w.ok(s, cnicall.Del)
	})
}

// TestMetrics looks at what a registry has.
func TestMetrics(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.ok(s, cnicall.Add)
		w.refused(w.sandbox("box2", "gone"), cnicall.Add, cnicall.CodeInternal)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(w.server.Collectors()...)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, f := range families {
			got[f.GetName()] = len(f.GetMetric())
			if f.GetName() == "railhead_attachments" && f.GetMetric()[0].GetGauge().GetValue() != 1 {
				t.Errorf("%v", f)
			}
		}
		if got["railhead_cni_requests_total"] != 2 || got["railhead_attach_duration_seconds"] < 10 || got["railhead_cni_repairs_total"] != 1 {
			t.Errorf("series %v", got)
		}
		w.ok(s, cnicall.Del)
	})
}
