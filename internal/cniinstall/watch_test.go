package cniinstall

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// running is an installer that runs, and what it reports.
type running struct {
	*node

	reports chan State
	errs    chan error
}

func run(t *testing.T, n *node) *running {
	t.Helper()
	n.now = time.Now
	n.settle, n.pause, n.quiet, n.grace = time.Millisecond, 20*time.Millisecond, time.Minute, 20*time.Millisecond
	r := &running{n, make(chan State), make(chan error, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx, func(s State, err error) {
			if err != nil {
				r.errs <- err
			}
			select {
			case r.reports <- s:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// until waits for a report.
func (r *running) until(what string, is func(State) bool) {
	r.t.Helper()
	for {
		select {
		case s := <-r.reports:
			if is(s) {
				return
			}
		case <-time.After(time.Minute):
			r.t.Fatalf("no report: %s", what)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	r := run(t, newNode(t, nil))
	r.until("waiting", func(s State) bool { return s.Phase == Waiting && len(s.Changed) == 8 })

	r.put(map[string]string{"10-a.conflist": calico})
	r.until("the network came", func(s State) bool { return s.Phase == Installed && s.Cluster.Name == "k8s-pod-network" && r.hasOurs() })

	r.put(map[string]string{"10-a.conflist": flannel})
	r.until("the network changed", func(s State) bool { return s.Cluster.Name == "cbr0" && slices.Contains(s.Changed, r.file()) })

	for _, path := range []string{r.program(), filepath.Join(r.config.BinDir, "rdma"), r.file()} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		r.until(path+" was deleted", func(s State) bool { return slices.Contains(s.Changed, path) && r.disk.exists(path) })
	}
	if err := os.WriteFile(r.file(), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.until("ours was changed", func(s State) bool { return slices.Contains(s.Changed, r.file()) })

	r.put(map[string]string{"10-a.conflist": ""})
	r.until("the network went", func(s State) bool { return s.Phase == Waiting && !r.hasOurs() })
}

// TestRunFights tells when others undo again and again what it does.
func TestRunFights(t *testing.T) {
	t.Parallel()
	r := run(t, newNode(t, map[string]string{"10-a.conflist": calico}))
	r.until("a fight", func(s State) bool {
		_ = os.Remove(r.file())
		return slices.ContainsFunc(s.Problems, func(p string) bool { return strings.Contains(p, "again and again") })
	})
}

// TestRunGoesOn after an error, and when its directory is made anew.
func TestRunGoesOn(t *testing.T) {
	t.Parallel()
	n := newNode(t, map[string]string{"10-a.conflist": calico})
	if err := os.Rename(n.config.BinDir, n.config.BinDir+".away"); err != nil {
		t.Fatal(err)
	}
	r := run(t, n)
	r.until("no directory", func(s State) bool { return s.Phase == Waiting })
	if err := <-r.errs; !strings.Contains(err.Error(), n.config.BinDir) {
		t.Errorf("got %v", err)
	}
	if err := os.Rename(n.config.BinDir+".away", n.config.BinDir); err != nil {
		t.Fatal(err)
	}
	r.until("the directory is there", func(s State) bool { return s.Phase == Installed })
}

func TestPause(t *testing.T) {
	t.Parallel()
	r := rounds{installer: New(Config{})}
	var got []time.Duration
	for range 12 {
		got = append(got, r.pause())
		r.mended = append(r.mended, time.Time{})
	}
	if got[0] != 200*time.Millisecond || got[2] != 400*time.Millisecond || got[11] != 30*time.Second || !slices.IsSorted(got) {
		t.Errorf("got %v", got)
	}
}
