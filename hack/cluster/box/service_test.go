package box

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// state waits until a service is in a state, and returns its status.
func state(t *testing.T, b *Box, name string, want State) Status {
	t.Helper()
	var status Status
	eventually(t, name+" is "+string(want), func() bool {
		var err error
		if status, err = b.service(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return status.State == want
	})
	return status
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestServiceReady wants StartService to return when the probe says so, at the
// third time here.
func TestServiceReady(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	err := b.StartService(t.Context(), Service{
		Name: "slow", Args: []string{"sh", "-c", "echo starting with $WORD; exec sleep 1000"},
		Env: []string{"WORD=it", "PROBES=/run/probes"}, Ready: []string{"sh", "-c", "echo >> $PROBES; test $(wc -l < $PROBES) -ge 3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := sh(t, b, "wc -l < /run/probes"); got != "3" {
		t.Errorf("%s probes, want 3", got)
	}
	if got := state(t, b, "slow", Running); got.PID == 0 || got.Since.IsZero() {
		t.Errorf("status %+v", got)
	}
	eventually(t, "it goes on", func() bool { return sh(t, b, "pgrep sleep || true") != "" })
	log, err := os.ReadFile(b.spec.log("slow"))
	if err != nil || string(log) != "starting with it\n" {
		t.Errorf("log %q (%v)", log, err)
	}
	if err := b.StartService(t.Context(), Service{Name: "slow", Args: []string{"sleep", "1"}}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one of the name: %v, want that it exists", err)
	}
}

// TestServiceFails wants errors that say what the log says.
func TestServiceFails(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	for _, test := range []struct {
		service Service
		want    []string
		is      error
	}{
		{
			Service{Name: "dies", Args: []string{"sh", "-c", "echo no flag --foo; exit 2"}, Ready: []string{"false"}},
			[]string{"start dies in machine", "ended before it was ready: exit status 2", "no flag --foo"},
			nil,
		},
		{Service{Name: "absent", Args: []string{"no-such-program"}}, []string{"no-such-program"}, fs.ErrNotExist},
		{Service{Name: "../evil", Args: []string{"true"}}, []string{"../evil"}, nil},
		{Service{Name: "probe", Args: []string{"sleep", "1000"}, Ready: []string{"no-such-probe"}}, []string{"no-such-probe"}, fs.ErrNotExist},
	} {
		err := b.StartService(t.Context(), test.service)
		if err == nil || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: error %v, want %v", test.service.Name, err, test.is)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q has no %q", test.service.Name, err, want)
			}
		}
	}
}

// TestServiceNotReady wants a caller who loses patience to hear what was last
// said, and the service to go on.
func TestServiceNotReady(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		failed <- b.StartService(ctx, Service{
			Name: "slow", Args: []string{"sh", "-c", "echo waiting; touch /run/began; exec sleep 1000"},
			Ready: []string{"sh", "-c", "touch /run/probed; exit 1"},
		})
	}()
	for _, file := range []string{"/run/began", "/run/probed"} {
		eventually(t, file+" is there", func() bool { return exists(b.Root() + file) })
	}
	cancel()
	err := <-failed
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not ready") || !strings.Contains(err.Error(), "waiting") {
		t.Errorf("error %v, want canceled, and what the log says", err)
	}
	if got := state(t, b, "slow", Running); got.PID == 0 {
		t.Errorf("status %+v", got)
	}
}

// TestServiceRestart wants a service that dies to come back, and one that is
// not to be restarted to stay dead.
func TestServiceRestart(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	start := func(name string, restart bool, script string) {
		t.Helper()
		if err := b.StartService(t.Context(), Service{Name: name, Args: []string{"sh", "-c", script}, Restart: restart}); err != nil {
			t.Fatal(err)
		}
	}
	start("always", true, "exec sleep 1000")
	start("once", false, "exec sleep 1000")
	first := state(t, b, "always", Running)
	for _, name := range []string{"always", "once"} {
		if err := b.Kill(name); err != nil {
			t.Error(err)
		}
	}
	if got := state(t, b, "once", Ended); got.Exit != "signal: killed" || got.PID != 0 {
		t.Errorf("once: %+v", got)
	}
	eventually(t, "always runs again", func() bool {
		got, err := b.service(t.Context(), "always")
		return err == nil && got.State == Running && got.PID != first.PID && got.Restarts == 1 && got.Exit == "signal: killed"
	})
	for _, err := range []error{b.Kill("once"), b.Pause("once"), b.Resume("once")} {
		if !errors.Is(err, unix.ESRCH) {
			t.Errorf("order to a service that has ended: %v", err)
		}
	}
	if err := b.Kill("unknown"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "always") {
		t.Errorf("unknown service: %v, want those that there are", err)
	}

	// One that fails again and again waits ever longer, and stops at once.
	start("loop", true, "exit 3")
	eventually(t, "loop was tried three times", func() bool {
		got, err := b.service(t.Context(), "loop")
		return err == nil && got.Restarts >= 3 && got.State == Waiting && got.Exit == "exit status 3"
	})
	if err := b.Stop("loop"); err != nil {
		t.Error(err)
	}
	state(t, b, "loop", Stopped)
	start("loop", false, "exec sleep 1000") // the name is free again
}

// TestServiceStop wants the whole way: asked, then killed; stopped and started.
func TestServiceStop(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	polite := Service{
		Name: "polite", Args: []string{"sh", "-c", "trap 'echo bye; rm /run/up; exit 0' TERM; echo hello; touch /run/up; while :; do sleep 0.05; done"},
		Ready: []string{"test", "-e", "/run/up"}, Restart: true,
	}
	if err := b.StartService(t.Context(), polite); err != nil {
		t.Fatal(err)
	}
	if err := b.Pause("polite"); err != nil {
		t.Fatal(err)
	}
	if got := state(t, b, "polite", Paused); !strings.HasPrefix(sh(t, b, "ps -o stat= -p "+itoa(got.PID)), "T") {
		t.Errorf("paused: %+v does not stand still", got)
	}
	if err := b.Resume("polite"); err != nil {
		t.Fatal(err)
	}
	state(t, b, "polite", Running)
	if err := b.Restart(t.Context(), "polite"); err != nil {
		t.Fatal(err)
	}
	// A paused one hears that it is to stop.
	if err := errors.Join(b.Pause("polite"), b.Stop("polite")); err != nil {
		t.Fatal(err)
	}
	if got := state(t, b, "polite", Stopped); got.Exit != "exit status 0" {
		t.Errorf("stopped: %+v", got)
	}
	if err := b.Stop("polite"); err != nil {
		t.Errorf("stop again: %v", err)
	}
	log, err := os.ReadFile(b.spec.log("polite"))
	if err != nil || string(log) != "hello\nbye\nhello\nbye\n" {
		t.Errorf("log %q (%v)", log, err)
	}
	if err := b.Restart(t.Context(), "polite"); err != nil {
		t.Errorf("restart of a stopped one: %v", err)
	}
	state(t, b, "polite", Running)
	if err := b.Restart(t.Context(), "unknown"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unknown service: %v", err)
	}
}
