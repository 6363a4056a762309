package api

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
)

// attachSlots is how many pods there are at once.
const attachSlots = 6

// TestAttachKilled has 50 pods with eight rails come and go while the agent of
// their node is killed 20 times, by night 500 and 200 times. No address is given out twice, every pod gets its
// rails or an error that says what to do, and when it is over kernel, records,
// ledger and API server agree. When all pods are gone, so is all that they had.
func TestAttachKilled(t *testing.T) {
	inAttachNode(t, "storm", 213, 4*attachSlots, func(n *attachNode) {
		seed, cycles, kills := seed(t), times(50, 500), times(20, 200)
		n.start(t)
		r := n.runtime(t, n.awaitNetwork(t, "1.1.0"))
		n.warm(t)
		before := n.state(t)
		st := newAttachStorm(n, r, attachSlots, seed)
		st.run(t, kills, cycles, rand.New(rand.NewPCG(seed, 1<<32)))
		st.report(t)
		if t.Failed() {
			return
		}
		n.awaitServed(t)
		st.agree(t, before)
		for _, s := range st.slots {
			if !s.end(t) {
				return
			}
		}
		n.same(t, before)
		st.agreeCluster(t, st.rails)
	})
}

// run is the storm.
func (st *attachStorm) run(t *testing.T, kills, cycles int, random *rand.Rand) {
	t.Helper()
	var all sync.WaitGroup
	for _, s := range st.slots {
		all.Go(func() { s.runPods(t) })
	}
	defer all.Wait()
	defer close(st.over)
	st.endLives(t, kills, cycles, random)
}

// endLives kills the agent as often as asked, at times that have nothing to do with
// what it does, evenly over the cycles of the storm, and starts it again.
func (st *attachStorm) endLives(t *testing.T, kills, cycles int, random *rand.Rand) {
	t.Helper()
	endWait := sync.OnceFunc(func() { close(st.killed) })
	defer endWait()
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
	endWait()
	st.await(t, cycles)
	t.Logf("%d kills and %d pods took %.0f s; at most %d addresses of rails at once", kills, st.cycles.Load(), time.Since(began).Seconds(), st.rails.most)
}

// await waits until that many pods have come and gone, or all that there are live
// until the agent was killed.
func (st *attachStorm) await(t *testing.T, cycles int) {
	t.Helper()
	Eventually(t, func() string {
		done, waiting := int(st.cycles.Load()), int(st.waiting.Load())
		if done < cycles && waiting < len(st.slots) && !t.Failed() {
			return fmt.Sprintf("%d pods that came and went, of %d", cycles-done, cycles)
		}
		return ""
	})
}

// Names of pods and sandboxes, numbers, and paths differ in errors that say the same.
var particular = regexp.MustCompile(`slot[0-9-]+|/tmp/[^ :"]+|[0-9]+(\.[0-9]+)*`)

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
