package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
)

// TestMark: a namespace gets the label in the write that has it ask, loses it in
// the write that has it ask no more, and keeps all that is not ours.
func TestMark(t *testing.T) {
	const head = "apiVersion: v1\nkind: Namespace\nspec: {finalizers: [kubernetes], unheard: 9007199254740993}\n"
	const path = "/metadata/labels/railhead.io~1injection"
	for _, tt := range []struct {
		name, metadata string
		want           []map[string]any
	}{
		{"asks", "metadata: {name: a, labels: {k: v}, annotations: {cni.spidernet.io/rdma-resource-inject: rails}}", []map[string]any{{"op": "add", "path": path, "value": "true"}}},
		{"asks, without labels", "metadata: {name: a, annotations: {cni.spidernet.io/network-resource-inject: rails}}", []map[string]any{{"op": "add", "path": "/metadata/labels", "value": map[string]any{"railhead.io/injection": "true"}}}},
		{"asks no more", "metadata: {name: a, labels: {k: v, railhead.io/injection: \"true\"}}", []map[string]any{{"op": "remove", "path": path}}},
		{"neither", "metadata: {name: a, labels: {k: v}, annotations: {k: v}}", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response := newBench(t).ask(t, pathNamespaces, request(t, admissionv1.Update, head+tt.metadata, head+tt.metadata))
			if !response.Allowed {
				t.Fatalf("%+v", response)
			}
			var got []map[string]any
			if len(response.Patch) > 0 {
				if err := json.Unmarshal(response.Patch, &got); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}
