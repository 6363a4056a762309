package controller

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// TestBrief wants Events that the API server takes, whole where they are short
// enough, and never half a character.
func TestBrief(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "short", strings.Repeat("a", noteMost), strings.Repeat("a", noteMost+1), strings.Repeat("ä", noteMost)} {
		recorder := events.NewFakeRecorder(1)
		briefRecorder{recorder}.Eventf(&corev1.ConfigMap{}, nil, "Warning", "Invalid", "Load", "%s", text)
		note := strings.TrimPrefix(<-recorder.Events, "Warning Invalid ")
		cut := strings.TrimSuffix(note, "…")
		switch {
		case len(note) > noteMost || !utf8.ValidString(note) || !strings.HasPrefix(text, cut):
			t.Errorf("a text of %d bytes became %d: %q", len(text), len(note), note)
		case len(text) <= noteMost && note != text:
			t.Errorf("%q became %q", text, note)
		case len(text) > noteMost && len(note) < noteMost-len("…")-utf8.UTFMax:
			t.Errorf("a text of %d bytes became %d", len(text), len(note))
		}
	}
}
