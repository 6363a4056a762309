package address

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/granter"
)

// TestConfirm wants the API server asked about nodes that are missing or out of
// service by the cache, and its answer to count; once a version of the lease.
func TestConfirm(t *testing.T) {
	t.Parallel()
	out := func(name string, uid types.UID) *corev1.Node {
		node := testNode(name, uid)
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
		return node
	}
	asked := map[string]int{}
	api := fakeAPI(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			asked[key.Name]++
			if key.Name == "mute" {
				return errors.New("no answer")
			}
			return c.Get(ctx, key, o, options...)
		},
	}, testNode("well", "1"), testNode("back", "2"), testNode("mended", "1"), out("out", "1"), testNode("word", "1"))
	var leases []*v1alpha1.AddressLease
	for _, name := range []string{"back", "gone", "mended", "mute", "out", "well", "word"} {
		lease := testLease(name, "1")
		lease.ResourceVersion = "7"
		leases = append(leases, lease)
	}
	leases[6].Annotations = map[string]string{v1alpha1.AnnotationFenced: "1"}
	view := func() map[string]granter.Node { // of a cache that is behind
		return map[string]granter.Node{
			"mended": {UID: "1", Fenced: true}, "mute": {UID: "1", Fenced: true}, "out": {UID: "1", Fenced: true},
			"well": {UID: "1"}, "word": {UID: "1", Fenced: true},
		}
	}
	want := map[string]granter.Node{
		"back": {UID: "2"}, "mended": {UID: "1"}, "mute": {}, "out": {UID: "1", Fenced: true},
		"well": {UID: "1"}, "word": {UID: "1", Fenced: true},
	}
	c := newConfirmation(api)
	for round := range 2 {
		got := view()
		if err := c.confirm(t.Context(), leases, got); err == nil || err.Error() != "node mute: whether its addresses can be taken: no answer" {
			t.Errorf("round %d: error %v", round, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
	}
	leases[1].ResourceVersion, leases[4].ResourceVersion = "8", "8" // somebody wrote them since
	if err := c.confirm(t.Context(), leases, view()); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff(map[string]int{"back": 3, "gone": 2, "mended": 3, "mute": 3, "out": 2}, asked); diff != "" {
		t.Errorf("how often each was asked about (-want +got):\n%s", diff)
	}
}
