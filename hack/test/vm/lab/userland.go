//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"railhead/hack/debian"
)

// userlandPackages is what guests have: a shell for humans, the programs whose answers tests compare ours with, and
// the traffic generators.
const userlandPackages = `base-files bash coreutils findutils grep sed procps util-linux mount libc-bin kmod
	iproute2 ethtool iputils-ping nftables pciutils
	rdma-core ibverbs-utils ibverbs-providers rdmacm-utils perftest`

// userlandWaste comes with the packages and is never used in a guest, which has no init system, Perl or Python.
const userlandWaste = documentation + ` usr/lib/python3 usr/lib/python3.14 usr/share/python3 usr/share/perl
	usr/lib/x86_64-linux-gnu/perl usr/lib/x86_64-linux-gnu/perl-base usr/lib/systemd usr/lib/x86_64-linux-gnu/systemd
	usr/lib/udev/hwdb.d usr/share/zoneinfo usr/lib/x86_64-linux-gnu/gconv usr/share/perl5`

// userlandFiles are the few files that maintainer scripts would have made.
func userlandFiles() map[string]string {
	return map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\n",
		"etc/group":  "root:x:0:\n",
		"etc/hosts":  "127.0.0.1 localhost\n::1 localhost\n",
	}
}

// userlandLinks are links that maintainer scripts would have made.
func userlandLinks() map[string]string {
	return map[string]string{
		"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64",
		"usr/bin/sh": "bash", "usr/bin/awk": "mawk", "var/run": "/run",
	}
}

// makeUserland is the disk image that all guests share, without kernel modules.
func makeUserland(ctx context.Context, c *cache, s *debian.Suite, tools tree) (string, error) {
	debs, err := s.Closure(ctx, strings.Fields(userlandPackages)...)
	if err != nil {
		return "", err
	}
	const image = "userland.ext4"
	inputs := append(debian.Strings(debs), userlandWaste, fmt.Sprint(userlandLinks(), userlandFiles()))
	dir, err := c.product(ctx, "userland", inputs, func(ctx context.Context, out, scratch string) error {
		root, downloads := filepath.Join(scratch, "root"), filepath.Join(scratch, "debs")
		if err := mkdirs(root, downloads); err != nil {
			return err
		}
		if err := s.Unpack(ctx, root, downloads, debs); err != nil {
			return err
		}
		if err := removeAll(root, userlandWaste); err != nil {
			return err
		}
		if err := furnish(root, userlandLinks(), userlandFiles()); err != nil {
			return err
		}
		return makeDisk(ctx, tools, root, filepath.Join(out, image))
	})
	return filepath.Join(dir, image), err
}

// furnish adds links and files to an unpacked tree where the packages did not bring them, and the mount points of a
// running system.
func furnish(root string, links, files map[string]string) error {
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp", "root", "host", "var", "etc"} {
		if err := mkdirs(filepath.Join(root, dir)); err != nil {
			return err
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
