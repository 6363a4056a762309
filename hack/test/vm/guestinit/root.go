//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"railhead/hack/test/vm/plan"
)

// The disks, in the order of QEMU's command line.
const (
	userlandDisk = "/dev/vda"
	modulesDisk  = "/dev/vdb"
)

// diskTimeout bounds the wait for a disk after its driver is loaded.
const diskTimeout = 30 * time.Second

// mount is one mount(2); its target is made when missing.
type mount struct {
	source, target, fstype string
	flags                  uintptr
	data                   string
}

// do makes the target and mounts.
func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, m.target, m.fstype, m.flags, m.data); err != nil {
		return fmt.Errorf("mount %s (%s) on %s: %w", m.source, m.fstype, m.target, err)
	}
	return nil
}

// mountAll mounts in order and stops at the first failure.
func mountAll(mounts ...mount) error {
	for _, m := range mounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	return nil
}

// assembleRoot leaves the process in the machine's root: the userland and the kernel's modules, both read only, below
// a file system in memory, so that every boot starts from the same state.
func assembleRoot() error {
	if err := mountAll(
		mount{"proc", "/proc", "proc", 0, ""},
		mount{"sysfs", "/sys", "sysfs", 0, ""},
		mount{"devtmpfs", "/dev", "devtmpfs", 0, ""},
	); err != nil {
		return err
	}
	if err := loadBootModules(plan.BootModules); err != nil {
		return err
	}
	for _, disk := range []string{userlandDisk, modulesDisk} {
		if err := waitFor(disk); err != nil {
			return err
		}
	}
	if err := mountAll(
		mount{userlandDisk, "/layers/userland", "ext4", unix.MS_RDONLY, ""},
		mount{modulesDisk, "/layers/modules", "ext4", unix.MS_RDONLY, ""},
		mount{"tmpfs", "/layers/memory", "tmpfs", 0, ""},
	); err != nil {
		return err
	}
	for _, dir := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join("/layers/memory", dir), 0o755); err != nil {
			return err
		}
	}
	if err := mountAll(
		mount{"overlay", "/new", "overlay", 0, "lowerdir=/layers/modules:/layers/userland,upperdir=/layers/memory/upper,workdir=/layers/memory/work"},
		mount{plan.ShareTag, "/new" + plan.Share, "9p", 0, "trans=virtio,version=9p2000.L,msize=1048576"},
		mount{"/proc", "/new/proc", "", unix.MS_MOVE, ""},
		mount{"/sys", "/new/sys", "", unix.MS_MOVE, ""},
		mount{"/dev", "/new/dev", "", unix.MS_MOVE, ""},
	); err != nil {
		return err
	}
	return enterRoot("/new")
}

// enterRoot makes dir the root and mounts what programs expect below it.
func enterRoot(dir string) error {
	// MS_MOVE onto / makes dir the root for programs that look at mountinfo too (`ip netns` remounts /sys and needs it).
	if err := os.Chdir(dir); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move %s to /: %w", dir, err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot to %s: %w", dir, err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return mountAll(
		mount{"devpts", "/dev/pts", "devpts", 0, ""},
		mount{"tmpfs", "/dev/shm", "tmpfs", 0, ""},
		mount{"tmpfs", "/run", "tmpfs", 0, ""},
		mount{"tmpfs", "/tmp", "tmpfs", 0, ""},
		mount{"cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""},
	)
}

// loadBootModules loads every module file of dir in the order of the names.
func loadBootModules(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := loadModule(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// loadModule loads one module file; one that is already there is fine.
func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("load %s: %w", path, err)
	}
	return nil
}

// waitFor waits until path exists: a driver finds its disks some time after it is loaded.
func waitFor(path string) error {
	for deadline := time.Now().Add(diskTimeout); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(path)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait for disk: %w", err)
		}
	}
}
