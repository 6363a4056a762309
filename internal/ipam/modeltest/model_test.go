package modeltest

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// How many interleavings a run of the test goes through, by the seeds from 1 on.
// Every planted bug is found within them. The raced run has too few for all kinds
// of faults.
const (
	interleavings      = 100
	interleavingsRaced = 25
)

// TestModel lets random interleavings of agents and controllers go wrong in
// all ways of faultKinds. RAILHEAD_MODEL_SEED=seed[:steps] replays one with its
// trace, RAILHEAD_MODEL_TIME=1h goes on for that long, with other seeds each time.
func TestModel(t *testing.T) {
	if s := os.Getenv("RAILHEAD_MODEL_SEED"); s != "" {
		replay(t, s)
		return
	}
	todo := plan(t)
	begin := time.Now()
	done := todo.all(t)
	report := fmt.Sprintf("%d interleavings, %d steps and %d seconds without faults after them, in %s on %d cores\n%s",
		done.worlds, done.steps, done.ticks, time.Since(begin).Round(time.Second/10), runtime.GOMAXPROCS(0), done.text())
	t.Log(report)
	if testing.Verbose() {
		fmt.Print(report)
	}
	for _, kind := range faultKinds {
		if done.coverage[kind] == 0 && todo.n >= interleavings {
			t.Errorf("in %d interleavings there was never: %s", done.worlds, kind)
		}
	}
	for kind := range done.coverage {
		if !slices.Contains(faultKinds, kind) {
			t.Errorf("faultKinds lacks %q", kind)
		}
	}
}

// A workload is seeds to go through, by number or by time.
type workload struct {
	first uint64
	n     int
	until time.Time
}

func plan(t *testing.T) workload {
	t.Helper()
	todo := workload{first: 1, n: interleavings}
	switch s := os.Getenv("RAILHEAD_MODEL_TIME"); {
	case s != "":
		long, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("RAILHEAD_MODEL_TIME is %q, and should be a time such as 1h: %v", s, err)
		}
		todo.until = time.Now().Add(long)
		todo.first = uint64(time.Now().UnixNano())
	case raceEnabled:
		todo.n = interleavingsRaced
	}
	return todo
}

// A tally is what was gone through.
type tally struct {
	mu                   sync.Mutex
	worlds, steps, ticks int
	coverage             map[string]int
	failed               *world
}

// all runs the seeds, on all cores, until one fails. Each is a world by itself.
func (todo workload) all(t *testing.T) *tally {
	t.Helper()
	done := &tally{coverage: map[string]int{}}
	next := 0
	take := func() (uint64, bool) {
		done.mu.Lock()
		defer done.mu.Unlock()
		next++
		return todo.first + uint64(next-1), done.failed == nil && (next <= todo.n || time.Now().Before(todo.until))
	}
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed, more := take(); more; seed, more = take() {
				w := newWorld(seed, 0, planted{})
				_ = w.run() // add keeps it
				done.add(w)
			}
		})
	}
	wait.Wait()
	if done.failed != nil {
		t.Fatal(explain(done.failed))
	}
	return done
}

func (d *tally) add(w *world) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.worlds, d.steps, d.ticks = d.worlds+1, d.steps+w.steps, d.ticks+w.ticks
	for kind, n := range w.coverage {
		d.coverage[kind] += n
	}
	if w.failure != nil && d.failed == nil {
		d.failed = w
	}
}

func (d *tally) text() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(d.coverage)) {
		fmt.Fprintf(&b, "  %8d  %s\n", d.coverage[kind], kind)
	}
	return b.String()
}

// explain runs a failed seed again for its trace, with as few steps of chaos as
// it still fails with.
func explain(failed *world) string {
	w := again(failed.seed, failed.limit)
	for limit := 25; limit < failed.limit; limit += limit/4 + 1 {
		if s := again(failed.seed, limit); s.failure != nil && s.steps < w.steps {
			w = s
			break
		}
	}
	const shown = 60
	return fmt.Sprintf("seed %d failed after %d steps of chaos and %d seconds without:\n%v\n\n%s\n\n"+
		"Replay: RAILHEAD_MODEL_SEED=%d:%d go test -run TestModel ./internal/ipam/modeltest",
		w.seed, w.steps, w.ticks, w.failure, strings.Join(w.trace[max(0, len(w.trace)-shown):], "\n"), w.seed, w.limit)
}

func again(seed uint64, limit int) *world {
	w := newWorld(seed, limit, planted{})
	w.verbose = true
	_ = w.run() // the world keeps it
	return w
}

// replay prints all of one interleaving.
func replay(t *testing.T, s string) {
	t.Helper()
	number, steps, _ := strings.Cut(s, ":")
	seed, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		t.Fatalf("RAILHEAD_MODEL_SEED is %q, and should be seed or seed:steps: %v", s, err)
	}
	limit := 0
	if steps != "" {
		if limit, err = strconv.Atoi(steps); err != nil {
			t.Fatalf("RAILHEAD_MODEL_SEED is %q, and should be seed or seed:steps: %v", s, err)
		}
	}
	w := again(seed, limit)
	fmt.Println(strings.Join(w.trace, "\n"))
	if w.failure != nil {
		t.Fatal(w.failure)
	}
}
