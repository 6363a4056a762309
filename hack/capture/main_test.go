package main

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"railhead/internal/inventory"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// TestHere captures the machine that the test runs on, whatever that has.
func TestHere(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "node.txtar")
	var stdout, stderr bytes.Buffer
	if err := run([]string{"-o", file, "--keep-addresses"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if stdout.Len() > 0 {
		t.Errorf("standard output: %q", &stdout)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := unpack(t, text)
	r, err := inventory.NewReader(node.Running(sysfs.New("/")))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := inventory.Join(r.Read(nil, inventory.Changes{All: true}), inventory.Options{})
	if got.snapshot.System.Kernel != want.System.Kernel || len(got.snapshot.Devices) != len(want.Devices) {
		t.Errorf("kernel %q and %d devices, want %q and %d", got.snapshot.System.Kernel, len(got.snapshot.Devices), want.System.Kernel, len(want.Devices))
	}
	if len(got.facts.Netlink.Links) == 0 {
		t.Error("no links, want the loopback at least")
	}
}

func TestRunToStandardOutput(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/node.txtar")
	if err != nil {
		t.Fatal(err)
	}
	n := unpack(t, text)
	var stdout, stderr bytes.Buffer
	if err := run([]string{"--root", n.root}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	unpack(t, stdout.Bytes())
	if !strings.Contains(stderr.String(), "capture: ") {
		t.Errorf("standard error %q, want what was left out", &stderr)
	}
	first := stdout.String()
	stdout.Reset()
	if err := run([]string{"--root", n.root}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if stdout.String() == first {
		t.Error("the same pseudonyms twice, want others each time")
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	tests := []struct {
		name string
		args []string
		want string
		is   error
	}{
		{"help", []string{"-h"}, "help", flag.ErrHelp},
		{"unknown flag", []string{"--sysfs-root", "/"}, "sysfs-root", nil},
		{"argument", []string{"node.txtar"}, `"node.txtar"`, nil},
		{"no such root", []string{"--root", filepath.Join(empty, "absent")}, "absent", fs.ErrNotExist},
		{"root without sys", []string{"--root", empty}, "--root", fs.ErrNotExist},
		{"file in no directory", []string{"-o", filepath.Join(empty, "absent", "x")}, "absent", fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			err := run(tt.args, &stdout, &stderr)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want one with %q that is %v", err, tt.want, tt.is)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output: %q", &stdout)
			}
		})
	}
}
