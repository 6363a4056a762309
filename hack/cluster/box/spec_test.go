package box

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	good := Spec{Name: "node1", Dir: "/var/tmp/node1"}
	if err := good.validate(); err != nil {
		t.Error(err)
	}
	bad := Spec{
		Name: "a b", Dir: "node1",
		Tmpfs: []string{"/"}, Devices: []Device{{Path: "dev/x"}}, Binds: []Bind{{Target: "/a/../b"}}, Files: []File{{Path: ""}},
		Sysctls: map[string]string{"../kernel/panic": "1"},
	}
	want := []string{
		`name "a b": want a word`,
		`directory "node1": want an absolute path`,
		`path "/" in the machine: want an absolute one below /`,
		`path "dev/x" in the machine: want an absolute one below /`,
		`path "/a/../b" in the machine: want an absolute one below /`,
		`path "" in the machine: want an absolute one below /`,
		`source "" of a bind: want an absolute path`,
		`sysctl "../kernel/panic": want a path below /proc/sys`,
	}
	if diff := cmp.Diff(want, strings.Split(bad.validate().Error(), "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	got := environment([]string{"PATH=/bin", "HOME=/root"}, []string{"A=1", "HOME=/h"}, nil, []string{"A=2", "B=x=y"})
	if diff := cmp.Diff([]string{"PATH=/bin", "HOME=/h", "A=2", "B=x=y"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, want := range map[string]string{"B": "x=y", "A": "2", "C": ""} {
		if value := variable(got, name); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
}

func TestNextPause(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	var pause time.Duration
	for _, ran := range []time.Duration{time.Hour, 0, 0, restartForget - 1, 0, 0, 0, 0, restartForget, 0} {
		pause = nextPause(pause, ran)
		got = append(got, pause)
	}
	const ms = time.Millisecond
	want := []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms, 100 * ms, 200 * ms}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMountsBelow(t *testing.T) {
	t.Parallel()
	const mountinfo = `23 1 254:0 / /home rw,relatime - ext4 /dev/vda rw
31 23 0:28 / /var/lib/node1 rw - tmpfs none rw
32 31 0:29 / /var/lib/node1/root/a\040b/c rw - tmpfs none rw
33 23 0:30 / /var/lib/node10 rw - tmpfs none rw
`
	for _, test := range []struct {
		dir  string
		want []string
	}{
		{"/var/lib/node1", []string{"/var/lib/node1", `/var/lib/node1/root/a\040b/c`}},
		{"/var/lib/node1/root/a b", []string{`/var/lib/node1/root/a\040b/c`}},
		{"/var/lib/node", nil},
	} {
		if diff := cmp.Diff(test.want, mountsBelow(mountinfo, test.dir)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.dir, diff)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	for status, want := range map[unix.WaitStatus]string{0: "exit status 0", 0x0200: "exit status 2", 9: "signal: killed", 0x80 | 6: "signal: aborted"} {
		if got := describe(status); got != want {
			t.Errorf("%#x: %q, want %q", status, got, want)
		}
	}
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	boot, machine := string(bootID()), string(machineID())
	if len(boot) != 37 || boot[14] != '4' || boot == string(bootID()) {
		t.Errorf("boot_id %q: want a random UUID", boot)
	}
	if len(machine) != 33 || machine == string(machineID()) {
		t.Errorf("machine-id %q: want 32 random digits", machine)
	}
}
