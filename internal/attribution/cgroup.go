package attribution

import (
	"strings"

	"railhead/internal/kernel/sysfs"
)

// PodOf returns the UID of the pod that a process is of, as the kubelet has it;
// empty for a process of no pod. The error is fs.ErrNotExist where the process has
// ended. No privilege is needed unless proc hides processes.
func PodOf(fs sysfs.FS, pid int) (string, error) {
	groups, err := fs.Cgroups(pid)
	return podOf(groups), err
}

// podOf finds the pod of a process among its control groups: its UID as the
// kubelet has it, 8-4-4-4-12 hexadecimal digits, or 32 for a static pod. It is
// empty for a process of no pod.
//
// The forms are those of cgroup v1, v2 and both together, of the kubelet's
// systemd and cgroupfs drivers, and of containerd, CRI-O and Docker below any
// prefix: a kubelet in a slice, a node that is itself a container, or the
// relative path that a reader in a cgroup namespace of its own sees. Where pods
// are nested, it is the outermost, which this node's kubelet runs.
func podOf(groups []sysfs.Cgroup) string {
	for _, group := range groups {
		for name := range strings.SplitSeq(group.Path, "/") {
			// A containerd that takes a systemd name for a path of cgroupfs makes one
			// directory of slice, prefix and container: POD.slice:cri-containerd:ID.
			name, _, _ = strings.Cut(name, ":")
			if uid, ok := podUID(name); ok {
				return uid
			}
		}
	}
	return ""
}

// podUID takes the UID from the name of a pod's group: podUID of the cgroupfs
// driver, or a slice of the systemd driver, kubepods-burstable-podUID.slice,
// in which dashes of the UID are underscores because systemd nests at dashes.
func podUID(name string) (string, bool) {
	uid := name
	if slice, ok := strings.CutSuffix(name, ".slice"); ok {
		uid = strings.ReplaceAll(slice[strings.LastIndexByte(slice, '-')+1:], "_", "-")
	}
	uid, ok := strings.CutPrefix(uid, "pod")
	return uid, ok && isPodUID(uid)
}

// isuid tells whether s is a UUID as the API server makes it, or the hash
// that the kubelet makes of a static pod.
func isPodUID(s string) bool {
	if len(s) == 32 {
		return isHex(s)
	}
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	return isHex(s[:8]) && isHex(s[9:13]) && isHex(s[14:18]) && isHex(s[19:23]) && isHex(s[24:])
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
