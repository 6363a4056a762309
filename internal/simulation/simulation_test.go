package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/golden"
	"railhead/internal/inventory"
)

// summary is what a snapshot has, a line each.
func summary(s *inventory.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kernel %s, %s, %d GPUs\n", s.System.Kernel, s.System.NetNSMode, len(s.GPUs))
	for _, p := range s.Problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		fmt.Fprintf(&b, "%s %s", d.ID, d.Kind)
		if d.Rail != nil {
			fmt.Fprintf(&b, " rail %d", *d.Rail)
		}
		if d.RDMA == nil {
			fmt.Fprintln(&b, " without RDMA")
			continue
		}
		p := d.RDMA.Ports[0]
		fmt.Fprintf(&b, " %s %s %s %v of %v Gb/s, %d lanes, %d GIDs", d.RDMA.Name, p.LinkLayer, p.State, p.Gigabits, p.MaxGigabits, p.Lanes, len(p.GIDs))
		if d.RDMA.NetNS != nil {
			fmt.Fprint(&b, ", elsewhere")
		}
		for _, n := range d.Netdevs {
			fmt.Fprintf(&b, ", %s mtu %d %v", n.Name, n.MTU, n.Addresses)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// TestInventory checks that a simulated node reads without problems, and as
// what the scenario says.
func TestInventory(t *testing.T) {
	t.Parallel()
	for _, file := range scenarioFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := beginFile(t, file)
			var b strings.Builder
			var last string
			for _, at := range []time.Duration{0, 62 * time.Second, 6 * time.Minute, 12 * time.Minute} {
				r.pass(at - r.now.Sub(r.epoch))
				s := r.snapshot()
				if len(s.Problems) > 0 {
					t.Errorf("at %v: problems %q", at, s.Problems)
				}
				fmt.Fprintf(&b, "at %v\n%s\n", at, newLines(last, summary(s)))
				last = summary(s)
			}
			golden.Equal(t, filepath.Join("testdata", name+".golden"), b.String())
		})
	}
}

// newLines returns the lines that another text has not.
func newLines(old, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(old, line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestSameMoment checks that a moment is the same whichever way it was reached.
func TestSameMoment(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"healthy", "sick-rail", "infiniband"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			file := "../../scenarios/" + file + ".yaml"
			steps, jump := beginFile(t, file), beginFile(t, file)
			for range 400 {
				steps.pass(3 * time.Second)
			}
			jump.pass(400 * 3 * time.Second)
			if diff := cmp.Diff(jump.files(), steps.files()); diff != "" {
				t.Errorf("files (-jump +steps):\n%s", diff)
			}
			for _, f := range steps.machine.functions() {
				if diff := cmp.Diff(jump.statistics(f.id), steps.statistics(f.id)); diff != "" {
					t.Errorf("%s (-jump +steps):\n%s", f.id, diff)
				}
				if diff := cmp.Diff(jump.driverStatistics(f.id), steps.driverStatistics(f.id)); diff != "" {
					t.Errorf("%s (-jump +steps):\n%s", f.id, diff)
				}
			}
		})
	}
}

// TestSeed checks that nodes with other seeds have other identities.
func TestSeed(t *testing.T) {
	t.Parallel()
	a := beginText(t, base)
	b := beginText(t, strings.Replace(base, "node: gpu-1", "node: gpu-2", 1))
	if x, y := a.function("mlx5_0").guid, b.function("mlx5_0").guid; x == y {
		t.Errorf("the first card of both nodes has GUID %x", x)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	s, err := parse([]byte(base))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(s, dir, time.Now); err == nil || !strings.Contains(err.Error(), `has "mine" in it, want an empty directory`) {
		t.Errorf("error %v, want one that names what is in the directory", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
		t.Error(err)
	}
}

// TestClose checks that nothing is left of a simulation.
func TestClose(t *testing.T) {
	s, err := Load("../../scenarios/storm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := memoryDir(t)
	sim, err := Start(s, dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	for range 2 {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left over: %v, %v", entries, err)
	}
	if after := openFiles(t); after >= before {
		t.Errorf("%d files are open, and %d were before the socket was closed", after, before)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if bytes.Contains(stacks, []byte("simulation.newKubelet")) {
		t.Errorf("goroutines are left:\n%s", stacks)
	}
	if err := sim.Advance(time.Now()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Advance after Close: %v, want os.ErrClosed", err)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
