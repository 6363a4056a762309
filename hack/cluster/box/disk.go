package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"railhead/hack/program"
)

// disk is the file of the host that is the machine's disk, if it has one.
func (s *Spec) disk() string { return filepath.Join(s.Dir, "disk") }

// makeDisk makes a disk with an empty file system, unless there is one from an
// earlier start. The file takes only as much of the host as is written to it.
func (s *Spec) makeDisk(ctx context.Context) error {
	if _, err := os.Lstat(s.disk()); s.Disk == 0 || err == nil {
		return nil
	}
	// A file of the right name is a whole file system, whenever we may die.
	unfinished := s.disk() + ".unfinished"
	file, err := os.Create(unfinished)
	if err != nil {
		return err
	}
	err = errors.Join(file.Truncate(s.Disk), file.Close())
	if err == nil {
		err = format(ctx, unfinished)
	}
	if err == nil {
		err = os.Rename(unfinished, s.disk())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("disk of %d bytes: %w", s.Disk, err), os.Remove(unfinished))
	}
	return nil
}

// format makes a file system without a journal, since the file is gone before
// anything could be recovered, and without tables that nothing is in yet.
func format(ctx context.Context, disk string) error {
	err := program.Run(program.Command(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", disk))
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w; it is part of e2fsprogs", err)
	}
	return err
}

// removeDisk removes the disk of a machine that has ended.
func (s *Spec) removeDisk() error {
	if err := os.Remove(s.disk()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// mountDisk mounts the disk as the root. Its block device ends with the mount,
// and so with the machine.
func (s *Spec) mountDisk() error {
	device, err := attach(s.disk())
	if err != nil {
		return err
	}
	err = mount(device.Name(), s.root(), "ext4", unix.MS_NOATIME, "")
	return errors.Join(err, device.Close())
}

// attach makes a block device of a file, and opens it. The device goes when
// nobody has it open or mounted any more.
func attach(file string) (*os.File, error) {
	backing, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = backing.Close() }()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("disk %s: %w", file, err)
	}
	defer func() { _ = control.Close() }()
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("disk %s: free loop device: %w", file, err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("disk %s: %w", file, err)
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd())}
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		copy(config.Info.File_name[:len(config.Info.File_name)-1], file)
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) { // another was faster
			return nil, fmt.Errorf("disk %s: configure loop device %d: %w", file, number, err)
		}
	}
}
