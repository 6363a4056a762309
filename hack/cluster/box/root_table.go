package box

import "golang.org/x/sys/unix"

// usrLinks are links into /usr on a host with a merged /usr, else directories
// beside it.
var usrLinks = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// alternatives is where programs in /usr that have several versions lead to on
// Debian.
const alternatives = "/etc/alternatives"

// directories are those of a root that nothing is mounted on or that the
// package mounts something on.
var directories = []string{
	"/dev", "/etc", "/home", "/mnt", "/opt", "/proc", "/root", "/run", "/srv", "/sys", "/tmp", "/usr",
	"/var/cache", "/var/lib", "/var/log", "/var/tmp",
}

// fileSystem is a file system of the machine's own.
type fileSystem struct {
	kind, target string
	flags        uintptr
	data         string
}

// fileSystems are mounted in this order. Sysfs shows the network devices of
// the namespace that it is mounted in, proc the processes.
var fileSystems = []fileSystem{
	{"proc", "/proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
	{"sysfs", "/sys", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
	{"tmpfs", "/run", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	{"tmpfs", "/tmp", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	{"tmpfs", "/dev", unix.MS_NOSUID, "mode=755"},
	{"devpts", "/dev/pts", unix.MS_NOSUID | unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=5"},
	{"tmpfs", "/dev/shm", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	{"mqueue", "/dev/mqueue", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
}

// devices are those that programs expect of any machine. The kubelet does not
// start without kmsg.
var devices = []Device{
	{Path: "/dev/null", Mode: 0o666, Major: 1, Minor: 3},
	{Path: "/dev/zero", Mode: 0o666, Major: 1, Minor: 5},
	{Path: "/dev/full", Mode: 0o666, Major: 1, Minor: 7},
	{Path: "/dev/random", Mode: 0o666, Major: 1, Minor: 8},
	{Path: "/dev/urandom", Mode: 0o666, Major: 1, Minor: 9},
	{Path: "/dev/kmsg", Mode: 0o600, Major: 1, Minor: 11},
	{Path: "/dev/tty", Mode: 0o666, Major: 5, Minor: 0},
	{Path: "/dev/fuse", Mode: 0o666, Major: 10, Minor: 229},
	{Path: "/dev/net/tun", Mode: 0o666, Major: 10, Minor: 200},
}

// deviceLinks are the links in /dev.
var deviceLinks = []struct{ path, target string }{
	{"/dev/fd", "/proc/self/fd"},
	{"/dev/stdin", "/proc/self/fd/0"},
	{"/dev/stdout", "/proc/self/fd/1"},
	{"/dev/stderr", "/proc/self/fd/2"},
	{"/dev/ptmx", "pts/ptmx"},
}

// shadows are sysctls of the whole host that the kubelet sets at its start.
// The machine finds them as the kubelet wants them, and a program that writes
// them all the same changes a file of the machine's.
var shadows = []struct{ name, value string }{
	{"vm/overcommit_memory", "1"},
	{"vm/panic_on_oom", "0"},
	{"kernel/panic", "10"},
	{"kernel/panic_on_oops", "1"},
	{"kernel/keys/root_maxkeys", "1000000"},
	{"kernel/keys/root_maxbytes", "25000000"},
}

// identities are the files that every program expects in /etc.
var identities = []File{
	{Path: "/etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")},
	{Path: "/etc/group", Mode: 0o644, Content: []byte("root:x:0:\ntty:x:5:\nnogroup:x:65534:\n")},
	{Path: "/etc/nsswitch.conf", Mode: 0o644, Content: []byte("passwd: files\ngroup: files\nhosts: files dns\n")},
	{Path: "/etc/resolv.conf", Mode: 0o644},
}
