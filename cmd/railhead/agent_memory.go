package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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
func settle(ctx context.Context, logger *slog.Logger) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settleAfter):
	}
	debug.FreeOSMemory()
	if err := forgetProgram(); err != nil {
		logger.Debug("what of the program was needed for the start stays in memory", "error", err)
	}
	return nil
}

// forgetProgram has the kernel map only what is used of our program from now on:
// two thirds of what was mapped is for the start and for other commands. Nothing
// is lost, for no page of these was written, and what is used again is found in
// the kernel's cache of files.
func forgetProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	for _, m := range unwritten(string(smaps), program) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.begin, m.end-m.begin, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise %#x to %#x of %s: %w", m.begin, m.end, program, errno)
		}
	}
	return nil
}

// mapping is a part of our memory.
type mapping struct{ begin, end uintptr }

// unwritten returns the mappings of a file that cannot be written to and never
// were, of smaps as proc_pid_smaps(5) has it. Where a loader wrote before it
// forbade that, pages are anonymous, and dropping them would lose what it wrote.
func unwritten(smaps, file string) []mapping {
	var all []mapping
	var last *mapping
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if m, ok := mappingOf(line); ok {
			last = nil
			if len(fields) == 6 && fields[5] == file && strings.HasPrefix(fields[1], "r-") {
				last = &m
			}
		} else if last != nil && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" {
			all, last = append(all, *last), nil
		}
	}
	return all
}

// mappingOf reads the first line of a mapping; false where a line is another one.
func mappingOf(line string) (mapping, bool) {
	var m mapping
	n, err := fmt.Sscanf(line, "%x-%x ", &m.begin, &m.end)
	return m, err == nil && n == 2
}
