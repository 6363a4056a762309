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
		{"root that is no file", []string{"check", "--sysfs-root", "/dev/null"}, []string{"--sysfs-root /dev/null", "neither a directory nor a file"}},
		{"rail that is none", []string{"devices", "--rails", "no-such-rail"}, []string{"--rails", `"no-such-rail"`}},
		{"link layer", []string{"check", "--want-link-layer", "token-ring"}, []string{`"token-ring"`, "ethernet and infiniband"}},
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

// TestHostileNames has names that a pod may have chosen: they must neither be
// taken for a command by who pastes a finding, nor move the cursor.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(machines(t)["sick-rail"])
	if err != nil {
		t.Fatal(err)
	}
	hostile := strings.ReplaceAll(string(text), "enp94s0np0", "$(reboot)")
	hostile = strings.ReplaceAll(hostile, "enp26s0np0", "a\u001b[31mb")
	file := filepath.Join(t.TempDir(), "hostile.txtar")
	if err := os.WriteFile(file, []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"devices", "check"} {
		stdout, stderr, _ := railhead(t, verb, "--sysfs-root", file)
		if strings.Contains(stdout+stderr, "\x1b") {
			t.Errorf("%s prints an escape sequence", verb)
		}
		for line := range strings.Lines(stdout) {
			isCommand := strings.HasPrefix(line, "  mend  ") || strings.HasPrefix(line, "        ")
			if unquoted := strings.ReplaceAll(line, "'$(reboot)'", ""); isCommand && strings.Contains(unquoted, "$(reboot)") {
				t.Errorf("%s prints a command with an unquoted name: %s", verb, line)
			}
		}
	}
}

// TestUnreadableNode wants no claim that there is nothing where nothing could
// be read.
func TestUnreadableNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sys/bus/pci"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sys/bus/pci/devices"), nil, 0o600); err != nil { // no directory
		t.Fatal(err)
	}
	if stdout, stderr, status := railhead(t, "devices", "--sysfs-root", dir); status != exitFailed || !strings.Contains(stderr, "/sys/bus/pci/devices") {
		t.Errorf("devices: exit status %d, standard output %q, standard error %q", status, stdout, stderr)
	}
	if stdout, _, status := railhead(t, "check", "--sysfs-root", dir); status != exitErrors || !strings.Contains(stdout, "not all could be read") {
		t.Errorf("check: exit status %d, standard output %q", status, stdout)
	}
}
