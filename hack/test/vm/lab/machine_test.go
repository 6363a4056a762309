//go:build linux

package lab

import (
	"path/filepath"
	"strings"
	"testing"

	"railhead/internal/golden"
)

func TestQEMUArgs(t *testing.T) {
	t.Parallel()
	files := bootFiles{kernel: "/k/vmlinuz", initramfs: "/b/initramfs", userland: "/u.ext4", modules: "/m.ext4", share: "/b/share"}
	tests := []struct {
		name    string
		machine Machine
		tscKHz  int
	}{
		{name: "plain", tscKHz: 2596134},
		{name: "nodes", machine: Machine{Nodes: []Node{{PFs: 1}, {PFs: 2}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// One option a line, as one would write it.
			got := strings.ReplaceAll(strings.Join(tt.machine.qemuArgs(files, tt.tscKHz), " "), " -", "\n-") + "\n"
			golden.Equal(t, filepath.Join("testdata", "qemu-"+tt.name+".golden"), got)
		})
	}
}
