package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadInput wants an error that names what was wrong and what would be
// accepted, and nothing on standard output.
func TestBadInput(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	noArchive := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(noArchive, []byte("nothing of the kind\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	badNetlink := filepath.Join(t.TempDir(), "bad.txtar")
	if err := os.WriteFile(badNetlink, []byte("-- netlink.json --\n{\n-- sys/class/net/{} --\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want []string // parts of the error
	}{
		{"unknown verb", []string{"device"}, []string{`"device"`}},
		{"unknown flag", []string{"devices", "--outptu", "json"}, []string{"--outptu"}},
		{"argument", []string{"devices", "mlx5_0"}, []string{"mlx5_0"}},
		{"format", []string{"devices", "-o", "xml"}, []string{`"xml"`, "text, wide, json, yaml"}},
		{"format of check", []string{"check", "-o", "wide"}, []string{`"wide"`, "text, json, yaml"}},
		{"mode", []string{"check", "--want-netns-mode", "excl"}, []string{`"excl"`, "shared and exclusive"}},
		{"negative VFs", []string{"check", "--want-vfs", "-1"}, []string{"-1"}},
		{"no such root", []string{"check", "--sysfs-root", filepath.Join(empty, "absent")}, []string{"--sysfs-root", "absent"}},
		{"root without sys", []string{"devices", "--sysfs-root", empty}, []string{"--sysfs-root", "no directory sys"}},
		{"root that is no archive", []string{"devices", "--sysfs-root", noArchive}, []string{"--sysfs-root", "notes.txt"}},
		{"damaged netlink.json", []string{"devices", "--sysfs-root", badNetlink}, []string{"netlink.json"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := railhead(t, tt.args...)
			if status != exitFailed {
				t.Errorf("exit status %d, want %d", status, exitFailed)
			}
			if stdout != "" {
				t.Errorf("standard output: %q", stdout)
			}
			for _, part := range tt.want {
				if !strings.Contains(stderr, part) {
					t.Errorf("error %q does not say %q", stderr, part)
				}
			}
		})
	}
}

// TestHere looks at the machine that the test runs on, whatever that has.
func TestHere(t *testing.T) {
	t.Parallel()
	if stdout, stderr, status := railhead(t, "devices"); status != 0 || stdout == "" {
		t.Errorf("devices: exit status %d, standard output %q, standard error %q", status, stdout, stderr)
	}
	if stdout, stderr, status := railhead(t, "check"); status > exitErrors || stdout == "" {
		t.Errorf("check: exit status %d, standard output %q, standard error %q", status, stdout, stderr)
	}
	if stdout, _, status := railhead(t, "version"); status != 0 || !strings.HasPrefix(stdout, "railhead ") {
		t.Errorf("version: exit status %d, standard output %q", status, stdout)
	}
	if stdout, _, status := railhead(t); status != 0 || !strings.Contains(stdout, "devices") {
		t.Errorf("without a verb: exit status %d, standard output %q", status, stdout)
	}
}
