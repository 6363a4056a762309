package ethtool

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var header = flag.String("ethtool.header", "/usr/include/linux/ethtool.h", "kernel header to check the link modes against")

// TestLinkModeTable checks the table against the kernel header that is there,
// which may be older or newer than the table.
func TestLinkModeTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(*header)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%v: install the kernel's user headers, or name one with -ethtool.header", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	modes := regexp.MustCompile(`ETHTOOL_LINK_MODE_((?:(\d+)base)?\w+)_BIT\s*=\s*(\d+)`).FindAllStringSubmatch(string(text), -1)
	if len(modes) < 32 { // those of the first, 32-bit interface
		t.Fatalf("%s: only %d link modes found", *header, len(modes))
	}
	for _, m := range modes {
		name := m[1]
		want, _ := strconv.Atoi(m[2])
		number, _ := strconv.Atoi(m[3])
		if name == "10000baseR_FEC" { // FEC of 10GBASE-R, not a speed
			want = 0
		}
		switch {
		case number >= len(linkModeMegabits):
			t.Logf("%s = %d is newer than the table", name, number)
		case linkModeMegabits[number] != want:
			t.Errorf("%s = %d: %d Mb/s, want %d", name, number, linkModeMegabits[number], want)
		}
	}
}
