package cniserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
)

// gc is GC of a runtime that says what it has, as fields of JSON.
func (s *box) gc(has string) cnicall.Request {
	r := s.request(cnicall.GC)
	r.Config = json.RawMessage(strings.Replace(string(r.Config), `"type"`, has+`,"type"`, 1))
	return r
}

// TestGC takes away what the runtime does not list.
func TestGC(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		one, two := w.sandbox("box1", "train"), w.sandbox("box2", "plain")
		before := w.snapshot(one)
		w.ok(one, cnicall.Add)
		w.ok(two, cnicall.Add)
		w.delegate.asked()
		r := one.gc(`"cni.dev/valid-attachments":[{"containerID":"box2","ifname":"eth0"}]`)
		if answer := w.server.Handle(t.Context(), r); answer.Error != nil {
			t.Fatal(answer.Error)
		}
		if want, got := []string{"DEL portmap eth0", "DEL calico eth0", "GC calico ", "GC portmap "}, w.delegate.asked(); !cmp.Equal(want, got) {
			t.Errorf("plugins of others: %q, want %q", got, want)
		}
		if all := w.server.config.Records.All(); len(all) != 1 || all[0].ContainerID != "box2" {
			t.Errorf("records %+v, want box2's", all)
		}
		w.ok(two, cnicall.Del)
		if diff := cmp.Diff(before, w.snapshot(one), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
		w.refused(one, cnicall.GC, cnicall.CodeConfig, "cni.dev/valid-attachments")
	})
}

// TestGCClock takes away what an earlier run attached by a clock that was ahead.
func TestGCClock(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "plain")
		w.ok(s, cnicall.Add)
		w.again(func(a record.Attachment) record.Attachment { a.At = a.At.AddDate(1, 0, 0); return a })
		w.rest() // GC leaves alone what is being looked at
		w.gcAll(s)
		w.checkNothingLeft()
	})
}

// hasNothing is what a runtime says for GC that has no sandbox.
const hasNothing = `"cni.dev/valid-attachments":[]`

// gcAll has the runtime say that it has nothing.
func (w *world) gcAll(s *box) {
	w.t.Helper()
	if answer := w.server.Handle(w.t.Context(), s.gc(hasNothing)); answer.Error != nil {
		w.t.Error(answer.Error)
	}
}

// TestGCMeanwhile has a pod attached while GC works at another: it was not there yet
// when the runtime said what it has.
func TestGCMeanwhile(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		one, two := w.sandbox("box1", "plain"), w.sandbox("box2", "train")
		w.ok(one, cnicall.Add)
		begun, finish, attached := make(chan struct{}), make(chan struct{}), make(chan struct{})
		w.delegate.during = func(_ context.Context, call string) error {
			switch call {
			case "ADD portmap": // of box2, whose record is there
				close(begun)
				<-finish
			case "DEL portmap": // of box1, by GC
				close(finish)
				<-attached
			}
			return nil
		}
		go func() {
			defer close(attached)
			if err := w.call(two, cnicall.Add); err != nil {
				t.Errorf("ADD: %v", err)
			}
		}()
		<-begun
		w.gcAll(one)
		w.delegate.during = nil
		w.ok(two, cnicall.Check)
		w.refused(one, cnicall.Check, cnicall.CodeContainer, "box1")
		w.ok(two, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestGCNull has a runtime say null for its list: what lives stays, what does not
// goes, and the cluster's own network is not told that all is gone.
func TestGCNull(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		one, two := w.sandbox("box1", "train"), w.sandbox("box2", "plain")
		w.ok(one, cnicall.Add)
		w.ok(two, cnicall.Add)
		one.end()
		w.rest()
		w.delegate.asked()
		for _, field := range []string{"valid-attachments", "attachments"} {
			if answer := w.server.Handle(t.Context(), two.gc(`"cni.dev/`+field+`":null`)); answer.Error != nil {
				t.Fatal(answer.Error)
			}
		}
		if want, got := []string{"DEL portmap eth0", "DEL calico eth0"}, w.delegate.asked(); !cmp.Equal(want, got) {
			t.Errorf("plugins of others: %q, want %q", got, want)
		}
		if all := w.server.config.Records.All(); len(all) != 1 || all[0].ContainerID != "box2" {
			t.Errorf("records %+v, want box2's", all)
		}
		w.ok(two, cnicall.Check)
		w.ok(two, cnicall.Del)
		w.checkNothingLeft()
	})
}
