package box

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReboot wants a machine that starts again to find its files, nothing that
// was in memory, and to be seen to have started again.
func TestReboot(t *testing.T) {
	spec := newSpec(t, "node1")
	first := startBox(t, spec)
	facts := "cat /etc/machine-id /proc/sys/kernel/random/boot_id"
	sh(t, first, "echo data > /var/lib/data; echo 1 > /run/volatile; ln -s /etc /var/lib/etc; mkdir /sys/fs/cgroup/pids/pod 2>/dev/null || mkdir /sys/fs/cgroup/pod")
	before := sh(t, first, facts)
	if _, err := Start(t.Context(), spec); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Fatalf("two machines in a directory: %v, want that it is locked", err)
	}
	sh(t, first, "true")
	if err := first.Halt(); err != nil {
		t.Fatal(err)
	}

	second := startBox(t, spec)
	if got := sh(t, second, "cat /var/lib/data; ls /run/volatile /sys/fs/cgroup/pod /sys/fs/cgroup/pids/pod 2>/dev/null || echo gone"); got != "data\ngone" {
		t.Errorf("after a reboot: %q", got)
	}
	after := sh(t, second, facts)
	if before[:32] != after[:32] || before[32:] == after[32:] {
		t.Errorf("machine-id and boot_id %q, then %q: want the same and another", before, after)
	}
	// The first one must not take anything from the second.
	if err := first.Halt(); err != nil {
		t.Error(err)
	}
	if err := first.Close(); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("closing the first: %v, want that the directory is locked", err)
	}
	sh(t, second, "cat /var/lib/data; cat /proc/self/cgroup | grep runtime")

	// A crash is a reboot as well.
	if err := unix.Kill(second.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-second.Done()
	third := startBox(t, spec)
	if got := sh(t, third, "cat /var/lib/data"); got != "data" {
		t.Errorf("after a crash: %q", got)
	}
	for range 2 {
		if err := third.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(second.Close(), first.Close()); err != nil {
		t.Errorf("closing what has been closed: %v", err)
	}
}

// TestFailedReboot wants the files to stay when a start over them fails.
func TestFailedReboot(t *testing.T) {
	spec := newSpec(t, "node1")
	first := startBox(t, spec)
	sh(t, first, "echo data > /var/lib/data")
	if err := first.Halt(); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t.Context(), spec, sabotage{Step: "write files", How: breakFail}); err == nil {
		t.Fatal("no error")
	}
	if got := sh(t, startBox(t, spec), "cat /var/lib/data"); got != "data" {
		t.Errorf("data %q", got)
	}
}
