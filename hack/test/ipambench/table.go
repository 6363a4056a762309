package ipambench

import (
	"fmt"
	"io"
	"math"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// table is the lines that are printed.
type table struct {
	lines  [][6]string
	missed int
}

// add adds a figure, and what it is measured against, if anything.
func (t *table) add(what, ours, peer, ratio string) {
	t.lines = append(t.lines, [6]string{what, ours, peer, ratio})
}

// least adds a figure that has to be that at least.
func (t *table) least(what string, ours, budget float64, unit, peer, ratio string) {
	t.judge(what, ours, fmt.Sprintf("≥ %s%s", figure(budget), unit), ours >= budget, unit, peer, ratio)
}

// most adds a figure that has to be that at most.
func (t *table) most(what string, ours, budget float64, unit, peer, ratio string) {
	t.judge(what, ours, fmt.Sprintf("≤ %s%s", figure(budget), unit), ours <= budget, unit, peer, ratio)
}

func (t *table) judge(what string, ours float64, budget string, isMet bool, unit, peer, ratio string) {
	met := "yes"
	if !isMet {
		met = "NO"
		t.missed++
	}
	t.lines = append(t.lines, [6]string{what, figure(ours) + unit, peer, ratio, budget, met})
}

// print prints all lines.
func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tOURS\tONE MAP IN ONE OBJECT\tRATIO\tBUDGET\tMET")
	for _, l := range t.lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l[0], l[1], l[2], l[3], l[4], l[5])
	}
	return w.Flush()
}

// figure writes a number with three digits that count, and "-" where there is none.
func figure(value float64) string {
	if math.IsNaN(value) {
		return "-"
	}
	if value >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}

// fileSystem is the name, or else the number, of the file system of a directory.
func fileSystem(t *testing.T, dir string) string {
	t.Helper()
	var found unix.Statfs_t
	if err := unix.Statfs(dir, &found); err != nil {
		t.Fatal(err)
	}
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.TMPFS_MAGIC: "tmpfs, which has no disk",
	}
	if name, isKnown := names[int64(found.Type)]; isKnown { //nolint:unconvert // of another size elsewhere
		return name
	}
	return fmt.Sprintf("%#x", found.Type)
}

// kilobytes writes bytes.
func kilobytes(bytes float64) string { return figure(bytes/1e3) + " kB" }

// milliseconds writes a time.
func milliseconds(d time.Duration) string { return figure(float64(d.Microseconds())/1e3) + " ms" }

// microseconds writes seconds.
func microseconds(seconds float64) string { return figure(seconds*1e6) + " µs" }

// times writes how many times b a is.
func times(a, b float64) string {
	if a == 0 || b == 0 || math.IsNaN(a) || math.IsNaN(b) || math.IsInf(a, 0) || math.IsInf(b, 0) {
		return "" // there is none
	}
	return figure(a/b) + " x"
}
