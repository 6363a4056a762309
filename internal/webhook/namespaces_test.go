package webhook

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamespaces(t *testing.T) {
	var read []string
	n := NewNamespaces(func(_ context.Context, name string) (map[string]string, error) {
		read = append(read, name)
		if name == "away" {
			return nil, errAway
		}
		return map[string]string{rdma: "x", "other": "y"}, nil
	})
	var answers [][]string
	n.OnChange(func() { answers = append(answers, n.Annotated()) })

	n.Put(namespace("plain", map[string]string{"other": "x", rdma: ""}))
	n.Put(namespace("b", map[string]string{rdma: "x"}))
	n.Put(namespace("a", map[string]string{rdma: "x"}))
	n.Put(namespace("a", map[string]string{rdma: "y"})) // another value, the same answer
	n.Remove("plain")
	n.Remove("never there")
	n.Put(namespace("b", nil))
	n.Remove("a")
	want := [][]string{{"b"}, {"a", "b"}, {"a"}, nil}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("answers after changes (-want +got):\n%s", diff)
	}

	for _, tt := range []struct {
		name string
		want map[string]string
		err  error
	}{
		{"b", map[string]string{rdma: "x"}, nil}, // annotated a moment ago
		{"a", map[string]string{rdma: "x"}, nil}, // gone, and maybe there again
		{"away", nil, errAway},
	} {
		got, err := n.Annotations(t.Context(), tt.name)
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: got error %v, want %v", tt.name, err, tt.err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if diff := cmp.Diff([]string{"b", "a", "away"}, read); diff != "" {
		t.Errorf("namespaces that were read (-want +got):\n%s", diff)
	}
}
