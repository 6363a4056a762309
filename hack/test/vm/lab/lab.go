//go:build linux

// Package lab builds and boots the virtual machines of the VM lab: QEMU, kernels and a userland are fetched as Debian
// packages with the machine's own package mirror into a cache, unpacked and never installed; a Soft-RoCE module that
// can move between network namespaces is built from Debian's kernel source; machines described by Machine are booted
// without acceleration and run static Go test binaries as root.
//
// The package returns values and errors and prints only through Config.Logf. It needs root for Prepare, to keep the
// owners of unpacked files and to build in a chroot; nothing outside the cache and the run's own directory is changed.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"railhead/hack/debian"
)

// The Debian suites: QEMU comes from a stable one, kernel and guest userland from the one that has the newest.
const (
	toolsSuite    = "trixie"
	userlandSuite = "sid"
)

// Config is what a lab is made of. The zero value of every field but Dir works.
type Config struct {
	// Dir is the cache. It is made when missing and belongs to the lab alone.
	Dir string
	// Mirror is the address of a Debian mirror; empty takes the one in this machine's apt sources.
	Mirror string
	// Refresh asks the mirror for newer packages even when the lists are fresh.
	Refresh bool
	// Logf receives progress, one line a call; nil is silence.
	Logf func(format string, args ...any)
}

// DefaultDir is the cache of a user who did not choose one.
func DefaultDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache of the lab: %w", err)
	}
	return filepath.Join(base, "railhead", "vm"), nil
}

// Lab is a prepared lab: everything that the machines it was prepared for need is in the cache.
type Lab struct {
	tools    tree
	userland string // disk image
	kernels  map[Kernel]*kernelFiles
	movable  map[Kernel]string // rxe module
	tried    map[need]error    // what was made for the machines, and what could not be
}

// Prepare makes what the machines need and is not in the cache yet, and returns the lab. It holds the cache's lock
// while it works, so that a second run waits and then finds everything done. A machine whose kernel is not to be had
// does not keep the others from booting: its Boot returns the error.
func Prepare(ctx context.Context, cfg Config, machines []Machine) (*Lab, error) {
	if cfg.Logf == nil {
		cfg.Logf = func(string, ...any) {}
	}
	if err := checkHost(); err != nil {
		return nil, err
	}
	c, err := openCache(cfg.Dir, cfg.Logf)
	if err != nil {
		return nil, err
	}
	defer c.close()
	l := &Lab{kernels: map[Kernel]*kernelFiles{}, movable: map[Kernel]string{}, tried: map[need]error{}}
	debians, err := openSuites(ctx, c, cfg, machines)
	if err != nil {
		return nil, err
	}
	defer debians.close()
	if l.tools, err = makeTools(ctx, c, debians[toolsSuite]); err != nil {
		return nil, fmt.Errorf("QEMU and disk tools: %w", err)
	}
	if l.userland, err = makeUserland(ctx, c, debians[userlandSuite], l.tools); err != nil {
		return nil, fmt.Errorf("guest userland: %w", err)
	}
	for _, m := range machines {
		n := m.need()
		if _, done := l.tried[n]; !done {
			l.tried[n] = l.addKernel(ctx, c, debians[m.Kernel.Suite], n)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return l, c.prune()
}

// need is what a machine needs beside what all machines share.
type need struct {
	kernel     Kernel
	movableRXE bool
}

// need is the machine's.
func (m Machine) need() need { return need{m.Kernel, m.MovableRXE} }

// addKernel makes a kernel and, where it is needed, the movable rxe module for it.
func (l *Lab) addKernel(ctx context.Context, c *cache, s *debian.Suite, n need) error {
	k, err := makeKernel(ctx, c, s, l.tools, n.kernel)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	l.kernels[n.kernel] = k
	if n.movableRXE {
		if l.movable[n.kernel], err = makeMovableRXE(ctx, c, s, k.release); err != nil {
			return fmt.Errorf("movable rxe for kernel %s: %w", k.release, err)
		}
	}
	return nil
}

// openSuites opens the tools' and userland's suites and those of the machines' kernels.
func openSuites(ctx context.Context, c *cache, cfg Config, machines []Machine) (suites, error) {
	names := []string{toolsSuite, userlandSuite}
	for _, m := range machines {
		names = append(names, m.Kernel.Suite)
	}
	slices.Sort(names)
	all := suites{}
	for _, name := range slices.Compact(names) {
		s, err := debian.Open(ctx, debian.Config{
			Dir: c.aptDir(name), Suite: name, Architecture: runtime.GOARCH,
			Mirror: debian.Mirror{URI: cfg.Mirror}, Refresh: cfg.Refresh, Logf: cfg.Logf,
		})
		if err != nil {
			all.close()
			return nil, err
		}
		all[name] = s
	}
	return all, nil
}

// suites are open Debian suites by their names.
type suites map[string]*debian.Suite

func (all suites) close() {
	for _, s := range all {
		s.Close()
	}
}

// checkHost says everything that this machine lacks for a lab, at once.
func checkHost() error {
	var lacks []string
	if runtime.GOARCH != "amd64" {
		lacks = append(lacks, "an amd64 processor (this is "+runtime.GOARCH+")")
	}
	if os.Geteuid() != 0 {
		lacks = append(lacks, "root (packages are unpacked with their owners, and the kernel module is built in a chroot)")
	}
	for _, program := range []string{"apt-get", "apt-cache", "apt-config", "dpkg-deb", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			lacks = append(lacks, "the program "+program)
		}
	}
	if len(lacks) > 0 {
		return errors.New("the lab needs " + strings.Join(lacks, ", "))
	}
	return nil
}
