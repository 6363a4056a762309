//go:build linux

package lab

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"railhead/hack/debian"
	"railhead/hack/program"
)

// rxeDir is where the kernel's source has Soft-RoCE, and rxeModule where a module directory has it.
const (
	rxeDir    = "drivers/infiniband/sw/rxe"
	rxeModule = "kernel/" + rxeDir + "/rdma_rxe.ko"
)

// buildScript builds the module in a chroot: $1 is the kernel's release. objtool reads /proc.
const buildScript = `set -e
mount -t proc none /proc
nice make -j$(nproc) -C /usr/src/linux-headers-$1 M=/src CONFIG_RDMA_RXE=m modules
strip --strip-debug -o /src/stripped.ko /src/rdma_rxe.ko
`

// makeMovableRXE builds Soft-RoCE for a kernel release with rxeEdits, with Debian's source, headers and compiler.
func makeMovableRXE(ctx context.Context, c *cache, s *debian.Suite, release string) (string, error) {
	headers := "linux-headers-" + release
	debs, err := s.Closure(ctx, headers, "make", "bash", "coreutils", "sed", "gawk", "grep", "findutils", "mount", "xz-utils", "binutils")
	if err != nil {
		return "", err
	}
	source, err := kernelSource(release, debs)
	if err != nil {
		return "", err
	}
	// The compiler is not among the inputs: Debian's changes every few days, and builds the same module.
	inputs := []string{release, source.String(), buildScript, fmt.Sprint(rxeEdits())}
	dir, err := c.product(ctx, "rxe-"+release, inputs, func(ctx context.Context, out, scratch string) error {
		root := tree(filepath.Join(scratch, "root"))
		downloads := filepath.Join(scratch, "debs")
		if err := mkdirs(root.at("src"), downloads); err != nil {
			return err
		}
		if err := s.Unpack(ctx, string(root), downloads, debs); err != nil {
			return err
		}
		if err := fetchSource(ctx, s, root, downloads, source); err != nil {
			return err
		}
		if err := apply(root.at("src"), rxeEdits()); err != nil {
			return err
		}
		if err := buildRXE(ctx, root, release); err != nil {
			return fmt.Errorf("build (kernel %s may be too new for the lab's edits): %w", release, err)
		}
		return copyFile(root.at("src/stripped.ko"), filepath.Join(out, "rdma_rxe.ko"))
	})
	return filepath.Join(dir, "rdma_rxe.ko"), err
}

// kernelSource is the source package of exactly the kernel whose headers are among debs.
func kernelSource(release string, debs []debian.Package) (debian.Package, error) {
	i := slices.IndexFunc(debs, func(d debian.Package) bool { return d.Name == "linux-headers-"+release })
	if i < 0 {
		return debian.Package{}, fmt.Errorf("no headers of kernel %s", release)
	}
	version := numbers(release)
	if len(version) < 2 {
		return debian.Package{}, fmt.Errorf("kernel release %s has no series", release)
	}
	name := fmt.Sprintf("linux-source-%d.%d", version[0], version[1])
	return debian.Package{Name: name, Version: debs[i].Version}, nil
}

// fetchSource puts Soft-RoCE's source into the chroot's /src. The source package is large; only this one directory of
// it is ever written to disk.
func fetchSource(ctx context.Context, s *debian.Suite, root tree, downloads string, source debian.Package) error {
	files, err := s.Fetch(ctx, downloads, []debian.Package{source})
	if err != nil {
		return err
	}
	// Ending the programs early is part of the plan: the directory is in the middle of the archive.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unpack := program.Command(ctx, "dpkg-deb", "--fsys-tarfile", files[0])
	packed, err := unpack.StdoutPipe()
	if err != nil {
		return err
	}
	if err := unpack.Start(); err != nil {
		return err
	}
	defer reap(cancel, unpack)
	archive, err := findInTar(packed, func(name string) bool { return strings.HasSuffix(name, "/"+source.Name+".tar.xz") })
	if err != nil {
		return fmt.Errorf("%s: source archive: %w", source, err)
	}
	xz := root.command(ctx, "usr/bin/xz", "--decompress", "--stdout")
	xz.Stdin = archive
	plain, err := xz.StdoutPipe()
	if err != nil {
		return err
	}
	if err := xz.Start(); err != nil {
		return err
	}
	defer reap(cancel, xz)
	if err := untarDir(plain, source.Name+"/"+rxeDir, root.at("src")); err != nil {
		return fmt.Errorf("%s: %s: %w", source, rxeDir, err)
	}
	return nil
}

// reap ends a program whose output is no longer wanted.
func reap(cancel context.CancelFunc, cmd *exec.Cmd) {
	cancel()
	_ = cmd.Wait() // its status says only that it was ended
}

// findInTar skips to the first file that matches and returns its content.
func findInTar(r io.Reader, match func(name string) bool) (io.Reader, error) {
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, os.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
		if match(header.Name) {
			return archive, nil
		}
	}
}

// untarDir writes the files of one directory of an archive, without its subdirectories, and stops reading behind it.
func untarDir(r io.Reader, dir, to string) error {
	count := 0
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		inside := err == nil && filepath.Dir(header.Name) == dir
		switch {
		case count > 0 && (errors.Is(err, io.EOF) || err == nil && !strings.HasPrefix(header.Name, dir)):
			return nil
		case errors.Is(err, io.EOF):
			return os.ErrNotExist
		case err != nil:
			return err
		case !inside || header.Typeflag != tar.TypeReg:
			continue
		}
		raw, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(header.Name)), raw, 0o644); err != nil {
			return err
		}
		count++
	}
}

// buildRXE runs the build script in the chroot.
func buildRXE(ctx context.Context, root tree, release string) error {
	links := map[string]string{
		"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "usr/bin/sh": "bash", "usr/bin/awk": "gawk",
	}
	// The headers call the compiler by its name without the machine prefix, a link that another package brings.
	compilers, err := filepath.Glob(root.at("usr/bin/x86_64-linux-gnu-gcc-[0-9]*"))
	if err != nil {
		return err
	}
	for _, path := range compilers {
		name := filepath.Base(path)
		links["usr/bin/"+strings.TrimPrefix(name, "x86_64-linux-gnu-")] = name
	}
	if err := furnish(string(root), links, nil); err != nil {
		return err
	}
	if err := unix.Mknod(root.at("dev/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		return fmt.Errorf("chroot: /dev/null: %w", err)
	}
	cmd := program.Command(ctx, "/usr/bin/bash", "-c", buildScript, "build", release)
	cmd.SysProcAttr.Chroot = string(root)
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // what it mounts is its own
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID  // no compiler outlives it
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/usr/sbin", "LC_ALL=C", "KBUILD_MODPOST_WARN=1"}
	return program.Run(cmd)
}
