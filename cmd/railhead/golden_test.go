package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"railhead/internal/golden"
	"railhead/internal/kernel/archive"
)

// machines returns the archives of machines by name.
func machines(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "internal", "inventory", "testdata", "machines", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no archives of machines")
	}
	byName := map[string]string{}
	for _, f := range files {
		byName[strings.TrimSuffix(filepath.Base(f), ".txtar")] = f
	}
	return byName
}

// railhead runs a command line as the shell would.
func railhead(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(args, &out, &err)
	return out.String(), err.String(), status
}

// TestMachines prints every machine for people; the inventory as data has
// golden files of its own.
func TestMachines(t *testing.T) {
	t.Parallel()
	for machine, file := range machines(t) {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			dir := unpacked(t, file)
			for name, args := range map[string][]string{
				"devices.txt":      {"devices"},
				"devices.wide.txt": {"devices", "-o", "wide"},
				"check.txt":        {"check"},
				"check.wishes.txt": {"check", "--want-netns-mode", "exclusive", "--want-vfs", "12"},
			} {
				stdout, stderr, status := railhead(t, append(args, "--sysfs-root", dir)...)
				golden.Equal(t, filepath.Join("testdata", machine, name), stdout+trailer(stderr, status))
			}
		})
	}
}

// unpacked returns a directory with what an archive holds.
func unpacked(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := archive.Unpack(text, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFormats prints one machine in the formats for programs.
func TestFormats(t *testing.T) {
	t.Parallel()
	const machine = "rxe"
	file := machines(t)[machine]
	for name, args := range map[string][]string{
		"devices.json":   {"devices", "-o", "json", "--rails", "veth0,rxe0"},
		"devices.yaml":   {"devices", "-o", "yaml"},
		"check.json":     {"check", "-o", "json", "--want-netns-mode", "exclusive"},
		"check.yaml":     {"check", "-o", "yaml"},
		"rails.txt":      {"devices", "--rails", "veth0,rxe0"},
		"rails-typo.txt": {"devices", "--rails", "veth0,rxe7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := railhead(t, append(args, "--sysfs-root", file)...)
			got := stdout
			if filepath.Ext(name) == ".txt" {
				got += trailer(stderr, status)
			}
			golden.Equal(t, filepath.Join("testdata", machine, name), got)
		})
	}
}

// trailer keeps what else a command line did.
func trailer(stderr string, status int) string {
	text := fmt.Sprintf("\n-- exit status %d\n", status)
	if stderr != "" {
		text += "-- stderr\n" + stderr
	}
	return text
}
