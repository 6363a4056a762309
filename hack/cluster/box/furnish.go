package box

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/box/cgroup"
)

// shadowDir is where the files lie that stand for sysctls.
const shadowDir = "/run/railhead-box"

// mountFileSystems mounts what the machine has of its own.
func (m *machine) mountFileSystems() error {
	list := slices.Clone(fileSystems)
	for _, dir := range m.spec.Tmpfs {
		list = append(list, fileSystem{"tmpfs", dir, unix.MS_NOSUID | unix.MS_NODEV, "mode=755"})
	}
	for _, f := range list {
		if err := os.MkdirAll(f.target, 0o755); err != nil {
			return err
		}
		err := mount(f.kind, f.target, f.kind, f.flags, f.data)
		if errors.Is(err, unix.ENODEV) && f.kind == "mqueue" {
			continue // a kernel without POSIX message queues
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mountCgroups shows the machine its own cgroup as the root of each hierarchy.
func (m *machine) mountCgroups() (err error) {
	m.hierarchies, err = cgroup.Mount("/sys/fs/cgroup", m.hierarchies)
	return err
}

func (m *machine) makeDevices() error {
	for _, d := range slices.Concat(devices, m.spec.Devices) {
		if err := d.make(); err != nil {
			return err
		}
	}
	for _, l := range deviceLinks {
		if err := link(l.target, l.path); err != nil {
			return err
		}
	}
	return nil
}

func (d Device) make() error {
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(d.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kind := uint32(unix.S_IFCHR)
	if d.Block {
		kind = unix.S_IFBLK
	}
	if err := unix.Mknod(d.Path, kind, int(unix.Mkdev(d.Major, d.Minor))); err != nil {
		return &fs.PathError{Op: "mknod", Path: d.Path, Err: err}
	}
	return os.Chmod(d.Path, d.Mode)
}

// writeFiles writes /etc and what the specification has, which goes last.
func (m *machine) writeFiles() error {
	files := append(slices.Clone(identities),
		File{Path: "/etc/hostname", Mode: 0o644, Content: []byte(m.spec.hostname() + "\n")},
		File{Path: "/etc/hosts", Mode: 0o644, Content: m.spec.hosts()},
	)
	if _, err := os.Stat("/etc/machine-id"); errors.Is(err, fs.ErrNotExist) {
		files = append(files, File{Path: "/etc/machine-id", Mode: 0o444, Content: machineID()})
	}
	for _, f := range append(files, m.spec.Files...) {
		if err := f.write(); err != nil {
			return err
		}
	}
	return nil
}

// hosts is /etc/hosts.
func (s *Spec) hosts() []byte {
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost\n")
	for _, h := range s.Hosts {
		fmt.Fprintf(&text, "%s %s\n", h.Addr, strings.Join(h.Names, " "))
	}
	return []byte(text.String())
}

// machineID is a new one (machine-id(5)). It stays over restarts.
func machineID() []byte { return []byte(hex.EncodeToString(random()) + "\n") }

// bootID is a new random UUID as the kernel shows it.
func bootID() []byte {
	b := random()
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Appendf(nil, "%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func random() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return b
}

// write replaces the file, whatever it was.
func (f File) write() error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(f.Path, f.Content, f.Mode); err != nil {
		return err
	}
	return os.Chmod(f.Path, f.Mode)
}

// shadowSysctls mounts files over what belongs to the whole host. A new boot_id
// lets the kubelet see that its node was restarted.
func (m *machine) shadowSysctls() error {
	files := []File{{Path: "kernel/random/boot_id", Mode: 0o444, Content: bootID()}}
	for _, s := range shadows {
		files = append(files, File{Path: s.name, Mode: 0o644, Content: []byte(s.value + "\n")})
	}
	for _, f := range files {
		target := filepath.Join("/proc/sys", f.Path)
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without it
		}
		f.Path = filepath.Join(shadowDir, f.Path)
		if err := f.write(); err != nil {
			return err
		}
		if err := mount(f.Path, target, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) setSysctls() error {
	for name, value := range m.spec.Sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) nameHost() error {
	return os.NewSyscallError("sethostname", unix.Sethostname([]byte(m.spec.hostname())))
}

// raiseLoopback sets lo up; it has its addresses of itself.
func raiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(socket) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return os.NewSyscallError("ioctl SIOCSIFFLAGS", unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo))
}

func (m *machine) makeNursery() (err error) {
	m.nursery, err = cgroup.NewNursery(m.hierarchies)
	return err
}
