//go:build linux

package lab

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cpioEntry is an entry of an archive, read back.
type cpioEntry struct {
	Name    string
	Mode    int64
	Content string
}

// readCPIO reads an archive by the format's description.
func readCPIO(t *testing.T, raw string) []cpioEntry {
	t.Helper()
	const headerSize = 110
	align := func(n int) int { return (n + 3) &^ 3 }
	field := func(header string, i int) int {
		n, err := strconv.ParseInt(header[6+8*i:14+8*i], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	var entries []cpioEntry
	for len(raw) >= headerSize && raw[:6] == "070701" {
		size, nameSize := field(raw, 6), field(raw, 11)
		body := align(headerSize + nameSize)
		entries = append(entries, cpioEntry{
			Name: raw[headerSize : headerSize+nameSize-1], Mode: int64(field(raw, 1)), Content: raw[body : body+size],
		})
		raw = raw[align(body+size):]
	}
	if raw != "" {
		t.Fatalf("%d bytes after the last entry", len(raw))
	}
	return entries
}

func TestWriteInitramfs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"pid1": "program", "boot/00-a.ko": "a", "boot/01-b.ko": "bcde", "boot/notes": "no module"} {
		path := filepath.Join(dir, name)
		if err := mkdirs(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(dir, "initramfs")
	if err := writeInitramfs(archive, filepath.Join(dir, "pid1"), filepath.Join(dir, "boot")); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	want := []cpioEntry{
		{"modules", 0o040755, ""},
		{"init", 0o100755, "program"},
		{"modules/00-a.ko", 0o100644, "a"},
		{"modules/01-b.ko", 0o100644, "bcde"},
		{"TRAILER!!!", 0, ""},
	}
	if diff := cmp.Diff(want, readCPIO(t, string(raw))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
