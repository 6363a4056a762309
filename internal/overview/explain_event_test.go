package overview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPodEvent reads Events of both kinds, and what is left out of them.
func TestPodEvent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, tt := range map[string]struct {
		object map[string]any
		want   PodEvent
	}{
		"one that counts": {
			map[string]any{"message": "m", "count": int64(7), "firstTimestamp": "2026-03-04T01:00:00Z", "lastTimestamp": "2026-03-04T05:06:07Z"},
			PodEvent{Message: "m", Count: 7, Last: at},
		},
		"of a series": {
			map[string]any{"message": "m", "eventTime": "2026-03-04T01:00:00.000001Z", "series": map[string]any{"count": int64(3), "lastObservedTime": "2026-03-04T05:06:07.000000Z"}},
			PodEvent{Message: "m", Count: 3, Last: at},
		},
		"once": {
			map[string]any{"eventTime": "2026-03-04T05:06:07.000000Z", "lastTimestamp": nil},
			PodEvent{Count: 1, Last: at},
		},
		"made": {
			map[string]any{"metadata": map[string]any{"creationTimestamp": "2026-03-04T05:06:07Z"}, "lastTimestamp": "nonsense"},
			PodEvent{Count: 1, Last: at},
		},
		"nothing": {map[string]any{"message": 5, "series": "x"}, PodEvent{Count: 1}},
	} {
		if diff := cmp.Diff(tt.want, podEvent(tt.object)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
