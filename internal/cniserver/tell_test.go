package cniserver

import (
	"testing"
	"time"
)

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
