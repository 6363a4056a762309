package box

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// allSteps are the names of all that the first process does before it takes
// orders.
func allSteps() []string {
	var names []string
	for _, s := range append((&blueprint{}).steps(), (&machine{}).steps()...) {
		names = append(names, s.name)
	}
	return names
}

// TestStartFails lets each step fail, and wants an error that names it and
// nothing to be left; each test's cleanup looks for that.
func TestStartFails(t *testing.T) {
	for _, name := range allSteps() {
		t.Run(name, func(t *testing.T) {
			_, err := start(t.Context(), newSpec(t, "node1"), sabotage{Step: name, How: breakFail})
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v, want one that names the step", err)
			}
		})
	}
}

// someSteps are one of each stage, and the last.
func someSteps() []string { return []string{"unshare cgroups", "mount binds", "make nursery"} }

// TestStartCrashes lets the first process die without a word.
func TestStartCrashes(t *testing.T) {
	for _, name := range someSteps() {
		t.Run(name, func(t *testing.T) {
			_, err := start(t.Context(), newSpec(t, "node1"), sabotage{Step: name, How: breakCrash})
			if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "exit status 3") {
				t.Errorf("error %v, want how the process ended", err)
			}
		})
	}
}

// TestStartHangs lets a step take for ever, and the caller lose patience.
func TestStartHangs(t *testing.T) {
	for _, name := range someSteps() {
		t.Run(name, func(t *testing.T) {
			spec := newSpec(t, "node1")
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				awaitHang(t, spec)
			}()
			if _, err := start(ctx, spec, sabotage{Step: name, How: breakHang}); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want canceled", err)
			}
		})
	}
}

// awaitHang waits until the first process has come to the step that hangs.
func awaitHang(t *testing.T, spec Spec) {
	t.Helper()
	for limit := time.Now().Add(testLimit); ; <-time.After(2 * time.Millisecond) {
		log, _ := os.ReadFile(spec.log("init"))
		if strings.Contains(string(log), "hanging") {
			return
		}
		if time.Now().After(limit) {
			t.Errorf("no step hangs after %v", testLimit)
			return
		}
	}
}

// TestStartImpossible wants specifications that cannot be to leave nothing.
func TestStartImpossible(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*Spec)
		is    error
		want  string
	}{
		{"no such bind", func(s *Spec) { s.Binds = []Bind{{Source: "/no/such", Target: "/opt/x"}} }, fs.ErrNotExist, "/no/such"},
		{"file for a directory", func(s *Spec) { s.Files = []File{{Path: "/proc/self/x"}} }, nil, "/proc/self/x"},
		{"no such sysctl", func(s *Spec) { s.Sysctls = map[string]string{"net/no/such": "1"} }, nil, "net/no/such"},
		{"foreign cgroup", func(s *Spec) { s.Cgroup = "system.slice" }, nil, "system.slice"},
		{"relative path", func(s *Spec) { s.Tmpfs = []string{"var"} }, nil, "var"},
		{"nowhere", func(s *Spec) { s.Dir = "/proc/1/no" }, nil, "/proc/1/no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := newSpec(t, "node1")
			test.spoil(&spec)
			_, err := Start(t.Context(), spec)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
