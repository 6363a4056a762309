package cniserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/npwg"
)

// ready is what the metric says.
func (w *world) ready() map[string]float64 {
	w.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w.server.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "railhead_cni_ready" {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return got
}

// missing is why no pod with networks of its own can be attached.
func (w *world) missing() string {
	var list []string
	for _, n := range w.server.needs() {
		if n.err != nil {
			list = append(list, n.what+": "+n.err.Error())
		}
	}
	return strings.Join(list, "\n")
}

// TestStatus wants a node to take pods as long as any can be attached.
func TestStatus(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "plain")
		w.ok(s, cnicall.Status)
		w.delegate.missing = true
		w.refused(s, cnicall.Status, cnicall.CodeUnavailable, "10-calico.conflist")
		w.delegate.missing = false
		w.delegate.fail = map[string]error{"STATUS calico": errTheirs()}
		w.refused(s, cnicall.Status, 57, "k8s-pod-network", "no route")
		w.delegate.fail = nil
		if got := w.server.tellNeeds(""); got != "" {
			t.Errorf("missing %q, want nothing", got)
		}
		w.addresses.setReady(errors.New("no journal"))
		w.cluster.setReady(errors.New("pods were never read"))
		w.disk.fill(syscall.ENOSPC)
		w.ok(s, cnicall.Add) // the default network alone needs no record
		w.ok(s, cnicall.Status)
		if diff := cmp.Diff(map[string]float64{"restart": 1, "cluster": 0, "addresses": 0, "records": 0}, w.ready()); diff != "" {
			t.Errorf("metric (-want +got):\n%s", diff)
		}
		if got := w.missing(); !strings.HasPrefix(got, "cluster: pods were never read\naddresses: no journal\nrecords of attachments: ") {
			t.Errorf("missing %q", got)
		}
		w.ok(s, cnicall.Del)
		w.addresses.setReady(nil)
		w.cluster.setReady(nil)
		w.server.tryDisk()
		if got := w.server.tellNeeds(""); got != "records" {
			t.Errorf("missing %q, want the records", got)
		}
		w.disk.fill(nil)
		w.server.tryDisk()
		if got := w.missing(); got != "" {
			t.Errorf("missing %q", got)
		}
		w.checkNothingLeft()
	})
}

// TestTellNeeds logs once what is missing, and once that it is there.
func TestTellNeeds(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.stop()
		var log bytes.Buffer
		w.server.log = slog.New(slog.NewTextHandler(&log, nil))
		told := ""
		for _, err := range []error{nil, errors.New("pods were never read"), errors.New("networks were never read"), nil, nil} {
			w.cluster.setReady(err)
			told = w.server.tellNeeds(told)
		}
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "cluster: pods were never read") || !strings.Contains(text, "can be attached") {
			t.Errorf("logged\n%s", text)
		}
	})
}

// TestPoolsUnread has a pod come to an agent that has just started: that it knows of
// no pools means nothing.
func TestPoolsUnread(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.cluster.setReady(errors.New("not read yet: SpiderIPPools (asked for now)"))
		w.refused(s, cnicall.Add, cnicall.CodeTryAgain, "the agent does not know yet all that addresses are chosen by: not read yet: SpiderIPPools")
		w.cluster.setReady(nil)
		w.ok(s, cnicall.Add)
		w.ok(s, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestFirstStart installs Railhead: neither its controller nor its definitions are
// there, and the controller has to be attached.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		none := errors.New("the cluster has no such kind: its CustomResourceDefinition is not installed")
		w.cluster.setReady(none)
		w.stop()
		w.addresses.notReady, w.addresses.err = none, none
		w.extend = func(c *Config) {
			c.ReadNAD = func(context.Context, string, string) (*cniv1.NetworkAttachmentDefinition, error) { return nil, none }
		}
		w.start()
		plain, train := w.sandbox("box1", "plain"), w.sandbox("box2", "train")
		w.ok(plain, cnicall.Status)
		w.ok(plain, cnicall.Add)
		w.refused(train, cnicall.Add, cnicall.CodeTryAgain, "ai/train", "not installed")
		w.ok(plain, cnicall.Check)
		w.ok(plain, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestNewNAD finds a network that was made a moment before its pod.
func TestNewNAD(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		nads := w.cluster.nads
		w.cluster.nads = nil // no watch has told of them
		s := w.sandbox("box1", "train")
		w.refused(s, cnicall.Add, cnicall.CodeConfig, "ai/train", "not found")
		w.stop()
		asked := 0
		w.extend = func(c *Config) {
			c.ReadNAD = func(_ context.Context, namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
				asked++
				return nads[namespace+"/"+name], nil
			}
		}
		w.start()
		w.ok(s, cnicall.Add)
		if asked != rails {
			t.Errorf("%d questions, want one for each network", asked)
		}
		w.ok(s, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestFullDiskDel: a full disk keeps no pod from going.
func TestFullDiskDel(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		w.ok(s, cnicall.Add)
		w.disk.fill(syscall.ENOSPC)
		w.ok(s, cnicall.Del)
		w.ok(s, cnicall.Del)
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
		w.disk.fill(nil)
		w.ok(s, cnicall.Add)
		w.ok(s, cnicall.Del)
	})
}

// TestDamage starts on records of which some are lost.
func TestDamage(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.ok(s, cnicall.Add)
		w.stop()
		w.disk.files[record.File][100] ^= 1
		var log bytes.Buffer
		w.extend = func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
		w.start()
		w.ok(s, cnicall.Del)
		w.stop()
		if text := log.String(); strings.Count(text, "records of attachments are lost") != 1 {
			t.Errorf("logged\n%s\nwant once that records are lost", text)
		}
	})
}

// TestProvenInFailure: what nobody else has is not asked for again because another
// rail's gateway did not answer.
func TestProvenInFailure(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.fabricDown(2)
		w.refused(s, cnicall.Add, cnicall.CodeInternal, "net3", "gateway 172.16.13.254")
		w.fabricUp(2)
		w.addresses.next = 0 // the same ones
		w.ok(s, cnicall.Add)
		att, _ := w.server.config.Records.Get("box1")
		for _, c := range att.Report.Checks {
			if c.Kind == record.CheckConflict {
				t.Errorf("asked again: %+v", c)
			}
		}
		w.ok(s, cnicall.Del)
	})
}

// TestLongReport wants an annotation that a pod can have, whatever there is to tell.
func TestLongReport(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.ok(s, cnicall.Add)
		att, _ := w.server.config.Records.Get("box1")
		for _, size := range []int{0, 10, 1000} { // the last one cannot be told at all
			att.Report.Notes, att.Report.Checks = nil, nil
			for range size {
				att.Report.Notes = append(att.Report.Notes, "this is a note of some length, of which there are many")
				if size > 100 {
					att.Report.Checks = append(att.Report.Checks, record.Check{Interface: "net1", Error: "an error of some length, of which there are many"})
				}
			}
			body, err := w.server.statusPatch(att)
			if err != nil {
				t.Fatal(err)
			}
			var patch metav1.PartialObjectMetadata
			if err := json.Unmarshal(body, &patch); err != nil {
				t.Fatal(err)
			}
			text, has := patch.Annotations[record.Annotation]
			if len(text) > record.AnnotationLimit || has != (size < 1000) || patch.Annotations[npwg.AnnotationStatus] == "" {
				t.Errorf("%d notes: annotation of %d bytes: %t", size, len(text), has)
			}
		}
		w.ok(s, cnicall.Del)
	})
}

// TestRepublishLater has what an earlier run did not send wait until this run was told
// of pods: of one that the earlier run was not told of either, nothing is known before.
func TestRepublishLater(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		back := w.refusePatches()
		w.ok(w.sandbox("box1", "train"), cnicall.Add)
		<-w.cluster.patched
		w.stop()
		back()
		away := errors.New("the API server is away")
		w.cluster.podErr = away
		asked := 0
		w.cluster.current = func() error {
			if asked++; asked < 3 {
				return away
			}
			w.cluster.mu.Lock()
			defer w.cluster.mu.Unlock()
			w.cluster.podErr = nil
			return nil
		}
		w.start()
		if got := w.missing(); strings.Contains(got, "cluster") {
			t.Errorf("what an earlier run was told is not enough: %s", got)
		}
		if key := <-w.cluster.patched; key != "ai/train" {
			t.Errorf("patched %s", key)
		}
	})
}
