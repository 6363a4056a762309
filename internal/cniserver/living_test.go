package cniserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
)

// sight is whether network namespaces can be looked at.
type sight struct {
	mu    sync.Mutex
	blind map[string]func() (string, error) // by path: what is found there instead
}

// watched has a world's server see namespaces as told.
func (w *world) watched() *sight {
	w.t.Helper()
	w.stop()
	seen := &sight{blind: map[string]func() (string, error){}}
	w.extend = func(c *Config) { c.NetNS = seen.path }
	w.start()
	return seen
}

func (s *sight) path(path string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if instead := s.blind[path]; instead != nil {
		return instead()
	}
	return path, nil
}

// lose has a namespace be one that cannot be looked at, and find ends that.
func (s *sight) lose(path string, instead func() (string, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blind[path] = instead
}

func (s *sight) find(path string) { s.lose(path, nil) }

// noFile is a process without a free file descriptor.
func noFile() (string, error) { return "", syscall.EMFILE }

// loops is a path of which the kernel does not say where it leads.
func loops(t *testing.T) func() (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(path, path); err != nil {
		t.Fatal(err)
	}
	return func() (string, error) { return path, nil }
}

// TestUnseenAtRestart starts an agent that cannot look at a pod's namespace: the pod
// keeps all, people are told, and once it can be looked at what was half done is
// taken away.
func TestUnseenAtRestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state   record.State
		instead func(*testing.T) func() (string, error)
		then    string // what is found once it can be looked at
	}{
		{record.Attached, loops, ""},
		{record.Attached, func(*testing.T) func() (string, error) { return noFile }, ""},
		{record.Attaching, loops, "ai/train box1: it was half attached when the agent ended"},
		{record.Detaching, loops, "ai/train box1: it was half taken away when the agent ended"},
	} {
		t.Run(string(tt.state), func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				seen := w.watched()
				s := w.sandbox("box1", "train")
				w.ok(s, cnicall.Add)
				w.rest()
				before := w.attachedNow(s)
				seen.lose(s.path, tt.instead(t))
				w.again(func(a record.Attachment) record.Attachment { a.State = tt.state; return a })
				repairs := w.repairs()
				if len(repairs) != 1 || !strings.Contains(repairs[0], "nothing was changed, and it is tried again: ") {
					t.Errorf("found %+v, want that box1 cannot be looked at", repairs)
				}
				w.refused(s, cnicall.Del, cnicall.CodeTryAgain, "cannot be told") // who waits for the lock has seen the first look end
				if diff := cmp.Diff(before, w.attachedNow(s), comparable()...); diff != "" {
					t.Errorf("a pod that nobody can look at (-before +after):\n%s", diff)
				}
				if att, is := w.server.config.Records.Get("box1"); !is || att.State != tt.state || w.addresses.held() != 1 {
					t.Errorf("record %+v and %d sandboxes with addresses, want box1 %s with its own", att, w.addresses.held(), tt.state)
				}
				seen.find(s.path)
				if found := w.found()[1:]; strings.Join(found, "\n") != tt.then {
					t.Errorf("found %q, want %q", found, tt.then)
				}
				if tt.then == "" {
					w.ok(s, cnicall.Check)
					w.ok(s, cnicall.Del)
				}
				w.checkNothingLeft()
			})
		})
	}
}

// TestUnseen has no verb touch a pod whose namespace cannot be looked at, and all do
// their work once it can.
func TestUnseen(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		seen := w.watched()
		s, next := w.sandbox("box1", "train"), w.sandbox("box2", "train")
		w.ok(s, cnicall.Add)
		w.rest()
		before := w.attachedNow(s)
		unchanged := func(after string) {
			t.Helper()
			if diff := cmp.Diff(before, w.attachedNow(s), comparable()...); diff != "" {
				t.Errorf("%s (-before +after):\n%s", after, diff)
			}
			if w.addresses.held() != 1 {
				t.Errorf("%s: %d sandboxes with addresses, want box1", after, w.addresses.held())
			}
		}
		for _, instead := range []func() (string, error){loops(t), noFile} {
			seen.lose(s.path, instead)
			for _, verb := range []string{cnicall.Check, cnicall.Add, cnicall.Del} {
				w.refused(s, verb, cnicall.CodeTryAgain, s.path, "cannot be told")
				unchanged(verb)
			}
			w.fails(s.gc(hasNothing), cnicall.CodeTryAgain)
			unchanged(cnicall.GC)
			w.ok(next, cnicall.Add) // which would take the place of a sandbox that is gone
			w.ok(next, cnicall.Del)
			unchanged("another sandbox")
			seen.find(s.path)
			w.ok(s, cnicall.Check)
		}
		seen.lose(s.path, func() (string, error) { // once
			delete(seen.blind, s.path)
			return noFile()
		})
		w.refused(s, cnicall.Add, cnicall.CodeTryAgain, s.path, "cannot be told")
		unchanged(cnicall.Add)
		w.ok(s, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestUnseenUnknown is DEL of a sandbox without a record whose namespace cannot be
// looked at.
func TestUnseenUnknown(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		seen := w.watched()
		s := w.sandbox("box1", "train")
		w.ok(s, cnicall.Add)
		w.loseRecords()
		w.delegate.asked()
		seen.lose(s.path, noFile)
		w.refused(s, cnicall.Del, cnicall.CodeTryAgain, "box1", "cannot be told")
		if calls := w.delegate.asked(); len(calls) > 0 || w.addresses.held() != 1 {
			t.Errorf("plugins of others: %q, %d sandboxes with addresses", calls, w.addresses.held())
		}
		seen.find(s.path)
		w.ok(s, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestUnseenAdd has an ADD fail that nothing was recorded of, and whose namespace
// cannot be looked at any more: DEL finds its addresses.
func TestUnseenAdd(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		seen := w.watched()
		w.cluster.pod("rail", map[string]string{cniv1.AnnotationDefaultNetwork: "ai/gpu1"})
		s := w.sandbox("box1", "rail")
		before := w.snapshot(s)
		w.addresses.after = func(context.Context) error {
			seen.lose(s.path, noFile)
			return errors.New("no more")
		}
		w.refused(s, cnicall.Add, cnicall.CodeInternal, "no more", "cannot be told")
		if w.addresses.held() != 1 {
			t.Errorf("%d sandboxes with addresses, want box1", w.addresses.held())
		}
		seen.find(s.path)
		w.ok(s, cnicall.Del)
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
	})
}
