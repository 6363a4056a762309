package api

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
)

// How many pods come and go in TestAttachKilled, and how often the agent is killed
// meanwhile; fewer with -short. A seed of another run makes seats choose as they
// did, and kills come after the same times. The test in its namespaces is told by
// the environment, which is all that it inherits.
const (
	attachSeedEnv                 = "RAILHEAD_ATTACH_SEED"
	attachCyclesEnv               = "RAILHEAD_ATTACH_PODS"
	attachKillsEnv                = "RAILHEAD_ATTACH_KILLS"
	attachCycles, attachKills     = 500, 200
	shortAttachCycles, shortKills = 50, 20
	attachSeats                   = 6
)

// TestAttachKilled has 500 pods with eight rails come and go while the agent of
// their node is killed 200 times. No address is given out twice, every pod gets its
// rails or an error that says what to do, and when it is over kernel, records,
// ledger and API server agree. When all pods are gone, so is all that they had.
func TestAttachKilled(t *testing.T) {
	shortStorm(t)
	inAttachNode(t, 4*attachSeats, func(n *attachNode) {
		seed := attachSeed(t)
		cycles, kills := number(t, attachCyclesEnv, attachCycles), number(t, attachKillsEnv, attachKills)
		n.start(t)
		r := n.runtime(t, n.awaitNetwork(t, "1.1.0"))
		n.warm(t)
		before := n.state(t)
		st := newAttachStorm(n, r, attachSeats, seed)
		st.run(t, kills, cycles, rand.New(rand.NewPCG(seed, 1<<32)))
		st.report(t)
		if t.Failed() {
			return
		}
		n.awaitServed(t)
		st.agree(t, before)
		for _, s := range st.seats {
			if !s.end(t) {
				return
			}
		}
		n.same(t, before)
		st.agreeCluster(t)
	})
}

// shortStorm has the environment ask for a smaller storm with -short, if it does not ask for one already.
func shortStorm(t *testing.T) {
	t.Helper()
	for name, n := range map[string]int{attachCyclesEnv: shortAttachCycles, attachKillsEnv: shortKills} {
		if testing.Short() && os.Getenv(name) == "" {
			if err := os.Setenv(name, strconv.Itoa(n)); err != nil { //nolint:usetesting // t.Setenv is not for tests in parallel
				t.Fatal(err)
			}
		}
	}
}

func attachSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64N(1 << 32)
	if text := os.Getenv(attachSeedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 32); err != nil {
			t.Fatalf("%s=%q: want a number", attachSeedEnv, text)
		}
	}
	t.Logf("%s=%d", attachSeedEnv, seed)
	return seed
}

// run is the storm.
func (st *attachStorm) run(t *testing.T, kills, cycles int, random *rand.Rand) {
	t.Helper()
	var all sync.WaitGroup
	for _, s := range st.seats {
		all.Go(func() { s.occupy(t) })
	}
	defer all.Wait()
	defer close(st.over)
	st.endLives(t, kills, cycles, random)
}

// endLives kills the agent as often as asked, at times that have nothing to do with
// what it does, evenly over the cycles of the storm, and starts it again.
func (st *attachStorm) endLives(t *testing.T, kills, cycles int, random *rand.Rand) {
	t.Helper()
	began := time.Now()
	for i := range kills {
		if random.IntN(4) == 0 { // while it starts
			sleep(t.Context(), time.Duration(random.IntN(1500))*time.Millisecond)
		} else {
			st.await(t, i*cycles/kills)
			sleep(t.Context(), time.Duration(random.IntN(300))*time.Millisecond)
		}
		if t.Failed() {
			return
		}
		life, _ := st.current()
		life.kill(t)
		st.begin(t)
	}
	st.await(t, cycles)
	t.Logf("%d kills and %d pods took %.0f s; at most %d addresses of rails at once", kills, st.cycles.Load(), time.Since(began).Seconds(), st.rails.most)
}

// await waits until that many pods have come and gone.
func (st *attachStorm) await(t *testing.T, cycles int) {
	t.Helper()
	Eventually(t, func() string {
		if done := int(st.cycles.Load()); done < cycles && !t.Failed() {
			return fmt.Sprintf("%d pods that came and went, of %d", cycles-done, cycles)
		}
		return ""
	})
}

// Names of pods and sandboxes, numbers, and paths differ in errors that say the same.
var particular = regexp.MustCompile(`seat[0-9-]+|/tmp/[^ :"]+|[0-9]+(\.[0-9]+)*`)

// note counts why a call failed.
func (st *attachStorm) note(verb string, err error) {
	text := err.Error()
	if e := (&types.Error{}); errors.As(err, &e) {
		text = fmt.Sprintf("code %d: %s; %s", e.Code, e.Msg, e.Details)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.said[verb+" "+particular.ReplaceAllString(text, "…")]++
}

// report tells why calls failed.
func (st *attachStorm) report(t *testing.T) {
	t.Helper()
	for text, times := range st.said {
		t.Logf("%d times: %s", times, text)
	}
}
