package netns

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// SysFS mounts, nowhere, the sysfs of the namespace, read-only. What sysfs
// shows of network and RDMA devices goes by the namespace in which it was
// mounted, not by that of the reader. The file is a directory to be read by
// way of /proc/self/fd/<fd>; closing it unmounts it.
//
// The mount does not keep the namespace alive: when that ends, the directories
// of its devices read as empty. So unlike an [NS] it may be kept open.
//
// It needs Linux 5.2, what [NS.Do] needs, and CAP_SYS_ADMIN in the user
// namespace that owns our mount namespace. Where that is not the initial one,
// the kernel also wants a sysfs to be mounted there already with nothing
// mounted over parts of it; inside a container there often is.
func (ns *NS) SysFS() (*os.File, error) {
	var fd int
	err := ns.Do(func() (err error) {
		fd, err = mountSysFS()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sysfs of %v: %w", ns.id, err)
	}
	return os.NewFile(uintptr(fd), "sysfs of "+ns.id.String()), nil
}

// mountSysFS returns a mount of the sysfs of the calling thread's namespace.
func mountSysFS() (int, error) {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("fsopen", err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, os.NewSyscallError("fsconfig", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC,
		unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	return fd, os.NewSyscallError("fsmount", err)
}
