package exporter

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/counters"
)

func TestQuarantine(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	o := offender{"rdma", "statistics", counters.Errors}
	tests := []struct {
		name string
		err  error
		want []time.Duration // for how long it is left alone after each failure
	}{
		{"asked wrongly", syscall.EINVAL, []time.Duration{0, 0, 30 * time.Second, time.Minute, 2 * time.Minute}},
		{"firmware is sick", fmt.Errorf("statistics: %w", syscall.EREMOTEIO), []time.Duration{
			30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var q quarantine
			now := start
			var got []time.Duration
			for range tt.want {
				pause := q.failed(o, tt.err, now)
				got = append(got, pause)
				if held := q.holds(o, now.Add(pause-1)); held != (pause > 0) {
					t.Errorf("left alone for %v: %v before its end", pause, held)
				}
				if now = now.Add(pause); q.holds(o, now) {
					t.Errorf("left alone at the end of %v", pause)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestQuarantineEnds reads a source again that works, as if nothing had been.
func TestQuarantineEnds(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	sick, other := offender{"rdma", "statistics", counters.Errors}, offender{"rdma", "states", counters.Errors}
	var q quarantine
	q.failed(sick, syscall.EIO, now)
	q.failed(other, errors.New("odd"), now)
	if diff := cmp.Diff([]string{"EIO"}, q.reasons()); diff != "" {
		t.Error(diff)
	}
	if q.holds(other, now) {
		t.Error("one failure of a question holds it, or another")
	}
	if !q.worked(sick) || q.worked(sick) || q.worked(other) {
		t.Error("it should tell once that a question which was left alone works")
	}
	if q.reasons() != nil || q.failed(sick, syscall.EINVAL, now) != 0 {
		t.Error("an old failure counts still")
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"EIO":        fmt.Errorf("a: %w", syscall.EIO),
		"blocked":    errBlocked,
		"other":      errors.New("odd"),
		"errno 4000": syscall.Errno(4000),
	} {
		if got := reasonOf(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
