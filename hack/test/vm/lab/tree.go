//go:build linux

package lab

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"

	"railhead/hack/debian"
	"railhead/hack/program"
)

// tree is a directory with unpacked packages, a C library among them.
type tree string

// libraries is where Debian's multi-arch libraries are.
const libraries = "usr/lib/x86_64-linux-gnu"

// at is a path in the tree.
func (t tree) at(path string) string { return filepath.Join(string(t), path) }

// command is a program of the tree, run by the tree's own loader with its own libraries, whatever this machine has.
func (t tree) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	search := t.at(libraries) + ":" + t.at(libraries+"/pulseaudio") // QEMU links a private library of pulseaudio's
	loader := []string{"--library-path", search, "--argv0", filepath.Base(name), t.at(name)}
	return program.Command(ctx, t.at("usr/lib64/ld-linux-x86-64.so.2"), append(loader, args...)...)
}

// makeTools is the tree with QEMU and what makes disks and module indexes.
func makeTools(ctx context.Context, c *cache, s *debian.Suite) (tree, error) {
	debs, err := s.Closure(ctx, "qemu-system-x86", "e2fsprogs", "kmod", "xz-utils")
	if err != nil {
		return "", err
	}
	dir, err := c.product(ctx, "tools", append(debian.Strings(debs), documentation), func(ctx context.Context, out, scratch string) error {
		if err := s.Unpack(ctx, out, scratch, debs); err != nil {
			return err
		}
		return removeAll(out, documentation)
	})
	return tree(dir), err
}

// documentation is what no tree needs.
const documentation = `usr/share/doc usr/share/man usr/share/locale usr/share/info usr/share/lintian usr/share/bug
	usr/share/icons usr/share/bash-completion usr/share/zsh`

// makeDisk writes an ext4 file system with the content of dir, as small as it may be: guests mount it read only.
func makeDisk(ctx context.Context, tools tree, dir, image string) error {
	var bytes, inodes int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		bytes += (info.Size() + 4095) &^ 4095
		inodes++
		return nil
	})
	if err != nil {
		return err
	}
	const spare = 16 << 20 // the file system's own tables
	kib := (bytes+bytes/20+inodes*256+spare)/1024 + 1
	if err := program.Run(tools.command(ctx, "usr/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^has_journal,^resize_inode", "-m", "0",
		"-N", strconv.FormatInt(inodes+64, 10), "-d", dir, image, strconv.FormatInt(kib, 10)+"k")); err != nil {
		return fmt.Errorf("disk of %d files and %d MiB: %w", inodes, bytes>>20, err)
	}
	return nil
}
