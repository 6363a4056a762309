package box

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestRoot looks at a machine from inside.
func TestRoot(t *testing.T) {
	spec := newSpec(t, "node1")
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "word"), []byte("of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec.Hosts = []Host{{netip.MustParseAddr("10.99.0.12"), []string{"node2", "two"}}}
	spec.Env = []string{"COLOUR=blue", "HOME=/home"}
	spec.Tmpfs = []string{"/var/lib/etcd"}
	spec.Devices = []Device{{Path: "/dev/infiniband/uverbs0", Mode: 0o666, Major: 1, Minor: 3}}
	spec.Binds = []Bind{
		{Source: source, Target: "/opt/bin"},
		{Source: source, Target: "/opt/writable", Writable: true},
		{Source: filepath.Join(source, "word"), Target: "/opt/file"},
	}
	spec.Files = []File{{Path: "/etc/kubernetes/pki/ca.crt", Mode: 0o600, Content: []byte("certificate")}, {Path: "/run/early", Mode: 0o644}}
	spec.Sysctls = map[string]string{"net/ipv4/ip_forward": "1"}
	b := startBox(t, spec)

	for _, test := range []struct{ script, want string }{
		{"[ $(cat /proc/sys/kernel/hostname) = $(cat /etc/hostname) ] && cat /etc/hostname", "node1"},
		{"tail -1 /etc/hosts", "10.99.0.12 node2 two"},
		{"echo $COLOUR $HOME", "blue /home"},
		{"echo $$ > /dev/null; cat /proc/1/comm", "railhead-box"},
		{"ls /sys/class/net", "lo"},
		{"cat /sys/class/net/lo/flags", "0x9"},
		{"stat -f -c %T /run /tmp /dev /dev/shm /var/lib/etcd /dev/pts | sort | uniq -c | tr -s ' '", " 1 devpts\n 5 tmpfs"},
		{"stat -c '%A %t:%T' /dev/kmsg /dev/net/tun /dev/infiniband/uverbs0", "crw------- 1:b\ncrw-rw-rw- a:c8\ncrw-rw-rw- 1:3"},
		{"cat /opt/bin/word /opt/file", "of the hostof the host"},
		{"echo no > /opt/bin/word || echo read-only", "read-only"},
		{"echo no > /usr/railhead-box || echo read-only", "read-only"},
		{"echo yes > /opt/writable/new", ""},
		{"stat -c %a /etc/kubernetes/pki/ca.crt; cat /etc/kubernetes/pki/ca.crt; ls /run/early", "600\ncertificate/run/early"},
		{"cat /proc/sys/net/ipv4/ip_forward", "1"},
		{"cat /proc/sys/kernel/panic; echo 99 > /proc/sys/kernel/panic; cat /proc/sys/kernel/panic", "10\n99"},
		{"readlink /var/run; ls /run/netns 2>/dev/null; wc -c < /etc/machine-id", "../run\n33"},
		{"grep -v shared: /proc/self/mountinfo", ""},
		{"cat /proc/self/mountinfo | cut -d' ' -f5 | head -1", "/"},
	} {
		out, _ := output(t, b, test.script)
		if diff := cmp.Diff(test.want, strings.TrimRight(out, "\n")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.script, diff)
		}
	}
	if _, err := os.Stat(filepath.Join(source, "new")); err != nil {
		t.Errorf("a writable bind did not reach the host: %v", err)
	}
	host, err := os.ReadFile("/proc/sys/kernel/panic")
	if err != nil || strings.TrimSpace(string(host)) == "99" {
		t.Errorf("kernel.panic of the host: %q (%v), which the machine has set", host, err)
	}
}

// TestCgroupView wants programs below the machine's cgroup, which they see as
// the root.
func TestCgroupView(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	for line := range strings.Lines(sh(t, b, "cat /proc/self/cgroup")) {
		id, path, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !strings.HasSuffix(path, ":/runtime") && id != "0" {
			t.Errorf("a program is in %q, want runtime", line)
		}
	}
	// What a kubelet does: a cgroup beside, with controllers, and a process.
	script := `for d in /sys/fs/cgroup $(ls -d /sys/fs/cgroup/memory /sys/fs/cgroup/pids 2>/dev/null); do
		[ -e $d/cgroup.procs ] || continue
		mkdir $d/kubepods && echo $$ > $d/kubepods/cgroup.procs && ls $d/kubepods | grep -E 'memory.max$|memory.limit_in_bytes|pids.max$'
	done; cat /proc/self/cgroup`
	out := sh(t, b, script)
	for _, want := range []string{"memory", "pids.max", ":/kubepods"} {
		if !strings.Contains(out, want) {
			t.Errorf("output %q: want %s", out, want)
		}
	}
}

// TestCgroupViewDelegated is TestCgroupView as systemd mounts v2, where the root
// of a cgroup namespace is its own master in part only.
func TestCgroupViewDelegated(t *testing.T) {
	if os.Getenv("RAILHEAD_IN_VM") == "" {
		t.Skip("earned skip: changes how the host has its cgroups mounted: run it in hack/test/vm")
	}
	requireRoot(t)
	if err := unix.Mount("", "/sys/fs/cgroup", "", unix.MS_REMOUNT, "nsdelegate"); err != nil {
		t.Fatal(err)
	}
	TestCgroupView(t)
}

// TestHostMounts wants the host's mounts to be as before while a machine runs.
func TestHostMounts(t *testing.T) {
	spec := newSpec(t, "node1")
	b := startBox(t, spec)
	sh(t, b, "mkdir /tmp/m && mount -t tmpfs railhead-box-test /tmp/m && mkdir /mnt/m && mount --bind /tmp/m /mnt/m")
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if list := mountsBelow(string(mountinfo), spec.Dir); len(list) > 0 || strings.Contains(string(mountinfo), "railhead-box-test") {
		t.Errorf("mounts of the machine are on the host: %q in\n%s", list, mountinfo)
	}
}
