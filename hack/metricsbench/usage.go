package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticks is how many clock ticks of /proc a second has (USER_HZ, the same on
// all architectures that Go runs on).
const ticks = 100

// usage is what a process has used.
type usage struct {
	cpu       time.Duration // its own, and of processes that it started and waited for
	rss, peak uint64        // bytes
}

func usageOf(pid int) (usage, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return usage{}, err
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return usage{}, err
	}
	return parseUsage(string(stat), string(status))
}

// parseUsage reads utime, stime, cutime and cstime of stat (proc_pid_stat(5)),
// and VmRSS and VmHWM of status.
func parseUsage(stat, status string) (usage, error) {
	var u usage
	_, rest, ok := strings.Cut(stat, ") ") // the name of the program may have blanks
	fields := strings.Fields(rest)
	if !ok || len(fields) < 15 {
		return u, fmt.Errorf("stat %q: it is cut short", stat)
	}
	for _, field := range fields[11:15] {
		n, err := strconv.ParseUint(field, 10, 40)
		if err != nil {
			return u, fmt.Errorf("stat: %w", err)
		}
		u.cpu += time.Duration(n) * time.Second / ticks
	}
	var err error
	if u.rss, err = kibibytes(status, "VmRSS:"); err != nil {
		return u, err
	}
	u.peak, err = kibibytes(status, "VmHWM:")
	return u, err
}

func kibibytes(status, name string) (uint64, error) {
	_, rest, ok := strings.Cut(status, name)
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 || fields[1] != "kB" {
		return 0, fmt.Errorf("status: %s is missing", name)
	}
	n, err := strconv.ParseUint(fields[0], 10, 50)
	if err != nil {
		return 0, fmt.Errorf("status: %s %w", name, err)
	}
	return n << 10, nil
}
