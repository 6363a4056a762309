package sysfs_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
	"railhead/internal/versus"
)

// TestReadAttrEAGAIN: an attribute that has nothing to say now is not waited
// for. A FIFO with a writer that is silent stands for it.
func TestReadAttrEAGAIN(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "attr")
	if err := mkfifo(name); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }()
	if _, err := sysfs.ReadAttr(name); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("error %v, want EAGAIN", err)
	}
}

func TestReadAttrMissing(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "attr")
	_, err := sysfs.ReadAttr(name)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name) {
		t.Errorf("error %v, want os.ErrNotExist with the path", err)
	}
}

// TestPathErrorGone: an object that goes while its file is open does not
// exist, though the kernel has other words for it.
func TestPathErrorGone(t *testing.T) {
	t.Parallel()
	for errno, want := range map[unix.Errno]bool{
		unix.ENOENT: true, unix.ENODEV: true, unix.ENXIO: true, unix.ESRCH: true, unix.EIO: false, unix.EACCES: false,
	} {
		err := sysfs.PathError("read", "/x", errno)
		if got := errors.Is(err, os.ErrNotExist); got != want || !errors.Is(err, errno) {
			t.Errorf("%v: os.ErrNotExist %t, want %t, and the errno itself", err, got, want)
		}
		if text := "read /x: " + errno.Error(); err.Error() != text {
			t.Errorf("error %q, want %q", err, text)
		}
	}
}

// TestDescriptors: no reading leaves a file open, whatever becomes of it.
func TestDescriptors(t *testing.T) {
	fs := kerneltest.Tree(t, "testdata/roce.txtar")
	before := openFiles(t)
	for range 3 {
		if _, err := fs.IBDevices(); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.PCIDevices(func(uint32) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Netdevs(); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.CharDevices(); err != nil {
			t.Fatal(err)
		}
		_, _ = fs.IBDevice("missing")
		_, _, _ = fs.GIDs("mlx5_0", 99)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d open files, %d before", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		skip(t, fmt.Sprintf("needs proc: %v", err))
	}
	return len(entries)
}

// skip skips a test that runs on any Linux, which CI is.
func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

func TestParseIndex(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"0": true, "17": true, "": false, "017": false, "00": false, "+1": false, "-1": false, "2147483648": false, "x": false} {
		n, ok := sysfs.ParseIndex(s)
		if ok != want || ok && strconv.Itoa(n) != s {
			t.Errorf("%q: %d, %t; want ok %t", s, n, ok, want)
		}
	}
}

func TestParseInt(t *testing.T) {
	t.Parallel()
	checkParse(t, sysfs.ParseInt, []parseCase[int]{
		{"0", 0, true},
		{"-1", -1, true},
		{"9000", 9000, true},
		{"", 0, false},
		{"0x10", 0, false},
		{"1 2", 0, false},
		{"99999999999999999999", 0, false},
	})
}

func TestAfterNumber(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"4: ACTIVE":    "ACTIVE",
		"1: CA":        "CA",
		"7: <unknown>": "<unknown>",
		"2: a: b":      "a: b",
		"ACTIVE":       "ACTIVE",
		"x: ACTIVE":    "x: ACTIVE",
		"4:":           "4:",
		"":             "",
	} {
		if got := sysfs.AfterNumber(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzAfterNumber: the result is the end of what was there, and only a number
// is cut off.
func FuzzAfterNumber(f *testing.F) {
	f.Add("4: ACTIVE")
	f.Add("ACTIVE")
	f.Fuzz(func(t *testing.T, s string) {
		got := sysfs.AfterNumber(s)
		number, ok := strings.CutSuffix(s, got)
		if !ok || strings.Trim(number, "0123456789: ") != "" {
			t.Errorf("%q of %q", got, s)
		}
	})
}

// FuzzParseDecimal: a finite number that is not negative, or an error.
func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"2.5", "400", "-1", "Inf", "NaN", "1e5", "0x1p-2", ".", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := sysfs.ParseDecimal(s)
		if got < 0 || math.IsInf(got, 0) || math.IsNaN(got) || err != nil && got != 0 {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	})
}

// FuzzParseInt: a number or an error, and a number reads the same when
// written.
func FuzzParseInt(f *testing.F) {
	f.Add("-1")
	f.Add("9000")
	f.Add("0x10")
	f.Fuzz(func(t *testing.T, s string) {
		checkRoundTrip(t, sysfs.ParseInt, s, strconv.Itoa)
	})
}

// FuzzBelow: no link leads out of sysfs.
func FuzzBelow(f *testing.F) {
	f.Add("class/infiniband", "../../devices/pci0000:16/0000:17:00.0/infiniband/mlx5_0")
	f.Add("class/net", "../../../../etc/passwd")
	f.Add("a", "/b")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, base, target string) {
		got := sysfs.Below(base, target)
		if got != "" && (!filepath.IsLocal(got) || path.Clean(got) != got) {
			t.Errorf("%q", got)
		}
	})
}

// attrs is a directory of a benchmark with the attributes and links that are
// read of it.
type attrs struct {
	dir   string
	names []string
	links []string
}

// benchmark compares a reading with the least that any could do, and with
// what one would write without this package.
func benchmark(b *testing.B, dirs []attrs, read func() error) {
	b.Helper()
	b.Run("floor", func(b *testing.B) { versus.Floor(b, read, func() error { return readBare(dirs) }) })
	b.Run("library", func(b *testing.B) { versus.Peer(b, read, func() error { return readLibrary(dirs) }) })
}

// readBare reads attributes with nothing but the syscalls.
func readBare(dirs []attrs) error {
	buf := make([]byte, 4096)
	for _, d := range dirs {
		dir, err := unix.Open(d.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		for _, name := range d.names {
			fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			if _, err := unix.Read(fd, buf); err != nil {
				return err
			}
			_ = unix.Close(fd)
		}
		for _, name := range d.links {
			if _, err := unix.Readlinkat(dir, name, buf); err != nil {
				return err
			}
		}
		_ = unix.Close(dir)
	}
	return nil
}

// readLibrary reads attributes with the standard library.
func readLibrary(dirs []attrs) error {
	for _, d := range dirs {
		for _, name := range d.names {
			if _, err := os.ReadFile(filepath.Join(d.dir, name)); err != nil {
				return err
			}
		}
		for _, name := range d.links {
			if _, err := os.Readlink(filepath.Join(d.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
