package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// collectAt is how much the heap may grow between two collections, in percent,
// unless the environment's GOGC says otherwise. What an agent keeps is rendered
// and lives long, and it makes little garbage, so that a quarter of Go's default
// costs little time and saves three quarters of the difference in memory.
const collectAt = 25

// threadsMost is how many threads run Go code at a time at most, unless the
// environment's GOMAXPROCS says otherwise. Each keeps memory to allocate from,
// which on a node of 200 cores is more than the rest, and an agent has work for
// a hundredth of one.
const threadsMost = 4

// saveMemory has the runtime of Go use little memory.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) > threadsMost {
		runtime.GOMAXPROCS(threadsMost)
	}
}

// settleAfter is when, after the start, all tiers were read and a first scrape
// was answered: what was only needed for that is given back to the kernel then.
const settleAfter = 90 * time.Second

// settle gives memory back once the agent has settled.
func settle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settleAfter):
		debug.FreeOSMemory()
		return nil
	}
}
