package cniserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/agent/cluster"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/policy"
)

// times is a network as often as wanted.
func times(network string, n int) map[string]string {
	return map[string]string{cniv1.AnnotationNetworks: strings.TrimSuffix(strings.Repeat(network+",", n), ",")}
}

// TestMostNetworks wants a pod to have as many networks as there are tables for, and
// one with more refused before anybody is asked about one of them.
func TestMostNetworks(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		read := w.readNADs()
		w.cluster.nad("bare", fmt.Sprintf(`{"cniVersion":"0.3.1","name":"bare","type":"macvlan","master":%q}`, rail(0)))
		w.cluster.pod("most", times("bare", policy.MostNetworks))
		w.cluster.pod("more", times("x", 256<<10/2))
		most, more := w.sandbox("box1", "most"), w.sandbox("box2", "more")
		w.ok(most, cnicall.Add)
		if diff := cmp.Diff([]string{"ai/bare"}, read()); diff != "" {
			t.Errorf("networks that were read (-want +got):\n%s", diff)
		}
		w.ok(most, cnicall.Del)

		const want = `pod ai/more: metadata.annotations[k8s.v1.cni.cncf.io/networks]: Too many: 131072: networks: want at most 152`
		if err := w.call(more, cnicall.Add); err == nil || err.Code != cnicall.CodeConfig || err.Msg != want {
			t.Errorf("error %.300v, want %s", err, want)
		}
		w.rest()
		if diff := cmp.Diff([]string{"ai/more RailheadAttachFailed: " + want}, w.cluster.told()); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string(nil), read()); diff != "" {
			t.Errorf("networks that were read of too many (-want +got):\n%s", diff)
		}
	})
}

// readNADs starts a server again whose reads of NetworkAttachmentDefinitions are
// noted, and returns what takes the notes.
func (w *world) readNADs() func() []string {
	var all []string
	w.stop()
	w.extend = func(c *Config) {
		c.ReadNAD = func(_ context.Context, namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
			all = append(all, namespace+"/"+name)
			return w.cluster.NAD(namespace, name)
		}
	}
	w.start()
	return func() []string {
		list := all
		all = nil
		return list
	}
}

// TestMissingNetworks wants each network that is not there to be asked for once, and
// the pod to be told of some.
func TestMissingNetworks(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		read := w.readNADs()
		w.cluster.pod("lost", times("x,y", 10))
		err := w.call(w.sandbox("box1", "lost"), cnicall.Add)
		if diff := cmp.Diff([]string{"ai/x", "ai/y"}, read()); diff != "" {
			t.Errorf("networks that were read (-want +got):\n%s", diff)
		}
		if err == nil || strings.Count(err.Msg, "not found") != severalShown || !strings.HasSuffix(err.Msg, "\nand 10 more errors") {
			t.Errorf("error %v, want %d networks that are not found, and how many more", err, severalShown)
		}
	})
}

// TestSeveral wants all errors to count, and nothing to come of none.
func TestSeveral(t *testing.T) {
	t.Parallel()
	if err := join([]error{nil, nil}); err != nil {
		t.Errorf("error %v of none", err)
	}
	var errs []error
	for n := range severalShown {
		errs = append(errs, fmt.Errorf("error %d", n))
	}
	if want, got := errors.Join(errs...).Error(), join(errs).Error(); got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	err := join(append(errs, nil, coded(cnicall.CodeTryAgain, errors.New("the last"))))
	if want := "error 9\nand 1 more errors"; !strings.HasSuffix(err.Error(), want) || codeOf(err) != cnicall.CodeTryAgain {
		t.Errorf("error %q of code %d, want %q at its end and the last one's code", err, codeOf(err), want)
	}
}

// TestLongEvents wants what no Event shows to make none, and not to be remembered.
func TestLongEvents(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	s := &Server{config: Config{Cluster: w, Now: time.Now}, told: map[string]time.Time{}}
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: "train", UID: "u"}}
	long := strings.Repeat("x", 1<<20)
	for _, text := range []string{long, long + "y", "y" + long} {
		s.event(t.Context(), pod, reasonFailed, text)
	}
	s.background.wait()
	if events := w.told(); len(events) != 2 {
		t.Errorf("%d Events, want one of each beginning", len(events))
	}
	for key := range s.told {
		if len(key) > 2*cluster.MessageMost {
			t.Errorf("%d bytes of an Event are remembered, want what it shows", len(key))
		}
	}
}

// TestTakenMAC wants a pod refused that asks for the MAC address of another pod on its
// parent, or for the parent's.
func TestTakenMAC(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		asks := func(pod, mac string) *box {
			w.cluster.pod(pod, map[string]string{cniv1.AnnotationNetworks: fmt.Sprintf(`[{"name":"gpu1","mac":%q}]`, mac)})
			return w.sandbox("box-"+pod, pod)
		}
		parent, err := w.node.LinkByName(rail(0))
		if err != nil {
			t.Fatal(err)
		}
		w.ok(asks("first", "02:00:00:00:00:07"), cnicall.Add)
		for name, mac := range map[string]string{"second": "02:00:00:00:00:07", "parent": parent.Address} {
			s := asks(name, mac)
			w.refused(s, cnicall.Add, cnicall.CodeInternal, "interface net1", syscall.EADDRINUSE.Error())
			if l, err := s.client.LinkByName("net1"); err == nil {
				t.Errorf("%s: net1 is left: %+v", name, l)
			}
		}
	})
}
