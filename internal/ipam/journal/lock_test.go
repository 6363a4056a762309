package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"railhead/internal/ipam/journal"
)

// TestOneAtATime opens a directory twice: the second one is told who has it, and
// gets it as soon as the first one ends, whatever else lies there.
func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	first, err := journal.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = journal.OS(dir)
	if !errors.Is(err, journal.ErrHeld) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Fatalf("got %v, want ErrHeld and this process", err)
	}
	if err := os.Truncate(filepath.Join(dir, "lock"), 0); err != nil { // the disk was full
		t.Fatal(err)
	}
	if _, err := journal.OS(dir); !errors.Is(err, journal.ErrHeld) {
		t.Fatalf("got %v, want ErrHeld", err)
	}
	if err := first.Append(name, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := journal.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := second.Read(name); err != nil || string(data) != "x" {
		t.Errorf("read %q, %v", data, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLockErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.OS(dir); err == nil || errors.Is(err, journal.ErrHeld) {
		t.Errorf("got %v, want that the file cannot be opened", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.OS(file); err == nil {
		t.Error("no error for a directory that is a file")
	}
}
