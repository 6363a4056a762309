package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unsafe"

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
	program, err := ownProgram()
	if err == nil {
		if err := mapAlone(program); err != nil {
			logger.Debug("more of the program is mapped than is used", "error", err)
		}
		err = forget(program)
	}
	if err != nil {
		logger.Debug("what of the program was needed for the start stays in memory", "error", err)
	}
	return nil
}

// ownProgram is where our program is mapped, as far as nobody wrote to it.
func ownProgram() ([]mapping, error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	return unwritten(string(smaps), program), nil
}

// forget has the kernel map only what is used of a program from now on: two
// thirds of what was mapped is for the start and for other commands. Nothing is
// lost, for no page of these was written, and what is used again is found in the
// kernel's cache of files.
func forget(program []mapping) error {
	for _, m := range program {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.begin, m.end-m.begin, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise %#x to %#x of the program: %w", m.begin, m.end, errno)
		}
	}
	return nil
}

// Of linux/userfaultfd.h.
const (
	uffdAPI          = 0xaa
	uffdUserModeOnly = 1       // flag: of nothing that the kernel itself does
	uffdWPAsync      = 1 << 15 // feature, of Linux 6.7: any mapping may be watched, and nobody is asked
	uffdWP           = 2       // mode of watching: for writes to pages that were protected
	uffdioAPI        = 0xc018aa3f
	uffdioRegister   = 0xc020aa00
)

// mapAlone has the kernel map a page of a program when it is used, and not the
// fifteen around it as well, for as long as this process lives: what is used is so
// scattered that most of the program came back within minutes. The kernel leaves
// those out where a userfaultfd watches for writes to protected pages. This one
// protects none, so that nothing else changes. Before Linux 6.7 that is an error.
func mapAlone(program []mapping) error {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("userfaultfd", errno)
	}
	api := struct{ api, features, ioctls uint64 }{api: uffdAPI, features: uffdWPAsync}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdioAPI, uintptr(unsafe.Pointer(&api))); errno != 0 {
		return errors.Join(os.NewSyscallError("UFFDIO_API", errno), unix.Close(int(fd)))
	}
	for _, m := range program {
		watched := struct{ begin, size, mode, ioctls uint64 }{begin: uint64(m.begin), size: uint64(m.end - m.begin), mode: uffdWP}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdioRegister, uintptr(unsafe.Pointer(&watched))); errno != 0 {
			return errors.Join(os.NewSyscallError("UFFDIO_REGISTER", errno), unix.Close(int(fd)))
		}
	}
	return nil // the descriptor stays open: closing it ends the watching
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
