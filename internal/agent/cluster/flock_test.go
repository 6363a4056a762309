package cluster

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unlocked does something where flock is refused, as file systems do that know no locks.
func unlocked(t *testing.T, do func()) {
	t.Helper()
	refused := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine: what refuses stays
		err := refuseFlock()
		if err == nil {
			do()
		}
		refused <- err
	}()
	if err := <-refused; err != nil {
		t.Fatal(err)
	}
}

// refuseFlock has the calling thread's flock fail with ENOLCK from now on.
func refuseFlock() error {
	const load, equal, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load}, // the number of the call, which is first
		{Code: equal, K: unix.SYS_FLOCK, Jf: 1},
		{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOLCK)},
		{Code: end, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}

// TestNoLocks keeps what is known in a directory that cannot be locked: nothing in it is
// written or removed, which others may be writing, people are told, and once it can be
// locked all is kept.
func TestNoLocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	c := empty(t)
	c.disk, c.log = newDisk(dir), slog.New(slog.NewTextHandler(&log, nil))
	half := filepath.Join(dir, "."+diskFile+"4711")
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	unlocked(t, func() {
		for range 2 {
			if c.write() {
				t.Error("it is written, though the directory is not locked")
			}
		}
	})
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !slices.Equal(files, []string{half}) {
		t.Errorf("files %q, error %v, want the one that another may be writing", files, err)
	}
	if !c.write() {
		t.Error("it is not written")
	}
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what nobody writes: %v, want it to be gone", err)
	}
	other := empty(t)
	if _, err := readParts(filepath.Join(dir, diskFile), other.isOurs, other.parts()); err != nil {
		t.Error(err)
	}
	for word, n := range map[string]int{"cannot be kept": 1, "flock " + dir + ": no locks available": 1, "is kept on the node again": 1} {
		if told := strings.Count(log.String(), word); told != n {
			t.Errorf("%q is told %d times, want %d:\n%s", word, told, n, log.String())
		}
	}
}
