//go:build linux

package lab

import (
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hostTSC is the frequency in kHz of this machine's time stamp counter as its kernel measured it at boot, or 0 when the
// kernel's log no longer has it.
func hostTSC() int {
	const readAll = 3 // SYSLOG_ACTION_READ_ALL
	log := make([]byte, 1<<20)
	n, err := unix.Klogctl(readAll, log)
	if err != nil {
		return 0
	}
	return parseTSC(string(log[:n]))
}

// parseTSC finds the frequency in a kernel log, in kHz.
func parseTSC(log string) int {
	m := regexp.MustCompile(`tsc: Detected (\d+)\.(\d{3}) MHz`).FindStringSubmatch(log)
	if m == nil {
		return 0
	}
	khz, err := strconv.Atoi(strings.Join(m[1:], ""))
	if err != nil {
		return 0
	}
	return khz
}
