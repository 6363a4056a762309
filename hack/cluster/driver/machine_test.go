package driver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/plan"
)

// real gives machines of a test's cluster what they need to be started for
// real, and nothing to run.
func real(t *testing.T, c *Cluster) {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("machines of namespaces need root, in CI")
		}
		t.Skip("machines of namespaces need root: run the test as root")
	}
	for name, m := range c.machines {
		m.spec.Cgroup = filepath.Join(c.dir.Cgroup(), name)
		m.services = nil
		m.boot = func(context.Context, *machine, *box.Box) error { return nil }
	}
}

// held boots a node, which waits until that is aborted, and returns how it
// ends.
func held(t *testing.T, m *machine, boot func() error) <-chan error {
	t.Helper()
	waits, booted := make(chan struct{}), make(chan error, 1)
	m.boot = func(ctx context.Context, _ *machine, _ *box.Box) error {
		close(waits)
		<-ctx.Done()
		return ctx.Err()
	}
	go func() { booted <- boot() }()
	select {
	case <-waits:
	case err := <-booted:
		t.Fatalf("boot: %v", err)
	}
	return booted
}

func TestMachineOnAndOff(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	real(t, c)
	m := c.machines["node1"]
	if err := c.Boot(t.Context(), "node1"); err != nil {
		t.Fatal(err)
	}
	if err := c.Boot(t.Context(), "node1"); err == nil || !strings.Contains(err.Error(), "node1 is on") {
		t.Errorf("boot of what is on: %v", err)
	}
	first, err := m.running()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reboot(t.Context(), "node1"); err != nil {
		t.Fatal(err)
	}
	if second, err := m.running(); err != nil || second.PID() == first.PID() {
		t.Errorf("after a reboot the first process is %d as before, or %v", first.PID(), err)
	}
	if err := c.Crash("node1"); err != nil {
		t.Fatal(err)
	}
	if err := c.Crash("node1"); !errors.Is(err, errOff) {
		t.Errorf("crash of what is off: %v, want %v", err, errOff)
	}
}

// TestBootFails wants a machine that could not be booted to be off.
func TestBootFails(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	real(t, c)
	why := errors.New("no cable")
	c.machines["node1"].boot = func(context.Context, *machine, *box.Box) error { return why }
	if err := c.Boot(t.Context(), "node1"); !errors.Is(err, why) || !strings.Contains(err.Error(), "boot node1") {
		t.Errorf("error %v, want %v, with the node", err, why)
	}
	if _, err := c.on("node1"); !errors.Is(err, errOff) {
		t.Errorf("after that: %v, want %v", err, errOff)
	}
}

// TestCrashWhileBooting wants power to be gone at once, not when the boot is
// over.
func TestCrashWhileBooting(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	real(t, c)
	booted := held(t, c.machines["node1"], func() error { return c.Boot(t.Context(), "node1") })
	if err := returns(t, "crash", func() error { return c.Crash("node1") }); err != nil {
		t.Errorf("crash: %v", err)
	}
	if err := returns(t, "boot", func() error { return <-booted }); !errors.Is(err, errCrashed) {
		t.Errorf("boot: %v, want %v", err, errCrashed)
	}
	if _, err := c.on("node1"); !errors.Is(err, errOff) {
		t.Errorf("after that: %v, want %v", err, errOff)
	}
}

// TestEndsByItself kills the first process of a node, and wants the node to be
// off, all others to be told of as before, and a boot to work.
func TestEndsByItself(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	real(t, c)
	for _, name := range []string{plan.Fabric, "node1", "node2"} {
		if err := c.machines[name].start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b, err := c.on("node1")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(b.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.Done()
	s, err := c.Status()
	if err != nil {
		t.Fatalf("status: %v, want that of the others too", err)
	}
	for _, m := range s.Machines {
		if off := m.PID == 0; off != (m.Name == "node1") {
			t.Errorf("%s has the first process %d", m.Name, m.PID)
		}
	}
	if err := c.Boot(t.Context(), "node1"); err != nil {
		t.Errorf("boot: %v", err)
	}
}

// TestFabricEnds wants the cluster to end by itself when the fabric does.
func TestFabricEnds(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	real(t, c)
	if err := c.machines[plan.Fabric].start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := c.on(plan.Fabric)
	if err != nil {
		t.Fatal(err)
	}
	err = returns(t, "Serve", func() error {
		return c.Serve(t.Context(), func() error { return unix.Kill(b.PID(), unix.SIGKILL) })
	})
	if !errors.Is(err, ErrFabricEnded) {
		t.Errorf("error %v, want %v", err, ErrFabricEnded)
	}
}

// TestServeEnds wants orders that are being carried out to end with the
// cluster, and those who gave them to be told.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	real(t, c)
	end := serving(t, c)
	given := held(t, c.machines["node1"], func() error {
		_, err := c.Dir().Give(t.Context(), Order{Verb: "boot", Machine: "node1"})
		return err
	})
	if err := end(); err != nil {
		t.Errorf("serve: %v", err)
	}
	if err := returns(t, "the order", func() error { return <-given }); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("the order ended with %v, want that it was canceled", err)
	}
}

// TestCloseDuringOrders closes a cluster while nodes are booted and crash, and
// wants it to end, all of it, and to stay so.
func TestCloseDuringOrders(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	real(t, c)
	booted := held(t, c.machines["node1"], func() error { return c.Boot(t.Context(), "node1") })
	stop, busily := make(chan struct{}), make(chan struct{})
	var first sync.Once
	c.machines["node2"].boot = func(context.Context, *machine, *box.Box) error {
		first.Do(func() { close(busily) })
		return nil
	}
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = c.Boot(t.Context(), "node2") // how far it comes is a matter of time
				_ = c.Crash("node2")
			}
		}
	})
	<-busily
	if err := returns(t, "Close", c.Close); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := returns(t, "boot", func() error { return <-booted }); !errors.Is(err, errClosed) {
		t.Errorf("boot: %v, want %v", err, errClosed)
	}
	close(stop)
	busy.Wait()
	if err := c.Boot(t.Context(), "node2"); !errors.Is(err, errClosed) {
		t.Errorf("boot after the end: %v, want %v", err, errClosed)
	}
	if err := c.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	gone(t, c.Dir())
}
