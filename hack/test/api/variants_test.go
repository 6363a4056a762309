package api

import (
	"os"
	"strconv"
	"testing"
)

// times is how often something is done that may go on for as long as one likes:
// often enough by default, and more often by night.
func times(usual, nightly int) int {
	if os.Getenv("RAILHEAD_NIGHTLY") != "" {
		return nightly
	}
	return usual
}

// seed is that of all choices of a test. It is the same in each run, but where the
// environment says another.
func seed(t *testing.T) uint64 {
	t.Helper()
	const name = "RAILHEAD_SEED"
	n := uint64(1)
	if text := os.Getenv(name); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%q: want a number", name, text)
		}
	}
	t.Logf("%s=%d", name, n)
	return n
}
