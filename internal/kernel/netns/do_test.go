package netns_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
)

func TestDo(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		ns := open(t, kerneltest.NewNetNS(t))
		home := current(t)
		boom := errors.New("boom")
		err := ns.Do(func() error {
			if got := current(t); got != ns.ID() {
				t.Errorf("inside: %v, want %v", got, ns.ID())
			}
			outside := make(chan netns.ID)
			go func() { outside <- current(t) }()
			if got := <-outside; got != home {
				t.Errorf("goroutine started inside: %v, want %v", got, home)
			}
			return boom
		})
		if !errors.Is(err, boom) {
			t.Errorf("error %v, want %v", err, boom)
		}
		allThreadsIn(t, home)
	})
}

func TestDoPanic(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		ns := open(t, kerneltest.NewNetNS(t))
		home := current(t)
		defer func() {
			err, ok := recover().(error)
			var pe *netns.PanicError
			if !ok || !errors.As(err, &pe) || !errors.Is(err, fs.ErrInvalid) {
				t.Fatalf("recovered %v, want a PanicError with %v", err, fs.ErrInvalid)
			}
			if !strings.Contains(err.Error(), "TestDoPanic") {
				t.Errorf("%v\ndoes not show where", err)
			}
			allThreadsIn(t, home)
		}()
		_ = ns.Do(func() error { panic(fs.ErrInvalid) })
		t.Error("Do returned")
	})
}

func TestDoGoexit(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		ns := open(t, kerneltest.NewNetNS(t))
		home := current(t)
		ended := make(chan bool)
		go func() {
			returned := false
			defer func() { ended <- !returned }()
			_ = ns.Do(func() error {
				runtime.Goexit()
				return nil
			})
			returned = true
		}()
		if !<-ended {
			t.Error("Do returned to a goroutine that should have ended")
		}
		allThreadsIn(t, home)
	})
}

// TestDoManyTimes has many goroutines go into several namespaces, and looks
// for threads that did not come back and for files that were left open.
func TestDoManyTimes(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		namespaces := make([]*netns.NS, 4)
		for i := range namespaces {
			namespaces[i] = open(t, kerneltest.NewNetNS(t))
		}
		home, files := current(t), openFiles(t)
		var wg sync.WaitGroup
		for i := range 64 {
			ns := namespaces[i%len(namespaces)]
			wg.Go(func() {
				for range 20 {
					err := ns.Do(func() error {
						if unix.Gettid() == os.Getpid() {
							t.Error("the main thread is in another namespace")
						}
						return expect(ns.ID())
					})
					if err != nil {
						t.Error(err)
					}
					if err := expect(home); err != nil {
						t.Errorf("after Do: %v", err)
					}
				}
			})
		}
		wg.Wait()
		allThreadsIn(t, home)
		if now := openFiles(t); !slices.Equal(now, files) {
			t.Errorf("open files %v, want those from before: %v", now, files)
		}
	})
}

// TestDoCannotLeave takes from the thread, while it is inside, the capability
// that it needs to go back.
func TestDoCannotLeave(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		ns := open(t, kerneltest.NewNetNS(t))
		home := current(t)
		boom := errors.New("boom")
		var thread int
		err := ns.Do(func() error {
			thread = unix.Gettid()
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var none [2]unix.CapUserData
			return errors.Join(boom, unix.Capset(&header, &none[0]))
		})
		if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, boom) {
			t.Fatalf("error %v, want %v and %v", err, boom, fs.ErrPermission)
		}
		for { // the thread ends soon after the goroutine
			_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			runtime.Gosched()
		}
		allThreadsIn(t, home)
	})
}

func TestDoClosed(t *testing.T) {
	t.Parallel()
	ns, err := netns.Current()
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Close(); err != nil {
		t.Fatal(err)
	}
	err = ns.Do(func() error {
		t.Error("fn ran")
		return nil
	})
	if !errors.Is(err, unix.EBADF) || !strings.Contains(err.Error(), ns.ID().String()) {
		t.Errorf("error %v, want EBADF and %v", err, ns.ID())
	}
}

func BenchmarkDo(b *testing.B) {
	ns, err := netns.Current()
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		err := ns.Do(func() error { return nil })
		if errors.Is(err, fs.ErrPermission) {
			b.Skip("entering a network namespace needs CAP_SYS_ADMIN; run the benchmark as root")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// current returns the namespace of the calling thread.
func current(t *testing.T) netns.ID {
	t.Helper()
	ns, err := netns.Current()
	if err != nil {
		t.Error(err)
		return netns.ID{}
	}
	defer func() { _ = ns.Close() }()
	return ns.ID()
}

// expect returns an error unless the calling thread is in a namespace.
func expect(id netns.ID) error {
	ns, err := netns.Current()
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	if ns.ID() != id {
		return fmt.Errorf("in %v, want %v", ns.ID(), id)
	}
	return nil
}

// allThreadsIn checks that every thread of the process is in a namespace.
func allThreadsIn(t *testing.T, want netns.ID) {
	t.Helper()
	paths, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		link, err := os.Readlink(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Error(err)
		} else if link != want.String() {
			t.Errorf("%s is %s, want %s", path, link, want)
		}
	}
}

// openFiles returns what the open files of the process are.
func openFiles(t *testing.T) []string {
	t.Helper()
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		// The directory itself is one of them, and closed by now.
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			files = append(files, e.Name()+" "+target)
		}
	}
	return files
}

// links returns the names of the links in the namespace of the calling thread.
func links(t *testing.T) []string {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Error(err)
	}
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return names
}

func itoa(fd uintptr) string { return strconv.FormatUint(uint64(fd), 10) }
