package cniserver

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/holder"
	"railhead/internal/kernel/kerneltest"
)

// slowAddresses has a pod wait.
type slowAddresses struct {
	fakeAddresses

	takes time.Duration
	why   error
}

func (s *slowAddresses) Assign(context.Context, holder.Request) (holder.Assignment, error) {
	time.Sleep(s.takes)
	return holder.Assignment{}, nil
}

func (s *slowAddresses) Waiting(holder.Key) error { return s.why }

// TestTellsWaiting wants one Event of what a pod waits for, and none of one that
// need not wait long, or does not wait for addresses any more.
func TestTellsWaiting(t *testing.T) {
	t.Parallel()
	why := errors.New("no address: interface net1: pool gpu1: all addresses are held, 1 lack")
	for name, test := range map[string]struct {
		slow *slowAddresses
		want []string
	}{
		"soon":      {&slowAddresses{takes: waitingAfter - 1, why: why}, nil},
		"late":      {&slowAddresses{takes: time.Minute, why: why}, []string{"ai/train RailheadAttachWaiting: waits for addresses for 5s so far: " + why.Error()}},
		"just done": {&slowAddresses{takes: time.Minute}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(t)
				s := &Server{
					config: Config{Addresses: test.slow, Cluster: cluster, Now: time.Now}, told: map[string]time.Time{}, log: slog.New(slog.DiscardHandler),
				}
				pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: "train", UID: "u"}}
				if _, err := s.addresses(t.Context(), pod, holder.Request{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if diff := cmp.Diff(test.want, cluster.told()); diff != "" {
					t.Errorf("Events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestTellsIgnored wants the owner of a pod to have one Event of all that its
// annotations say in vain, and the attachment's report the same.
func TestTellsIgnored(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.cluster.pod("odd", map[string]string{
			cniv1.AnnotationNetworks: "ai/gpu1", v2beta1.AnnotationRoutes: `[{"dst":"10.70.0.0/16","gw":"192.168.0.1"}]`,
			"ipam.spidernet.io/ippols": "x", "k8s.v1.cni.cncf.io/netwroks": "x",
		})
		w.cluster.pod("plain", map[string]string{"k8s.v1.cni.cncf.io/network": "ai/gpu1"})
		want := []string{
			"annotation ipam.spidernet.io/ippols has no effect here: did you mean ipam.spidernet.io/ippools?",
			"annotation k8s.v1.cni.cncf.io/netwroks has no effect here: did you mean k8s.v1.cni.cncf.io/networks?",
			"the route to 10.70.0.0/16 has no effect: no interface of the pod has a subnet with its gateway 192.168.0.1",
		}
		s := w.sandbox("box1", "odd")
		w.ok(s, cnicall.Add)
		w.rest()
		if diff := cmp.Diff([]string{"ai/odd RailheadAttachWarning: attached, but " + strings.Join(want, "; ")}, w.cluster.told()); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
		att, _ := w.server.config.Records.Get("box1")
		if diff := cmp.Diff(want, att.Whole().Notes[len(att.Whole().Notes)-len(want):]); diff != "" {
			t.Errorf("notes (-want +got):\n%s", diff)
		}
		w.ok(s, cnicall.Del)
		plain := w.sandbox("box2", "plain")
		w.ok(plain, cnicall.Add)
		w.rest()
		if diff := cmp.Diff([]string{"ai/plain RailheadAttachWarning: attached, but annotation k8s.v1.cni.cncf.io/network has no effect here: did you mean k8s.v1.cni.cncf.io/networks?"}, w.cluster.told()); diff != "" {
			t.Errorf("Events of a pod without networks (-want +got):\n%s", diff)
		}
		w.ok(plain, cnicall.Del)
		w.addresses.err = errors.New("no pool is named")
		lost := w.sandbox("box3", "odd")
		w.refused(lost, cnicall.Add, cnicall.CodeInternal)
		w.rest()
		if diff := cmp.Diff([]string{"ai/odd RailheadAttachFailed: pod ai/odd: no pool is named; " + strings.Join(want[:2], "; ")}, w.cluster.told()); diff != "" {
			t.Errorf("Events of a pod that is not attached (-want +got):\n%s", diff)
		}
	})
}

// TestTold wants the kubelet's many attempts to make few Events, and each new
// text one.
func TestTold(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	s := &Server{config: Config{Now: func() time.Time { return now }}, told: map[string]time.Time{}}
	for i, step := range []struct {
		event string
		after time.Duration
		told  bool
	}{
		{"pod 1 gateway", 0, false},
		{"pod 1 gateway", eventAgain / 2, true},
		{"pod 1 address", 0, false},
		{"pod 2 gateway", 0, false},
		{"pod 1 gateway", eventAgain / 2, false},
		{"pod 1 address", 0, true},
		{"pod 1 address", eventAgain, false},
	} {
		now = now.Add(step.after)
		if got := s.isTold(step.event); got != step.told {
			t.Errorf("step %d, %s: told %t, want %t", i, step.event, got, step.told)
		}
	}
	if len(s.told) != 1 {
		t.Errorf("%v is remembered, want the last alone", s.told)
	}
}
