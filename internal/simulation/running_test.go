package simulation

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"railhead/internal/inventory"
	"railhead/internal/kernel/rdmanl"
)

// running is a simulation with a clock that a test turns.
type running struct {
	*Simulation

	tb  testing.TB
	mu  sync.Mutex
	now time.Time
}

// memoryDir is a temporary directory in memory where there is one.
func memoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "railhead-") //nolint:usetesting // tb.TempDir is on disk
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			tb.Errorf("after Close: %v", err)
		}
	})
	return dir
}

func begin(tb testing.TB, s *Scenario) *running {
	tb.Helper()
	r := &running{tb: tb, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	sim, err := Start(s, memoryDir(tb), r.clock)
	if err != nil {
		tb.Fatal(err)
	}
	r.Simulation = sim
	tb.Cleanup(func() {
		if err := sim.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

func beginFile(tb testing.TB, file string) *running {
	tb.Helper()
	s, err := Load(file)
	if err != nil {
		tb.Fatal(err)
	}
	return begin(tb, s)
}

func beginText(tb testing.TB, text string) *running {
	tb.Helper()
	s, err := parse([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return begin(tb, s)
}

func (r *running) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// pass lets time pass.
func (r *running) pass(d time.Duration) {
	r.tb.Helper()
	r.mu.Lock()
	r.now = r.now.Add(d)
	now := r.now
	r.mu.Unlock()
	if err := r.Advance(now); err != nil {
		r.tb.Fatal(err)
	}
}

func (r *running) snapshot() *inventory.Snapshot {
	r.tb.Helper()
	reader, err := inventory.NewReader(r.Node())
	if err != nil {
		r.tb.Fatal(err)
	}
	defer reader.Close()
	return inventory.Join(reader.Read(nil, inventory.Changes{All: true}), inventory.Options{})
}

// function finds a function by what the scenario calls it.
func (r *running) function(id string) *function {
	r.tb.Helper()
	all := r.machine.functions()
	i := slices.IndexFunc(all, func(f *function) bool { return f.id == id })
	if i < 0 {
		r.tb.Fatalf("no function %s", id)
	}
	return all[i]
}

// statistics reads the RDMA counters of a function as an exporter does.
func (r *running) statistics(id string) map[string]uint64 {
	r.tb.Helper()
	f := r.function(id)
	client := f.place.kernel.RDMA()
	defer client.Close()
	return counted(r.tb, client, f.index)
}

func counted(tb testing.TB, client *rdmanl.Client, device uint32) map[string]uint64 {
	tb.Helper()
	counters, err := client.Statistics(device, 1)
	if err != nil {
		tb.Fatal(err)
	}
	values := map[string]uint64{}
	for _, c := range counters {
		values[c.Name] = c.Value
	}
	return values
}

// driverStatistics reads those of its netdev.
func (r *running) driverStatistics(id string) map[string]uint64 {
	r.tb.Helper()
	f := r.function(id)
	client, err := f.netPlace.kernel.Ethtool()
	if err != nil {
		r.tb.Fatal(err)
	}
	defer client.Close()
	names, err := client.StatNames(f.name)
	if err != nil {
		r.tb.Fatal(err)
	}
	read := make([]uint64, len(names))
	if err := client.Stats(f.name, read); err != nil {
		r.tb.Fatal(err)
	}
	values := map[string]uint64{}
	for i, name := range names {
		values[name] = read[i]
	}
	return values
}

// files returns all files below the node's directory, links by where they lead.
func (r *running) files() map[string]string {
	r.tb.Helper()
	found := map[string]string{}
	root := filepath.Join(r.dir, "root")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if e.Type() == fs.ModeSymlink {
			found[name], err = os.Readlink(path)
			return err
		}
		text, err := os.ReadFile(path)
		found[name] = string(text)
		return err
	})
	if err != nil {
		r.tb.Fatal(err)
	}
	return found
}
