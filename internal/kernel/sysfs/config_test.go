package sysfs_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

func TestConfigFile(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, `
-- etc/plain.toml --
plain
-- etc/relative.toml -> plain.toml --
-- etc/conf.d -> ../usr/share/conf.d --
-- usr/share/conf.d/a.toml -> ../../../etc/plain.toml --
-- etc/dangling.toml -> nothing --
-- etc/loop.toml -> loop.toml --
-- etc/dir.toml/ --
`)
	for name, target := range map[string]string{
		"/etc/absolute.toml": "/etc/plain.toml",
		"/etc/above.toml":    "../../../../../../../../../../etc/plain.toml",
		"/etc/host.toml":     "/proc/self/status",
	} {
		if err := os.Symlink(target, fs.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := mkfifo(fs.Path("/etc/fifo.toml")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		file    string
		limit   int64
		wantErr error
		errText string
	}{
		{"plain", "/etc/plain.toml", 6, nil, ""},
		{"relative link", "/etc/relative.toml", 6, nil, ""},
		{"links on the way", "/etc/conf.d/a.toml", 6, nil, ""},
		{"absolute link stays below the root", "/etc/absolute.toml", 6, nil, ""},
		{"link cannot climb over the root", "/etc/above.toml", 6, nil, ""},
		{"nor can the name", "/../../etc/./plain.toml", 6, nil, ""},
		{"link to a file of this machine", "/etc/host.toml", 6, os.ErrNotExist, ""},
		{"dangling link", "/etc/dangling.toml", 6, os.ErrNotExist, ""},
		{"missing", "/etc/missing.toml", 6, os.ErrNotExist, ""},
		{"loop", "/etc/loop.toml", 6, unix.ELOOP, "loop.toml"},
		{"too long", "/etc/plain.toml", 5, nil, "plain.toml: more than 5 bytes"},
		{"directory", "/etc/dir.toml", 6, os.ErrInvalid, "dir.toml: invalid argument: d"},
		{"FIFO", "/etc/fifo.toml", 6, os.ErrInvalid, "fifo.toml: invalid argument: p"},
		{"below a file", "/etc/plain.toml/x", 6, unix.ENOTDIR, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := fs.ConfigFile(tt.file, tt.limit)
			wantOK := tt.wantErr == nil && tt.errText == ""
			switch {
			case wantOK && (err != nil || string(got) != "plain\n"):
				t.Errorf("%q, %v; want the plain file", got, err)
			case !wantOK && (got != nil || err == nil):
				t.Errorf("%q, %v; want an error", got, err)
			case tt.wantErr != nil && !errors.Is(err, tt.wantErr):
				t.Errorf("error %v, want %v", err, tt.wantErr)
			case !strings.Contains(fmt.Sprint(err), tt.errText):
				t.Errorf("error %v, want one with %q", err, tt.errText)
			}
		})
	}
}

// TestConfigFileRootLink: the root itself may be a link, as a mount point of
// the host often is.
func TestConfigFileRootLink(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, "-- host/etc/x --\nx\n-- link -> host --\n")
	got, err := sysfs.New(fs.Path("link")).ConfigFile("/etc/x", 100)
	if err != nil || string(got) != "x\n" {
		t.Errorf("%q, %v; want x", got, err)
	}
}
