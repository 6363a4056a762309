package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const smaps = `00400000-01081000 r-xp 00000000 fe:00 77                     /bin/railhead
Size:              12804 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
01081000-01e1c000 r--p 00c81000 fe:00 77                     /bin/railhead
Rss:               12204 kB
Anonymous:             0 kB
01e1c000-01e20000 r--p 01a1c000 fe:00 77                     /bin/railhead
Rss:                  16 kB
Anonymous:            16 kB
01e20000-01f3c000 rw-p 01a1c000 fe:00 77                     /bin/railhead
Rss:                   0 kB
Anonymous:             0 kB
01f3c000-03f84000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f92a6000000-7f92a6001000 r--p 00000000 fe:00 78             /lib/libc.so.6
Anonymous:             0 kB
7ffe9c6f6000-7ffe9c717000 rw-p 00000000 00:00 0              [stack]
Anonymous:             0 kB
`

// TestUnwritten wants no page to be dropped that somebody wrote to or may write
// to, as a loader does where a program may be at any address.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	want := []mapping{{0x400000, 0x1081000}, {0x1081000, 0x1e1c000}}
	if diff := cmp.Diff(want, unwritten(smaps, "/bin/railhead"), cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "00400000-01081000 r-xp 00000000 fe:00 77 /bin/railhead\n", "Anonymous: 0 kB\n"} {
		if got := unwritten(text, "/bin/railhead"); len(got) > 0 {
			t.Errorf("%q: %v, want none", text, got)
		}
	}
}

// TestForget forgets the program that runs, which goes on.
func TestForget(t *testing.T) {
	t.Parallel()
	program, err := ownProgram()
	if err != nil {
		t.Skip("this kernel does not tell of mappings:", err)
	}
	if err := forget(program); err != nil {
		t.Fatal(err)
	}
	if got := unwritten(smaps, "/bin/railhead"); len(got) != 2 {
		t.Errorf("%v, want two mappings as before", got)
	}
}

// TestMapAlone reads one byte of many pages of a file that is in the kernel's
// cache, and wants no other page to be mapped.
func TestMapAlone(t *testing.T) {
	t.Parallel()
	const pages, distance = 8, 64 << 10
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, make([]byte, pages*distance), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	memory, err := unix.Mmap(int(file.Fd()), 0, pages*distance, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	begin := uintptr(unsafe.Pointer(&memory[0]))
	if err := mapAlone([]mapping{{begin, begin + pages*distance}}); err != nil {
		t.Skip("SKIPPED: this kernel cannot, or we may not:", err)
	}
	for i := range pages {
		if memory[i*distance] != 0 {
			t.Error("the file is not what it was")
		}
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, ours, _ := strings.Cut(string(smaps), fmt.Sprintf("\n%x-%x ", begin, begin+pages*distance))
	_, ours, _ = strings.Cut(ours, "\nRss:")
	ours, _, _ = strings.Cut(ours, "kB")
	if want := pages * os.Getpagesize() >> 10; strings.TrimSpace(ours) != strconv.Itoa(want) {
		t.Errorf("%s KiB are mapped, want %d", strings.TrimSpace(ours), want)
	}
}
