package debian

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLibraries(t *testing.T) {
	t.Parallel()
	const shell = "usr/bin/dash"
	if _, err := os.Stat(filepath.Join("/", shell)); errors.Is(err, fs.ErrNotExist) {
		t.Skip("not a Debian machine: no " + shell)
	}
	got, err := Libraries("/", shell)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(got, " ")
	if !strings.Contains(all, "/libc.so.6") || !strings.Contains(all, "/ld-linux") || len(got) != 2 {
		t.Errorf("found %q, want the C library and the loader, each once", got)
	}
	if _, err := Libraries(t.TempDir(), shell); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
}

func TestLibraryThatIsNotThere(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("/usr/bin/dash")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("not a Debian machine")
	}
	root := t.TempDir()
	if err := errors.Join(err, os.WriteFile(filepath.Join(root, "dash"), program, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := Libraries(root, "dash"); err == nil || !strings.Contains(err.Error(), "dash: library ld-linux") {
		t.Errorf("error %v, want one that names program and library", err)
	}
}
