package cnicall

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestListenReplacesDead takes a socket over whose agent was killed.
func TestListenReplacesDead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cni.sock")
	for _, left := range []string{path, path + beside} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	if err := os.WriteFile(path+lockSuffix, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

// TestListenOnce gives the socket to one of many, and to the next after it.
func TestListenOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cni.sock")
	for range 20 {
		var won atomic.Pointer[Listener]
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				l, err := Listen(path)
				if err == nil && !won.CompareAndSwap(nil, l) {
					t.Error("two have it")
				}
				if err != nil && !errors.Is(err, ErrInUse) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, err := net.Dial("unix", path); err != nil {
			t.Error(err)
		}
		if err := won.Load().Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestListenHandsOver lets agents come and go at once: at no time have two the lock.
func TestListenHandsOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cni.sock")
	var have atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for done := 0; done < 20; {
				l, err := Listen(path)
				if errors.Is(err, ErrInUse) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if have.Add(1) != 1 {
					t.Error("two have it")
				}
				have.Add(-1)
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				done++
			}
		})
	}
	all.Wait()
}

func TestListenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{file, "there is something else"},
		{filepath.Join(file, "cni.sock"), "make its directory"},
		{filepath.Join(dir, strings.Repeat("x", 108)), "want at most 103"},
	} {
		if _, err := Listen(c.path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestListenerCheck(t *testing.T) {
	t.Parallel()
	l, err := Listen(filepath.Join(t.TempDir(), "cni.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if err := os.Rename(l.path, l.path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), l.path) {
		t.Errorf("removed: got %v", err)
	}
	if err := os.WriteFile(l.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), "another in its place") {
		t.Errorf("replaced: got %v", err)
	}
}
