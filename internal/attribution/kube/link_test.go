package kube

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLinkIsLost has the API server go away in several ways for a long time, and
// come back. Each is told once in the log, with why, and by the error.
func TestLinkIsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leave, comeBack func(a *apiServer)
		why             string
	}{
		"it refuses connections": {(*apiServer).Leave, (*apiServer).ComeBack, "connection refused"},
		"it does not answer": {
			func(a *apiServer) { a.Leave(); a.Change(func() { a.IsAway, a.IsSilent = false, true }) },
			func(a *apiServer) { a.Change(func() { a.IsSilent = false }) },
			"no answer for 10s",
		},
		"it does not let us": {
			func(a *apiServer) {
				a.Leave()
				a.Change(func() { a.IsAway, a.Answers[podsPath] = false, http.StatusForbidden })
			},
			func(a *apiServer) { a.Change(func() { delete(a.Answers, podsPath) }) },
			"the API server says 403",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, log := newAPIServer(), &records{}
			a.setPod(podOf("u1", "p"))
			logged(t, a, log, func(s *Source) {
				wantLink(t, s, log, "")
				test.leave(a)
				after(time.Hour)
				wantLink(t, s, log, test.why, "WARN")
				if s.Pod("u1") == nil {
					t.Error("the pod is not known any more")
				}
				test.comeBack(a)
				after(2 * time.Minute)
				wantLink(t, s, log, "", "WARN", "INFO")
				after(time.Hour) // in which watches end and begin
				wantLink(t, s, log, "", "WARN", "INFO")
			})
		})
	}
}

// TestLinkTellsAnotherReason has an API server refuse connections first, and our
// rights afterwards.
func TestLinkTellsAnotherReason(t *testing.T) {
	t.Parallel()
	a, log := newAPIServer(), &records{}
	a.Leave()
	logged(t, a, log, func(s *Source) {
		after(time.Minute)
		wantLink(t, s, log, "connection refused", "WARN")
		a.Change(func() { a.IsAway, a.Answers[podsPath] = false, http.StatusForbidden })
		after(time.Hour)
		wantLink(t, s, log, "the API server says 403", "WARN", "WARN")
	})
}

// TestOldAPIServer wants nothing to be lost where the API server only cannot begin
// a watch with what there is, and pods to be known all the same.
func TestOldAPIServer(t *testing.T) {
	t.Parallel()
	a, log := newAPIServer(), &records{}
	a.IsOld = true
	a.setPod(podOf("u1", "p"))
	logged(t, a, log, func(s *Source) {
		a.setPod(podOf("u2", "q"))
		after(time.Hour)
		if s.Pod("u1") == nil || s.Pod("u2") == nil {
			t.Errorf("pods %v and %v, want both", s.Pod("u1"), s.Pod("u2"))
		}
		wantLink(t, s, log, "")
	})
}

// TestEndsAtOnce ends a Source at moments at which the API server is away, which
// must not take any time.
func TestEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(a *apiServer){
		"refuses": (*apiServer).Leave,
		"silent":  func(a *apiServer) { a.Change(func() { a.IsSilent = true }) },
	} {
		for _, later := range []time.Duration{0, time.Second, 17 * time.Second, 95 * time.Second, 10 * time.Minute} {
			t.Run(name+" "+later.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					a := newAPIServer()
					leave(a)
					s := newSource(t, a)
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan error, 1)
					go func() { done <- s.Run(ctx) }()
					after(later)
					cancel()
					synctest.Wait() // time stands still
					select {
					case err := <-done:
						if !errors.Is(err, context.Canceled) {
							t.Errorf("run: %v, want %v", err, context.Canceled)
						}
					default:
						t.Error("it goes on")
					}
				})
			})
		}
	}
}

// logged runs a test with a Source that logs to records.
func logged(t *testing.T, a *apiServer, log *records, test func(s *Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(a.Config(), "n1", slog.New(log))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = s.Run(ctx) }()
		synctest.Wait()
		test(s)
		cancel()
	})
}

// wantLink wants the link to be lost for a reason, or not to be where that is
// empty, and records of some levels to have been logged.
func wantLink(t *testing.T, s *Source, log *records, why string, levels ...string) {
	t.Helper()
	if err := s.Err(); (err != nil) != (why != "") || err != nil && !strings.Contains(err.Error(), why) {
		t.Errorf("error %v, want %q", err, why)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if diff := cmp.Diff(levels, log.levels); diff != "" {
		t.Errorf("(-want +logged):\n%s%s", diff, strings.Join(log.lines, "\n"))
	}
}

// records keeps what is logged for everyday use.
type records struct {
	mu     sync.Mutex
	levels []string
	lines  []string
}

func (r *records) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (r *records) WithAttrs([]slog.Attr) slog.Handler               { return r }
func (r *records) WithGroup(string) slog.Handler                    { return r }

func (r *records) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := record.Message
	record.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	r.levels, r.lines = append(r.levels, record.Level.String()), append(r.lines, line)
	return nil
}
