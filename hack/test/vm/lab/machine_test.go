//go:build linux

package lab

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

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
			golden := filepath.Join("testdata", "qemu-"+tt.name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
