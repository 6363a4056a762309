package cniserver

import (
	"strings"
	"testing"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
)

// TestPodNamed wants each error to name the pod once, whoever finds it: a network of the
// pod's name is not the pod.
func TestPodNamed(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		for _, tt := range []struct{ networks, below, whole string }{
			{"ai/gpu1,ai/train", "pod ai/train: interface net1: ", "pod ai/train: "},
			{"ai/gpu1,a/b/c", "pod ai/train: metadata.annotations", "pod ai/train: metadata.annotations"},
			{"ai/none", "pod ai/train: interface net1: ", "pod ai/train: interface net1: "},
		} {
			w.cluster.nad("none", strings.Replace(railConfig(0), `["gpu1"]`, `["none"]`, 1))
			w.cluster.pod("train", map[string]string{cniv1.AnnotationNetworks: tt.networks})
			s := w.sandbox("box1", "train")
			below := s.belowRequest(cnicall.Add, pluginIPAM, "net1", strings.Replace(macvlanConfig(0), `["gpu1"]`, `["none"]`, 1))
			for request, want := range map[*cnicall.Request]string{&below: tt.below, new(s.request(cnicall.Add)): tt.whole} {
				err := w.server.Handle(t.Context(), *request).Error
				if err == nil || !strings.HasPrefix(err.Msg, want) || strings.Count(err.Msg, "pod ai/train: ") != 1 {
					t.Errorf("%s of a pod with %s: %v, want %q once", request.Plugin, tt.networks, err, want)
				}
			}
		}
		s := w.sandbox("box1", "train")
		s.path = "/proc/self/fd/4711"
		err := w.server.Handle(t.Context(), s.belowRequest(cnicall.Add, pluginIPAM, "net1", macvlanConfig(0))).Error
		if err == nil || !strings.HasPrefix(err.Msg, "pod ai/train: CNI_NETNS: ") {
			t.Errorf("no namespace: %v", err)
		}
		w.checkNothingLeft()
	})
}
